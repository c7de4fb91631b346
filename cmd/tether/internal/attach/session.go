package attach

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/redact"
	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
	"tether/screen"
)

// A Session attaches a person, or a script, to a terminal until the terminal exits or the
// person detaches.
//
// A session of a window, see Options.Window, has no keys of its own.
//
// If In and Out are terminals, the session is interactive: every key goes to the child,
// the terminal follows the window's size, and ~. detaches. Otherwise the session is a
// part of a script: In is typed, or the command reads it from a pipe, the output is
// printed to Out, and a session that owns its terminal kills it when a signal ends the
// script. If only Out is a terminal, its answers to questions would reach another
// program, so that it gets none.
type Session struct {
	opts   Options
	client *localclient.Client
	name   string // the terminal's displayed name; its id until look has found the name
	att    *reconnectingAttach

	interactive bool
	own         bool         // Out is a terminal
	safe        *redact.Safe // of output for a terminal that the session does not read; else nil
	restore     func()       // ends raw mode of the person's terminal
	modes       screen.Modes
	lentTo      []string    // the hosts that the person was told of last; set by look, then owned by printed's goroutine
	unsaid      string      // a message of lent that is not shown yet; owned by printed's goroutine
	printing    sync.Mutex  // held while output is written; guards bell, and modes, which only printed's goroutine and then tidy change
	bell        string      // a bell that waits for the end of a control sequence
	whole       atomic.Bool // modes.WholeScreen, for other goroutines
	coded       atomic.Bool // modes.CodedKeys, for keys
	midLine     atomic.Bool // the last printed byte did not end a line
	signals     chan os.Signal
	left        chan struct{} // closed when the person detaches
	hungUp      chan struct{} // closed when the person's terminal is gone
	failed      chan error    // why the command cannot get its standard input; 1 slot
}

// Options are the settings of a Session. All fields but Owns, Feed and Window are
// required.
type Options struct {
	ID   string // of the terminal
	Owns bool   // the terminal was started for this session; a script's session then kills it, see Session
	Feed bool   // the command has a pipe as its standard input: In is written there, and not typed
	// Window makes the session that of a terminal program's window, in place of the
	// shell there: no key detaches, the title stays, it is silent while all is well, the
	// terminal's program is hung up with the window, and it waits for the next daemon for
	// ever.
	Window       bool
	In, Out, Err *os.File
	Notice       func(format string, args ...any) // prints a message for the person; a \r at its end says that the terminal is in raw mode
	Size         func() (cols, rows uint16)       // of the person's terminal
	TellLent     func() bool                      // reports whether the person wants to be told who can watch
}

// Status is the error of a session that the terminal's exit or a signal has ended: the
// exit status of the command.
type Status int

// Error implements error.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// New returns a session that is not attached yet.
func New(o Options) *Session {
	s := &Session{opts: o, name: o.ID, own: tty.Is(o.Out), restore: func() {}, signals: make(chan os.Signal, 4), left: make(chan struct{}), hungUp: make(chan struct{}), failed: make(chan error, 1)}
	if s.interactive = s.own && tty.Is(o.In); s.own && !s.interactive {
		s.safe = redact.NewSafe(redact.Options{Images: math.MaxInt64, FileLinks: true})
	}
	return s
}

// Open attaches to the terminal. Run must follow.
func (s *Session) Open(ctx context.Context, client *localclient.Client, from localclient.AttachOptions) error {
	s.client = client
	from.Script = !s.interactive
	from.Lines = !s.interactive && !s.opts.Feed
	att, err := attachReconnecting(ctx, client, s.opts.ID, from, s.Notice)
	if err != nil {
		return err
	}
	s.att, att.stays = att, s.opts.Window
	if s.interactive && !s.opts.Window {
		s.look(ctx)
	}
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if s.interactive {
		if s.restore, err = tty.Raw(s.opts.In); err != nil {
			s.close()
			return fmt.Errorf("raw mode: %w", err)
		}
	}
	return nil
}

// close undoes Open.
func (s *Session) close() {
	signal.Stop(s.signals)
	s.att.Close()
}

// Run carries out the session after Open. It returns nil after a detach, otherwise a
// Status or the error that ended the session.
func (s *Session) Run() error {
	defer s.close()
	defer s.restore()
	return s.run()
}

