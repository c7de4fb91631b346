//go:build linux || darwin

package tty

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Resized returns a channel that receives a value after the size of the terminal has
// changed, and a function that ends this. Several changes may arrive as one value. Nobody
// closes the channel.
func Resized() (changes <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGWINCH)
	return ch, func() { signal.Stop(ch) }
}
