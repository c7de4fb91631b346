package term

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// ID names a terminal for its whole life, across daemon restarts: "pty-" and
// eight random characters of a-z and 2-7.
type ID string

// NewID mints one.
func NewID() ID {
	var b [5]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return ID("pty-" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:])))
}
