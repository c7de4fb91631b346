// Package qr makes QR codes of short texts, such as links, and shows them in a terminal.
// Codes have the lowest level of error correction, L: a screen has no scratches, and a
// smaller code fits into more terminals.
package qr

import (
	"errors"

	"rsc.io/qr"
)

// maxSize bounds the size of a code, in modules on each side: version 10, for 271 bytes.
const maxSize = 57

// ErrTooLong is returned by Encode for a text that does not fit.
var ErrTooLong = errors.New("the text is too long for a QR code")

// Code is a QR code.
type Code struct {
	Size int // modules on each side, without the quiet zone
	code *qr.Code
}

// Dark reports whether a module is dark. Modules outside the code are light.
func (c *Code) Dark(x, y int) bool { return c.code.Black(x, y) }

// Encode returns the smallest code for the bytes of text, or ErrTooLong.
func Encode(text string) (*Code, error) {
	c, err := qr.Encode(text, qr.L)
	if err != nil || c.Size > maxSize {
		return nil, ErrTooLong
	}
	return &Code{c.Size, c}, nil
}
