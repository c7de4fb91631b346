//go:build !linux && !darwin && !windows

package tty

import "os"

// Resized returns a channel that never receives: this system tells of a new size in other ways, which are not read yet.
func Resized() (changes <-chan os.Signal, stop func()) { return nil, func() {} }
