package main

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

	"tether/agent/local"
	"tether/cmd/tether/internal/display"
	"tether/cmd/tether/internal/view"
	"tether/platform/tty"
)

// session is a person, or a script, at a terminal until it exits or they leave.
//
// With a real terminal on both sides it is interactive: every key goes to the child, the size follows, ~. leaves. Otherwise it is a part of
// a script: input is typed, output is printed, and a session that owns its terminal ends it when the script is ended.
type session struct {
	app    *app
	client *local.Client
	id     string
	name   string // for the person; the id until look has asked
	att    *reconnectingAttach
	owns   bool // the terminal was started for this session

	interactive bool
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

// attachTo attaches to the terminal and returns when the session is over: nil after a detach, else an exitCode or the error.
func (a *app) attachTo(ctx context.Context, client *local.Client, id string, o local.AttachOptions, owns bool) error {
	s := &session{app: a, client: client, id: id, name: id, owns: owns,
		interactive: tty.Is(a.stdin) && tty.Is(a.stdout), signals: make(chan os.Signal, 4), left: make(chan struct{}), hungUp: make(chan struct{})}
	say := silence(func(format string, args ...any) { s.notice(format+"\r", args...) })
	s.client = client.Patient(say)
	defer whileConnected(ctx, client, say, nil)()
	att, err := attachReconnecting(ctx, s.client, id, o, s.notice)
	if err != nil {
		return &cannotAttach{err}
	}
	defer att.Close()
	s.att = att
	if s.interactive {
		s.look(ctx)
	}
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(s.signals)
	if !s.interactive {
		return s.run()
	}
	restore, err := tty.Raw(a.stdin)
	if err != nil {
		return &cannotAttach{fmt.Errorf("raw mode: %w", err)}
	}
	defer restore()
	return s.run()
}

// look tells the person who can watch, and how to leave. It comes after attaching: later changes are reported.
func (s *session) look(ctx context.Context) {
	if t, err := s.client.Find(ctx, s.id); err == nil {
		s.lentTo, s.name = t.LentTo, display.Printable(display.NameOf(t), 40)
		s.app.sayLent(t)
	}
	s.app.notice("Enter ~. leaves %s running, ~? shows help", s.name)
}

// run moves bytes both ways until the end. Keys are read by a goroutine that ends with the process: a read from a terminal cannot be called
// off.
func (s *session) run() error {
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
		s.att.Close() // who waits to type would wait for ever
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
				fmt.Fprint(s.app.stderr, "\r\n")
			}
			s.app.notice("detached from %s, which keeps running; reattach with: tether attach %s\r", s.name, s.id)
			return nil
		case <-s.hungUp:
			s.leave(ended)
			return exitCode(128 + int(syscall.SIGHUP))
		case sig := <-s.signals:
			if done, err := s.signalled(ctx, sig); done {
				s.leave(ended)
				return err
			}
		}
	}
}

// notice tells the person something, unless a program has the whole screen: that would be in its picture.
func (s *session) notice(format string, args ...any) {
	if !s.modes.WholeScreen() {
		s.app.notice(format, args...)
	}
}

// outputTimeout is how long the person's terminal may take the output printed before they left.
const outputTimeout = time.Second

// leave ends the attachment before the terminal has exited. A terminal that takes no output cannot be tidied.
func (s *session) leave(ended <-chan error) {
	s.att.Close()
	select {
	case <-ended:
		s.tidy()
	case <-time.After(outputTimeout):
	}
}

// tidy leaves the person's terminal as a shell expects it.
func (s *session) tidy() {
	if s.interactive {
		_, _ = s.app.stdout.Write(s.modes.Restore()) // nothing helps when it is gone
	}
}

// signalled decides the meaning of a signal to this process.
func (s *session) signalled(ctx context.Context, sig os.Signal) (done bool, err error) {
	number, _ := sig.(syscall.Signal)
	switch {
	case sig == os.Interrupt && !s.interactive:
		_ = s.att.Write(ctx, []byte{0x03}) // ^C: the child decides; its end is ours
		return false, nil
	case s.owns && !s.interactive:
		s.end()
	}
	return true, exitCode(128 + int(number))
}

