package pty

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Bounds of a console, in cells. One column sends Windows into a loop when a wide
// character comes (microsoft/terminal #19922), and the console host keeps a cell for each
// place.
const (
	minCols, minRows = 2, 1
	maxCells         = 1000
)

func coord(s Size) windows.Coord {
	return windows.Coord{X: int16(min(max(s.Cols, minCols), maxCells)), Y: int16(min(max(s.Rows, minRows), maxCells))}
}

// releasePseudoConsole is there since Windows 11 24H2 and Server 2025 (build 26100). It
// lets the console end by itself, after its last client and its last output.
var releasePseudoConsole = windows.NewLazySystemDLL("kernel32.dll").NewProc("ReleasePseudoConsole")

// console is a pseudo-console: a Windows process (conhost.exe) that acts as the console
// for programs and translates their calls into bytes and back.
type console struct {
	mu     sync.Mutex
	handle windows.Handle
	gone   bool // close has begun: the handle is not to be used

	once   sync.Once
	closed chan struct{} // close has returned
}

// newConsole makes a console that reads from in and writes to out. They remain the
// caller's; the console has its own.
func newConsole(size Size, in, out windows.Handle) (*console, error) {
	c := &console{closed: make(chan struct{})}
	// No flags: 1 makes it ask for the cursor and hang when nobody answers
	// (microsoft/terminal #17688), others do nothing.
	if err := windows.CreatePseudoConsole(coord(size), in, out, 0, &c.handle); err != nil {
		return nil, fmt.Errorf("create pseudo-console (needs Windows 10 1809 or later): %w", err)
	}
	return c, nil
}

// attribute puts the console into the attributes of a process to be started on it.
func (c *console) attribute(list *windows.ProcThreadAttributeListContainer) error {
	// The handle itself is the value, not a pointer to it; go vet takes the direct
	// conversion for a mistake.
	return list.Update(windows.PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, *(*unsafe.Pointer)(unsafe.Pointer(&c.handle)), unsafe.Sizeof(c.handle))
}

// release tells the console, once its first program is attached, to end with its last
// one. It reports whether Windows can do that.
func (c *console) release() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || releasePseudoConsole.Find() != nil {
		return false
	}
	result, _, _ := releasePseudoConsole.Call(uintptr(c.handle))
	return int32(result) >= 0 // an HRESULT
}

// isGone reports whether close was called.
func (c *console) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

func (c *console) resize(s Size) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return os.ErrClosed
	}
	return windows.ResizePseudoConsole(c.handle, coord(s))
}

// close ends the console and hangs up on the programs that are on it: each gets
// CTRL_CLOSE_EVENT and is ended by Windows some seconds later. Before build 26100 it
// returns only when all output was read (microsoft/terminal #17489), so the goroutine
// that reads must not call it. A second call waits for the first.
func (c *console) close() {
	c.once.Do(func() {
		c.mu.Lock()
		c.gone = true
		c.mu.Unlock()
		windows.ClosePseudoConsole(c.handle)
		close(c.closed)
	})
}

// createPseudoConsole is only looked for: golang.org/x/sys calls it.
var createPseudoConsole = windows.NewLazySystemDLL("kernel32.dll").NewProc("CreatePseudoConsole")

func systemConsole() (string, error) {
	v := windows.RtlGetVersion()
	return conPTY(v.MajorVersion, v.MinorVersion, v.BuildNumber, createPseudoConsole.Find() == nil, releasePseudoConsole.Find() == nil)
}
