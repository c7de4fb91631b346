//go:build !windows

package tty

// ^D ends a read: at the start of a line an empty one, within a line one of the text typed so far.
const (
	endOfLine  = "\x04"
	endOfInput = "\x04"
)
