//go:build linux || darwin

package pty

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	creack "github.com/creack/pty"
	"golang.org/x/sys/unix"

	"tether/platform/proc"
)

// PTY is a running program and its terminal. Its methods may be called from several
// goroutines, but Read and WaitReadable only from one at a time. It holds one descriptor
// and one goroutine, which ends with the program; no thread of the system waits for it.
type PTY struct {
	// Set once by Start.
	master *os.File
	conn   syscall.RawConn // of master
	leader proc.ID         // the program: its pid is also the number of its session and first process group
	tag    string
	feed   *feed         // nil if the program reads its terminal
	faults string        // see Faults
	reader reader        // owned by the goroutine that reads
	exited chan struct{} // closed by reap when exit is set

	adopted bool               // see Command
	spare   func(pid int) bool // see Command

	exit Exit // written by reap before it closes exited

	mu     sync.Mutex // held while the program is waited for: while it is held and reaped is false, the pid is surely the program's
	reaped bool
}

// Start runs c on a new pseudo-terminal, which becomes the controlling terminal of a new
// session. The program gets descriptors 0 to 2 and no other, and default signal actions,
// whatever this process inherited or ignores. The caller must call Close. An error is a
// *StartError.
func Start(c Command) (*PTY, error) {
	path, err := c.check()
	if err != nil {
		return nil, err
	}
	master, tty, err := open(c.Size.orDefault())
	if err != nil {
		return nil, &StartError{What: "terminal", Err: err}
	}
	defer tty.Close()
	p := &PTY{master: master, tag: proc.FindTag(c.Env), adopted: c.Adopted, spare: c.Spare, exited: make(chan struct{})}
	if p.conn, err = master.SyscallConn(); err == nil {
		err = p.run(c, path, tty)
	}
	if err != nil {
		master.Close()
		return nil, err
	}
	return p, nil
}

// run starts the program on tty and the goroutine that waits for it.
func (p *PTY) run(c Command, path string, tty *os.File) error {
	p.reader.init(p.conn)
	in := tty
	if c.Feed {
		feed, r, err := newFeed()
		if err != nil {
			return &StartError{What: "input", Err: err}
		}
		defer r.Close() // else the end of the program would not end a write
		feed.within(FeedWait)
		p.feed, in = feed, r
	}
	childEnded := make(chan os.Signal, 1) // the runtime drops excess signals: one is enough to look again
	signal.Notify(childEnded, unix.SIGCHLD)
	pid, faults, err := fork(c, path, in, tty)
	if err != nil {
		signal.Stop(childEnded)
		p.closeFeed()
		return err
	}
	p.leader.Pid, p.faults = pid, faults
	if info, err := proc.Lookup(pid); err == nil { // not yet waited for, so there is such a process
		p.leader = info.ID
	}
	go p.reap(childEnded)
	return nil
}

// open makes a pseudo-terminal whose master is served by the runtime's poller. creack/pty
// hands out a blocking one: a thread would sit in each Read, and Close would not wake it.
func open(s Size) (master, tty *os.File, err error) {
	blocking, tty, err := creack.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	master, err = pollable(blocking)
	if err == nil {
		err = setUTF8(tty)
	}
	if err == nil {
		err = creack.Setsize(tty, &creack.Winsize{Cols: s.Cols, Rows: s.Rows})
	}
	if err != nil {
		tty.Close()
		if master != nil {
			master.Close()
		}
		return nil, nil, err
	}
	return master, tty, nil
}

func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make descriptor non-blocking: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil // takes it for pollable because it is non-blocking
}

// setUTF8 tells the line discipline that erasing a character may mean several bytes, as
// terminal emulators do.
func setUTF8(tty *os.File) error {
	t, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios)
	if err != nil {
		return fmt.Errorf("read terminal settings: %w", err)
	}
	t.Iflag |= unix.IUTF8
	if err := unix.IoctlSetTermios(int(tty.Fd()), setTermios, t); err != nil {
		return fmt.Errorf("write terminal settings: %w", err)
	}
	return nil
}

// Pid returns the program's process id. After the program was waited for, the id may
// belong to another process.
func (p *PTY) Pid() int { return p.leader.Pid }

// Faults says in words which of Command.Limits could not be set, "" if all could.
func (p *PTY) Faults() string { return p.faults }

// SyscallConn gives access to the terminal's descriptor, which is non-blocking, as
// [os.File.SyscallConn] does. A copy of it keeps the terminal open.
func (p *PTY) SyscallConn() (syscall.RawConn, error) { return p.conn, nil }

// Write types b. It blocks while the program does not read and the terminal's input queue
// (4 KiB on Linux) is full; Close ends it. A line longer than that queue is cut by the
// terminal itself while it is in line mode.
func (p *PTY) Write(b []byte) (int, error) {
	n, err := p.master.Write(b)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		err = fmt.Errorf("write terminal: %w", err)
	}
	return n, err
}

// TryWrite types as much of b as there is room for now, perhaps nothing; it does not wait
// for more. It must not be called concurrently with Write.
func (p *PTY) TryWrite(b []byte) (n int, err error) {
	try := func(fd uintptr) bool {
		n, err = unix.Write(int(fd), b)
		return true // done in any case: Write is there to wait
	}
	switch {
	case p.conn.Write(try) != nil:
		return 0, os.ErrClosed
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("write terminal: %w", err)
	}
	return n, nil
}

// Resize changes the size and tells the programs in the foreground. Both dimensions must
// be at least 1. After Close it returns os.ErrClosed.
func (p *PTY) Resize(s Size) error {
	if s.Cols == 0 || s.Rows == 0 {
		return fmt.Errorf("resize terminal to %d columns and %d rows: must be at least 1", s.Cols, s.Rows)
	}
	var err error
	set := func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: s.Cols, Row: s.Rows})
	}
	if p.conn.Control(set) != nil {
		err = os.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// Close gives the terminal up and wakes a waiting Read, WaitReadable and Write, which
// return os.ErrClosed. Programs still on it are told by a hang-up, but not made to end:
// that is Kill. It also ends the feed. Wait stays usable. A second Close does nothing.
func (p *PTY) Close() error {
	p.closeFeed()
	if err := p.master.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close terminal: %w", err)
	}
	return nil
}

func (p *PTY) closeFeed() {
	if p.feed != nil {
		p.feed.close()
	}
}

func systemConsole() (string, error) { return "a pty of the system", nil }