// killTimeout bounds this process's wait when it ends its terminal.
const killTimeout = 10 * time.Second

// end kills the terminal: its script has gone.
func (s *session) end() {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if _, err := s.client.Kill(ctx, s.id); err != nil {
		s.app.notice("%s may still be running: %v", s.name, err)
	}
}

// printed shows the terminal's output until it exits.
func (s *session) printed(ctx context.Context) error {
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
		case local.ControlExit:
			return exitCode(m.Control.Code)
		case local.ControlDropped:
			return fmt.Errorf("%w: %s", local.ErrDropped, m.Control.Message)
		case local.ControlLagged:
			s.app.notice("%s skipped: the output was not read fast enough\r", display.Size(m.Control.Lost))
		case local.ControlError:
			s.app.notice("%s\r", m.Control.Message)
		case local.ControlLent:
			s.lent(m.Control.Hosts)
		}
	}
}

// print writes the terminal's output, and a bell that waits for its end.
func (s *session) print(p []byte) error {
	s.printing.Lock()
	defer s.printing.Unlock()
	if _, err := s.app.stdout.Write(p); err != nil {
		return err
	}
	if s.interactive {
		_, _ = s.modes.Write(p) // never fails
		s.ringLocked()
	}
	return nil
}

// lent tells the person that others can watch from now on, or nobody.
func (s *session) lent(hosts []string) {
	if !s.interactive || slices.Equal(hosts, s.lentTo) || !wantsLent() {
		return
	}
	s.lentTo = hosts
	text := "is no longer shared"
	if len(hosts) > 0 {
		text = fmt.Sprintf("%s; stop sharing: tether unlend %s", s.visible(hosts), s.id)
	}
	s.unsaid = text
	s.sayLent()
}

// visible describes who can watch, with the daemon's knowledge of the hosts.
func (s *session) visible(hosts []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	if s.client != nil {
		if t, err := s.client.Find(ctx, s.id); err == nil && slices.Equal(t.LentTo, hosts) {
			return display.Visible(t)
		}
	}
	return "is shared with " + display.Printable(strings.Join(hosts, ", "), 200)
}

// sayLent shows lent's message once no program has the whole screen, and not within a control sequence.
func (s *session) sayLent() {
	if s.unsaid == "" || s.modes.WholeScreen() || s.modes.InSequence() {
		return
	}
	if s.midLine.Load() {
		fmt.Fprint(s.app.stderr, "\r\n")
	}
	s.app.notice("%s %s\r", s.name, s.unsaid)
	s.unsaid = ""
}

// unread ends a session whose output nobody takes any more.
func (s *session) unread(err error) error {
	if s.owns && !s.interactive {
		s.end()
	}
	return err
}

// follow gives the terminal the size of the person's.
func (s *session) follow(ctx context.Context, resized <-chan os.Signal) {
	for {
		cols, rows := s.app.size()
		s.att.Resize(ctx, cols, rows)
		select {
		case <-resized:
		case <-ctx.Done():
			return
		}
	}
}

// size is the person's terminal's, or 80x24.
func (a *app) size() (cols, rows uint16) {
	for _, f := range []*os.File{a.stdout, a.stdin, a.stderr} {
		if c, r, ok := tty.Size(f); ok {
			return uint16(min(c, 1000)), uint16(min(r, 1000))
		}
	}
	return 80, 24
}

// typed sends the input.
func (s *session) typed(ctx context.Context) {
	var e escapes
	var send []byte
	keys := tty.Keys(s.app.stdin)
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
				fmt.Fprint(s.app.stderr, "\r\n"+escapeHelpText)
			}
			in = rest
		}
		if err == nil {
			continue
		}
		switch {
		case s.interactive: // SIGHUP goes to the session's leader alone, and that may wait for us
			close(s.hungUp)
		case errors.Is(err, io.EOF) && s.owns:
			_ = s.att.Write(ctx, tty.EndOfInput(last == '\n' || last == '\r')) // the child may be gone
		}
		return
	}
}
