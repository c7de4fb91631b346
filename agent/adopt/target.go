package adopt

import (
	"fmt"
	"strings"
	"unicode"

	"tether/internal/clip"
)

// Target names a pane of a program. Its text is PROGRAM:PANE, or PROGRAM:SERVER:PANE.
type Target struct {
	Program string // "tmux"
	// Server is the program's server, in the program's own words; "" for its usual one.
	// For tmux it is the name of a socket, or the absolute path of one.
	Server string
	Pane   string // the pane's own number or name; for tmux "%" and a number
}

// maxTarget bounds the text of a target, in bytes. Paths of sockets have at most 108.
const maxTarget = 300

// ParseTarget reads the text of a target. It checks its form and not whether there is
// such a pane.
func ParseTarget(text string) (Target, error) {
	program, rest, _ := strings.Cut(text, ":")
	t := Target{Program: program, Pane: rest}
	if n := strings.LastIndexByte(rest, ':'); n >= 0 {
		t.Server, t.Pane = rest[:n], rest[n+1:]
	}
	if program == "" || t.Pane == "" || len(text) > maxTarget || strings.ContainsFunc(text, unicode.IsControl) {
		return Target{}, fmt.Errorf("%q is no pane: name one as in tmux:%%3; tether adopt lists them", clip.Marked(text, 60))
	}
	return t, nil
}

// String returns the text that ParseTarget reads.
func (t Target) String() string {
	if t.Server == "" {
		return t.Program + ":" + t.Pane
	}
	return t.Program + ":" + t.Server + ":" + t.Pane
}
