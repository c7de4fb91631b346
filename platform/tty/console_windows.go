package tty

import (
	"fmt"
	"io"
	"os"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// openConsole opens this process's console, wherever its standard handles lead: "CONIN$"
// or "CONOUT$".
func openConsole(name string) (windows.Handle, error) {
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return 0, err
	}
	return windows.CreateFile(wide, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, nil,
		windows.OPEN_EXISTING, 0, 0)
}

// Raw switches the console to raw mode: the program gets every key, and the console
// neither echoes nor edits keys nor turns them into signals. Special keys arrive as the
// escape sequences that terminals of other systems send, and the screen interprets escape
// sequences. restore undoes it and may be called twice.
func Raw(f *os.File) (restore func(), err error) {
	in, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	restoreScreen, err := sequences()
	if err != nil {
		_ = term.Restore(int(f.Fd()), in)
		return nil, err
	}
	return func() {
		restoreScreen()
		_ = term.Restore(int(f.Fd()), in) // fails only if the console is gone
	}, nil
}

// sequences makes the screen interpret escape sequences, and treat a line feed as a line
// feed only.
func sequences() (restore func(), err error) {
	out, err := openConsole("CONOUT$")
	if err != nil {
		return nil, fmt.Errorf("open the console: %w", err)
	}
	defer windows.CloseHandle(out)
	var before uint32
	if err := windows.GetConsoleMode(out, &before); err != nil {
		return nil, fmt.Errorf("mode of the console: %w", err)
	}
	const wanted = windows.ENABLE_PROCESSED_OUTPUT | windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING
	if err := windows.SetConsoleMode(out, before|wanted|windows.DISABLE_NEWLINE_AUTO_RETURN); err != nil {
		if err := windows.SetConsoleMode(out, before|wanted); err != nil { // without the mode for line feeds, which is not needed
			return nil, fmt.Errorf("this console does not support escape sequences (Windows 10 1607 or later is needed): %w", err)
		}
	}
	return func() {
		if out, err := openConsole("CONOUT$"); err == nil {
			_ = windows.SetConsoleMode(out, before)
			_ = windows.CloseHandle(out)
		}
	}, nil
}

// Keys returns the input typed at f. Reading a console through os.File ends at Ctrl+Z, as
// if that were the end of a file; the reader that Keys returns does not end there. The
// reader is for one goroutine.
func Keys(f *os.File) io.Reader {
	if !Is(f) {
		return f
	}
	return &keys{handle: windows.Handle(f.Fd())}
}

// keys reads a console in UTF-16 and returns the input in UTF-8.
type keys struct {
	handle windows.Handle
	units  [1024]uint16
	high   uint16 // first half of a surrogate pair whose second half has not been read yet, or 0
	rest   []byte // input that was read and not returned yet
}

// Read implements io.Reader.
func (k *keys) Read(b []byte) (int, error) {
	for len(k.rest) == 0 {
		var n uint32
		if err := windows.ReadConsole(k.handle, &k.units[0], uint32(len(k.units)), &n, nil); err != nil {
			return 0, fmt.Errorf("read the console: %w", err)
		}
		if n == 0 {
			return 0, io.EOF
		}
		k.rest = k.decode(k.units[:n])
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// decode converts units to UTF-8. If they end with the first half of a surrogate pair, it
// keeps that for the next call.
func (k *keys) decode(units []uint16) []byte {
	if k.high != 0 {
		units = append([]uint16{k.high}, units...)
		k.high = 0
	}
	if last := units[len(units)-1]; last >= 0xd800 && last < 0xdc00 {
		k.high, units = last, units[:len(units)-1]
	}
	var b []byte
	for _, r := range utf16.Decode(units) {
		b = utf8.AppendRune(b, r)
	}
	return b
}

// Ctrl+Z ends the input only at the start of a line, and that line must be ended with
// Enter.
const (
	endOfLine  = "\r"
	endOfInput = "\x1a\r"
)
