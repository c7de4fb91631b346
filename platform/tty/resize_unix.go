//go:build linux || darwin

package tty

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Resized returns a channel that receives a value after the terminal got another size, and a function that ends that. Several changes may
// be one value.
func Resized() (changes <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGWINCH)
	return ch, func() { signal.Stop(ch) }
}