// look tells the person who can watch, and how to detach. Open calls it after attaching,
// so that no later change is missed.
func (s *Session) look(ctx context.Context) {
	if t, err := s.client.Find(ctx, s.opts.ID); err == nil {
		s.lentTo, s.name = t.LentTo, display.Printable(display.NameOf(t), 40)
		if len(t.Loans) > 0 && s.opts.TellLent() {
			s.opts.Notice("%s %s; stop sharing: tether unlend %s", display.NameOf(t), display.Visible(t), t.ID)
		}
	}
	s.opts.Notice("Enter ~. leaves %s running, ~? shows help", s.name)
}

// run copies bytes both ways until the session ends. The goroutine that reads keys may
// end only with the process, because a read from a terminal cannot be cancelled.
func (s *Session) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.own && !s.opts.Window {
		_, _ = s.opts.Out.WriteString(keepTitle) // if this fails, so does the output
	}
	switch {
	case s.interactive:
		go s.keys(ctx)
	case s.opts.Feed:
		go s.feed(ctx)
	default:
		go s.lines(ctx)
	}
	if s.interactive {
		resized, stop := tty.Resized()
		defer stop()
		go s.follow(ctx, resized)
		if !s.opts.Window { // the same question would ring in each window
			go s.listen(ctx)
		}
	}
	ended := make(chan error, 1) // 1: after a detach, nobody may receive
	go func() {
		err := s.printed(ctx)
		s.att.Close() // otherwise a Write in typed would wait for ever
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			s.tidy()
			return err
		case <-s.left:
			s.leave(ended)
			if s.midLine.Load() {
				fmt.Fprint(s.opts.Err, "\r\n")
			}
			s.opts.Notice("detached from %s, which keeps running; reattach with: tether attach %s\r", s.name, s.opts.ID)
			return nil
		case <-s.hungUp:
			s.hangUp(ctx)
			s.leave(ended)
			return Status(128 + int(syscall.SIGHUP))
		case err := <-s.failed:
			if s.opts.Owns {
				s.end()
			}
			s.leave(ended)
			return err
		case sig := <-s.signals:
			if done, err := s.signalled(ctx, sig); done {
				s.leave(ended)
				return err
			}
		}
	}
}

// Notice prints a message for the person, but drops it while a program shows the
// alternate screen, whose picture the message would damage. It may be called
// concurrently.
func (s *Session) Notice(format string, args ...any) {
	if !s.whole.Load() {
		s.opts.Notice(format, args...)
	}
}

// outputTimeout bounds the time in which the person's terminal takes the rest of the
// output after a detach.
const outputTimeout = time.Second

// leave ends the attachment before the terminal has exited, and restores the person's
// terminal unless that takes no output.
func (s *Session) leave(ended <-chan error) {
	s.att.Close()
	select {
	case <-ended:
		s.tidy()
	case <-time.After(outputTimeout):
	}
}

// Titles are put on the terminal's stack, and taken back: a terminal does not say which
// title it had (xterm's XTWINOPS).
const (
	keepTitle    = "\x1b[22;0t"
	restoreTitle = "\x1b[23;0t"
)

// tidy undoes what the terminal's output has set on the person's terminal: modes,
// keyboards, colours, the title and the like.
func (s *Session) tidy() {
	title := restoreTitle
	if s.opts.Window {
		title = ""
	}
	s.undo(title)
}

// undo is tidy, with the text that restores the title.
func (s *Session) undo(title string) {
	if s.own {
		s.printing.Lock() // a question may ring now
		defer s.printing.Unlock()
		_, _ = s.opts.Out.Write(append(s.modes.Restore(), title...)) // if the terminal is gone, nothing helps
	}
}

// signalled handles a signal to this process. done reports whether it ends the session,
// with err.
func (s *Session) signalled(ctx context.Context, sig os.Signal) (done bool, err error) {
	number, _ := sig.(syscall.Signal)
	switch {
	case sig == os.Interrupt && !s.interactive:
		_ = s.att.Write(ctx, []byte{0x03}) // ^C; if it ends the child, that ends the session
		return false, nil
	case s.opts.Owns && !s.interactive:
		s.end()
	case sig == syscall.SIGHUP, sig == syscall.SIGTERM:
		s.hangUp(ctx)
	}
	return true, Status(128 + int(number))
}

// hangUpTimeout bounds the message that the window is gone.
const hangUpTimeout = time.Second

// hangUp tells the terminal's program that its window is gone.
func (s *Session) hangUp(ctx context.Context) {
	if s.opts.Window {
		ctx, cancel := context.WithTimeout(ctx, hangUpTimeout)
		defer cancel()
		s.att.HangUp(ctx)
	}
}

