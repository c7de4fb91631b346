package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	"tether/cmd/tether/internal/display"
	"tether/cmd/tether/internal/view"
	"tether/platform/tty"
)

// A Session is a person, or a script, at a terminal until it exits or they leave.
//
// With a real terminal on both sides it is interactive: every key goes to the child, the size follows, ~. leaves. Otherwise it is a part of
// a script: input is typed, output is printed, and a session that owns its terminal ends it when the script is ended.
type Session struct {
	opts   Options
	client *localclient.Client
	name   string // for the person; the id until look has asked
	att    *reconnectingAttach

	interactive bool
	restore     func() // ends the raw mode of the person's terminal
	modes       view.Modes
	lentTo      []string    // to these hosts, as the person knows; owned by printed's goroutine, as modes
	unsaid      string      // of lent; the same
	printing    sync.Mutex  // held while something is written to stdout; guards bell, and modes where listen looks at them
	bell        string      // waits for the end of a control sequence
	midLine     atomic.Bool // the last byte that was printed is not the end of a line
	signals     chan os.Signal
	left        chan struct{} // closed when the person detaches
	hungUp      chan struct{} // closed when the person's terminal is gone
}

// Options are the settings of a Session. All are required but Owns.
type Options struct {
	ID           string // of the terminal
	Owns         bool   // the terminal was started for this session
	In, Out, Err *os.File
	Notice       func(format string, args ...any) // prints a message for the person; \r at its end is for raw mode
	Size         func() (cols, rows uint16)       // of the person's terminal
	TellLent     func() bool                      // the person wants to know who can watch
}

// Status is the exit status of a session that has ended by the terminal's end or by a signal, as an error.
type Status int

// Error implements error.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// New returns a session that is not attached yet.
func New(o Options) *Session {
	return &Session{opts: o, name: o.ID, interactive: tty.Is(o.In) && tty.Is(o.Out), restore: func() {}, signals: make(chan os.Signal, 4), left: make(chan struct{}), hungUp: make(chan struct{})}
}

// Open attaches to the terminal. Run must follow.
func (s *Session) Open(ctx context.Context, client *localclient.Client, from localclient.AttachOptions) error {
	s.client = client
	att, err := attachReconnecting(ctx, client, s.opts.ID, from, s.Notice)
	if err != nil {
		return err
	}
	s.att = att
	if s.interactive {
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

// Run returns when the session is over: nil after a detach, else a Status or the error.
func (s *Session) Run() error {
	defer s.close()
	defer s.restore()
	return s.run()
}

// look tells the person who can watch, and how to leave. It comes after attaching: later changes are reported.
func (s *Session) look(ctx context.Context) {
	if t, err := s.client.Find(ctx, s.opts.ID); err == nil {
		s.lentTo, s.name = t.LentTo, display.Printable(display.NameOf(t), 40)
		if len(t.Loans) > 0 && s.opts.TellLent() {
			s.opts.Notice("%s %s; stop sharing: tether unlend %s", display.NameOf(t), display.Visible(t), t.ID)
		}
	}
	s.opts.Notice("Enter ~. leaves %s running, ~? shows help", s.name)
}

// run moves bytes both ways until the end. Keys are read by a goroutine that ends with the process: a read from a terminal cannot be called
// off.
func (s *Session) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.typed(ctx)
	if s.interactive {
		resized, stop := tty.Resized()
		defer stop()
		go s.follow(ctx, resized)
		go s.listen(ctx)
	}
	ended := make(chan error, 1) // 1: the output's end may be heard of after a detach, or never
	go func() {
		err := s.printed(ctx)
		s.att.Close() // a goroutine that waits to type would wait for ever
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
			s.leave(ended)
			return Status(128 + int(syscall.SIGHUP))
		case sig := <-s.signals:
			if done, err := s.signalled(ctx, sig); done {
				s.leave(ended)
				return err
			}
		}
	}
}

