package tty

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// sizeLook is how often the size is asked for. Windows reports a change only among the keys, and another reader of those would lose some.
const sizeLook = 250 * time.Millisecond

// Resized returns a channel that receives a value after the terminal got another size, and a function that ends that. Several changes may
// be one value.
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
		case ch <- syscall.Signal(0): // there is no number for it
		default:
		}
	}
}

// windowOf is the part of the console that is seen.
func windowOf(out windows.Handle) windows.Coord {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(out, &info) != nil {
		return windows.Coord{}
	}
	return windows.Coord{X: info.Window.Right - info.Window.Left, Y: info.Window.Bottom - info.Window.Top}
}
