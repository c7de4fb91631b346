//go:build linux || darwin

package tty

import (
	"os"

	"golang.org/x/sys/unix"
)

// Piped reports whether f gives a program input that nobody types: a pipe, a socket, a
// file or a device, but neither a terminal nor the null device.
func Piped(f *os.File) bool {
	var s, null unix.Stat_t
	if Is(f) || unix.Fstat(int(f.Fd()), &s) != nil {
		return false
	}
	device := s.Mode&unix.S_IFMT == unix.S_IFCHR
	return !device || unix.Stat(os.DevNull, &null) != nil || s.Rdev != null.Rdev // by its number: a container may have another file for it
}
