package tty

// EndOfInput is the input with which a person ends a program's input, at the start of a line or within one.
func EndOfInput(atLineStart bool) []byte {
	if atLineStart {
		return []byte(endOfInput)
	}
	return []byte(endOfLine + endOfInput)
}
