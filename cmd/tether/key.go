package main

import (
	"context"
	"strings"
	"unicode"

	"tether/platform/tty"
)

// key waits until one of the keys is pressed at the person's terminal, and returns it in lower case. Other keys do nothing, but ^C, ^D and
// Esc end it as an interrupt does.
func (a *app) key(ctx context.Context, keys string) (rune, error) {
	restore, err := tty.Raw(a.stdin)
	if err != nil {
		return 0, err
	}
	defer restore()
	pressed := make(chan rune, 1) // 1: the reader ends even when nobody waits any more
	go func() {
		for b := make([]byte, 1); ; {
			n, err := a.stdin.Read(b)
			switch r := unicode.ToLower(rune(b[0])); {
			case err != nil || n == 0 || strings.ContainsRune("\x03\x04\x1b", r):
				pressed <- 0
				return
			case strings.ContainsRune(keys, r):
				pressed <- r
				return
			}
		}
	}()
	select {
	case r := <-pressed:
		if r == 0 {
			return 0, exitCode(exitInterrupted)
		}
		return r, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