// Notice prints a message for the person, but drops it while a program shows the alternate screen, whose picture the message would damage.
// It may be called concurrently.
func (s *Session) Notice(format string, args ...any) {
	s.printing.Lock()
	whole := s.modes.WholeScreen()
	s.printing.Unlock()
	if !whole {
		s.opts.Notice(format, args...)
	}
}

// outputTimeout is how long the person's terminal may take the output printed before they left.
const outputTimeout = time.Second

// leave ends the attachment before the terminal has exited. A terminal that takes no output cannot be tidied.
func (s *Session) leave(ended <-chan error) {
	s.att.Close()
	select {
	case <-ended:
		s.tidy()
	case <-time.After(outputTimeout):
	}
}

// tidy leaves the person's terminal as a shell expects it.
func (s *Session) tidy() {
	if s.interactive {
		_, _ = s.opts.Out.Write(s.modes.Restore()) // nothing helps when it is gone
	}
}

// signalled decides the meaning of a signal to this process.
func (s *Session) signalled(ctx context.Context, sig os.Signal) (done bool, err error) {
	number, _ := sig.(syscall.Signal)
	switch {
	case sig == os.Interrupt && !s.interactive:
		_ = s.att.Write(ctx, []byte{0x03}) // ^C: the child decides; its end is ours
		return false, nil
	case s.opts.Owns && !s.interactive:
		s.end()
	}
	return true, Status(128 + int(number))
}

// killTimeout bounds this process's wait when it ends its terminal.
const killTimeout = 10 * time.Second

// end kills the terminal: its script has gone.
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
			s.opts.Notice("%s skipped: the output was not read fast enough\r", display.Size(m.Control.Lost))
		case localapi.ControlError:
			s.opts.Notice("%s\r", m.Control.Message)
		case localapi.ControlLent:
			s.lent(m.Control.Hosts)
		}
	}
}

// print writes the terminal's output, and a bell that waits for its end.
func (s *Session) print(p []byte) error {
	s.printing.Lock()
	defer s.printing.Unlock()
	if _, err := s.opts.Out.Write(p); err != nil {
		return err
	}
	if s.interactive {
		_, _ = s.modes.Write(p) // never fails
		s.ringLocked()
	}
	return nil
}

// lent tells the person that others can watch from now on, or nobody.
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

// findTimeout bounds the question who can watch.
const findTimeout = 3 * time.Second

// visible describes who can watch, with the daemon's knowledge of the hosts.
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

// sayLent shows lent's message once no program has the whole screen, and not within a control sequence.
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

// unread ends a session whose output nobody takes any more.
func (s *Session) unread(err error) error {
	if s.opts.Owns && !s.interactive {
		s.end()
	}
	return err
}

// follow gives the terminal the size of the person's.
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

// typed sends the input.
func (s *Session) typed(ctx context.Context) {
	var e escapes
	var send []byte
	keys := tty.Keys(s.opts.In)
	buf := make([]byte, 16<<10)
	last := byte('\n')
	for {
		n, err := keys.Read(buf)
		for in := buf[:n]; len(in) > 0; {
			action := escapeNone
			send = append(send[:0], in...)
			rest := in[:0]
			if s.interactive {
				send, action, rest = e.feed(send[:0], in)
			}
			if len(send) > 0 {
				last = send[len(send)-1]
				if s.att.Write(ctx, send) != nil {
					return
				}
			}
			switch action {
			case escapeDetach:
				close(s.left)
				return
			case escapeHelp:
				fmt.Fprint(s.opts.Err, "\r\n"+escapeHelpText)
			}
			in = rest
		}
		if err == nil {
			continue
		}
		switch {
		case s.interactive: // SIGHUP goes to the session's leader alone, and that may wait for us
			close(s.hungUp)
		case errors.Is(err, io.EOF) && s.opts.Owns:
			_ = s.att.Write(ctx, tty.EndOfInput(last == '\n' || last == '\r')) // the child may be gone
		}
		return
	}
}
