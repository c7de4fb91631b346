package pty

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// MaxStart is how many bytes of arguments and environment a command may have. Linux
// allows at most 6 MiB, and 2 MiB with the usual limit of the stack (execve(2)).
const MaxStart = 8 << 20

// ErrTooLarge is wrapped by the StartError of a command whose arguments and environment
// the system does not take.
const ErrTooLarge = syscall.E2BIG

// CheckSize returns a *StartError that names the largest variables if the command is
// larger than MaxStart.
func (c Command) CheckSize() error {
	if c.bytes() <= MaxStart {
		return nil
	}
	return &StartError{What: "program", Name: c.Path, Err: c.tooLarge(fmt.Sprintf("at most %d are allowed", MaxStart))}
}

// tooLarge says how large the command is and what makes it so. It shows no values.
func (c Command) tooLarge(limit string) error {
	const shown = 3
	env := slices.SortedFunc(slices.Values(c.Env), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var largest []string
	for _, entry := range env[:min(shown, len(env))] {
		name, _, _ := strings.Cut(entry, "=")
		largest = append(largest, fmt.Sprintf("%.60s (%d)", name, len(entry)))
	}
	return fmt.Errorf("%w: its arguments and environment have %d bytes, and %s; the largest variables are %s",
		ErrTooLarge, c.bytes(), limit, cmp.Or(strings.Join(largest, ", "), "none"))
}

func (c Command) bytes() (n int) {
	for _, list := range [][]string{c.Args, c.Env} {
		for _, s := range list {
			n += len(s) + 1 // with a NUL
		}
	}
	return n
}
