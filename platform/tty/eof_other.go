//go:build !windows

package tty

// ^D ends a read: at the start of a line one of nothing, within one that of what was typed so far.
const (
	endOfLine  = "\x04"
	endOfInput = "\x04"
)
