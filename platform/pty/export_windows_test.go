package pty

// ConsoleSize is the size that a console gets for s.
func ConsoleSize(s Size) Size {
	c := coord(s)
	return Size{Cols: uint16(c.X), Rows: uint16(c.Y)}
}
