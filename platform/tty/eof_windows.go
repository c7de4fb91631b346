package tty

// Ctrl+Z counts only at the start of a line, which has to be ended as any other.
const (
	endOfLine  = "\r"
	endOfInput = "\x1a\r"
)