// fail ends the session because the command does not get its input.
func (s *Session) fail(err error) {
	select {
	case s.failed <- err:
	default: // it has failed before
	}
}

// killTimeout bounds the request that kills the terminal.
const killTimeout = 10 * time.Second

// end kills the terminal, because its script ends.
func (s *Session) end() {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if _, err := s.client.Kill(ctx, s.opts.ID); err != nil {
		s.opts.Notice("%s may still be running: %v", s.name, err)
	}
}

// printed shows the terminal's output until it exits.
func (s *Session) printed(ctx context.Context) error {
	for {
		m, err := s.att.Next(ctx)
		if err != nil {
			return err
		}
		if m.Control == nil {
			if err := s.print(m.Data); err != nil {
				return s.unread(err)
			}
			if s.interactive {
				s.midLine.Store(!bytes.HasSuffix(m.Data, []byte("\n")))
				s.sayLent()
			}
			continue
		}
		switch m.Control.Type {
		case localapi.ControlExit:
			return Status(m.Control.Code)
		case localapi.ControlDropped:
			return fmt.Errorf("%w: %s", localclient.ErrDropped, m.Control.Message)
		case localapi.ControlLagged:
			if m.Control.Redrawn {
				s.undo("")
			}
			s.opts.Notice("%s skipped: the output was not read fast enough\r", display.Size(m.Control.Lost))
		case localapi.ControlError:
			if m.Control.Error != nil && !s.interactive {
				s.fail(m.Control.Error)
				continue
			}
			s.opts.Notice("%s\r", m.Control.Message)
		case localapi.ControlLent:
			s.lent(m.Control.Hosts)
		}
	}
}

// print writes output of the terminal, and then the waiting bell, unless the output ends
// within a control sequence.
func (s *Session) print(p []byte) error {
	s.printing.Lock()
	defer s.printing.Unlock()
	if s.safe != nil {
		p = s.safe.Append(nil, p)
	}
	if _, err := s.opts.Out.Write(p); err != nil {
		return err
	}
	if s.own {
		_, _ = s.modes.Write(p) // never fails
		s.whole.Store(s.modes.WholeScreen())
		s.coded.Store(s.modes.CodedKeys())
		s.ringLocked()
	}
	return nil
}

// lent tells the person which hosts can watch from now on, if that has changed.
func (s *Session) lent(hosts []string) {
	if !s.interactive || slices.Equal(hosts, s.lentTo) || !s.opts.TellLent() {
		return
	}
	s.lentTo = hosts
	text := "is no longer shared"
	if len(hosts) > 0 {
		text = fmt.Sprintf("%s; stop sharing: tether unlend %s", s.visible(hosts), s.opts.ID)
	}
	s.unsaid = text
	s.sayLent()
}

// findTimeout bounds the request that asks who can watch. Meanwhile no output is printed.
const findTimeout = 3 * time.Second

// visible describes who can watch. It asks the daemon for details; without an answer it
// only names the hosts.
func (s *Session) visible(hosts []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), findTimeout)
	defer cancel()
	if s.client != nil {
		if t, err := s.client.Find(ctx, s.opts.ID); err == nil && slices.Equal(t.LentTo, hosts) {
			return display.Visible(t)
		}
	}
	return "is shared with " + display.Printable(strings.Join(hosts, ", "), 200)
}

// sayLent shows the message of lent, unless a program shows the alternate screen or a
// control sequence is being printed.
func (s *Session) sayLent() {
	if s.unsaid == "" || s.modes.WholeScreen() || s.modes.InSequence() {
		return
	}
	if s.midLine.Load() {
		fmt.Fprint(s.opts.Err, "\r\n")
	}
	s.opts.Notice("%s %s\r", s.name, s.unsaid)
	s.unsaid = ""
}

// unread ends a session whose output can no longer be written, because of err. A script's
// session kills its own terminal.
func (s *Session) unread(err error) error {
	if s.opts.Owns && !s.interactive {
		s.end()
	}
	return err
}

// follow gives the terminal the size of the person's terminal, now and after each change.
func (s *Session) follow(ctx context.Context, resized <-chan os.Signal) {
	for {
		cols, rows := s.opts.Size()
		s.att.Resize(ctx, cols, rows)
		select {
		case <-resized:
		case <-ctx.Done():
			return
		}
	}
}
