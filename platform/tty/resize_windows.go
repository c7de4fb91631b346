package tty

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// sizeLook is the time between two looks at the size. Windows reports a change only as
// one of the input events, and reading these here would take keys away from the reader of
// the keys.
const sizeLook = 250 * time.Millisecond

// Resized returns a channel that receives a value after the size of the terminal has
// changed, and a function that ends this. Several changes may arrive as one value. Nobody
// closes the channel.
func Resized() (changes <-chan os.Signal, stop func()) {
	ch, end, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(ended)
		watchSize(ch, end)
	}()
	return ch, func() {
		close(end)
		<-ended
	}
}

func watchSize(ch chan<- os.Signal, end <-chan struct{}) {
	out, err := openConsole("CONOUT$")
	if err != nil {
		return
	}
	defer windows.CloseHandle(out)
	tick := time.NewTicker(sizeLook)
	defer tick.Stop()
	last := windowOf(out)
	for {
		select {
		case <-tick.C:
		case <-end:
			return
		}
		now := windowOf(out)
		if now == last {
			continue
		}
		last = now
		select {
		case ch <- syscall.Signal(0): // Windows has no signal for a change of size
		default:
		}
	}
}

// windowOf returns the size of the visible part of the console, one less than the cells
// in each direction; zero if it is not known.
func windowOf(out windows.Handle) windows.Coord {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(out, &info) != nil {
		return windows.Coord{}
	}
	return windows.Coord{X: info.Window.Right - info.Window.Left, Y: info.Window.Bottom - info.Window.Top}
}
