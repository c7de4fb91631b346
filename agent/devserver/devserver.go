// Package devserver finds and reaches the servers that the programs of one terminal run
// on this machine, and nothing else that listens here.
//
//	conn, err := devserver.Of(h).Dial(ctx, 5173)
package devserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tether/agent/fetch"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/checkout"
	"tether/internal/retry"
	"tether/platform/proc"
)

// Running returns the terminals that run, as package proc looks for their processes.
func Running(terminals ...term.Handle) (some []proc.Terminal) {
	for _, h := range terminals {
		if i := h.Info(); i.Exit == nil {
			some = append(some, Processes(i))
		}
	}
	return some
}

// Processes says where to look for a terminal's processes: if it is adopted, in the pane,
// which its own program only reads.
func Processes(i term.Info) proc.Terminal {
	if i.Adopted != nil && i.Adopted.Pid != 0 {
		return proc.Terminal{ID: string(i.ID), Pid: i.Adopted.Pid, Unmarked: true}
	}
	return proc.Terminal{ID: string(i.ID), Pid: i.Pid}
}

// Reachable returns the loopback addresses at which nothing but programs of the terminals
// can answer, or an *agenttools.ClosedError. The socket of one address has priority over
// one of all addresses, and that of IPv6 may accept connections over IPv4.
func Reachable(all []proc.Bound, port int) (hosts []string, err error) {
	closed := &agenttools.ClosedError{Port: port}
	for _, host := range agenttools.Loopbacks() {
		at := netip.MustParseAddr(host)
		from := []netip.Addr{at, netip.IPv6Unspecified()}
		if at.Is4() {
			from = []netip.Addr{at, netip.IPv4Unspecified(), netip.IPv6Unspecified()}
		}
		for _, addr := range from {
			some := slices.DeleteFunc(slices.Clone(all), func(b proc.Bound) bool { return b.Addr != addr })
			if len(some) == 0 {
				continue
			}
			if slices.ContainsFunc(some, func(b proc.Bound) bool { return !b.Own }) {
				closed.Other = true
			} else {
				hosts = append(hosts, host)
			}
			break
		}
	}
	if len(hosts) == 0 {
		return nil, closed
	}
	return hosts, nil
}

// Kind says why a server cannot be reached.
type Kind int

// The kinds.
const (
	None    Kind = iota // no program listens there
	Foreign             // a program that is not the terminal's does
	Several             // the terminal's programs listen on several ports
	Unknown             // the system does not tell whose the port is
)

// ChangedHands is why the lending of a port ends when an Error is of the kind Foreign.
const ChangedHands = "a program that is not the terminal's listens there now"

// Error says why a server of a terminal cannot be reached.
type Error struct {
	Kind Kind
	text string
}

func (e *Error) Error() string { return e.text }

// Hint says what to do about it, "" if the error does.
func (e *Error) Hint() string {
	if e.Kind == None || e.Kind == Foreign {
		return "tether ls shows on which ports its programs listen; tether wait --port waits"
	}
	return ""
}

func failed(kind Kind, format string, args ...any) error {
	return &Error{kind, fmt.Sprintf(format, args...)}
}

// Servers are those of a terminal's own programs. It is safe for concurrent use.
type Servers struct {
	h term.Handle

	mu    sync.Mutex
	looks map[int]*looks // by port
}

// Of returns the servers of a terminal.
func Of(h term.Handle) *Servers { return &Servers{h: h, looks: map[int]*looks{}} }

// Only returns the one port from fetch.LeastPort on on which the terminal's programs
// listen at a loopback address or at all, or an *Error.
func (s *Servers) Only() (int, error) {
	found, err := s.Listening()
	if err != nil {
		return 0, err
	}
	switch len(found) {
	case 0:
		return 0, failed(None, "no program of %s listens on a port of this machine", s.h.ID())
	case 1:
		return found[0], nil
	}
	return 0, failed(Several, "programs of %s listen on the ports %s; choose one", s.h.ID(), strings.Trim(fmt.Sprint(found), "[]"))
}

// Dial connects to a port if nothing but programs of the terminal can answer, and checks
// that once more when the connection is there: a port may change hands. It returns an
// *Error if something else could answer, or nothing. What seems foreign is looked at
// twice: a program that is just being started has no marks for a moment.
func (s *Servers) Dial(ctx context.Context, port int) (net.Conn, error) {
	conn, err := s.dial(ctx, port)
	if e, is := errors.AsType[*Error](err); is && e.Kind == Foreign && retry.Wait(ctx, startWithin) {
		return s.dial(ctx, port)
	}
	return conn, err
}

const startWithin = 100 * time.Millisecond

func (s *Servers) dial(ctx context.Context, port int) (net.Conn, error) {
	hosts, err := s.hosts(port)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	var errs []error
	for _, host := range hosts {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if still, err := s.hosts(port); err != nil || !slices.Contains(still, host) {
			conn.Close()
			return nil, cmp.Or(err, s.foreign(port))
		}
		return conn, nil
	}
	return nil, errors.Join(errs...)
}

// Listening returns the ports from fetch.LeastPort on on which the terminal's programs
// listen at a loopback address or at all.
func (s *Servers) Listening() ([]int, error) {
	all, err := proc.Listeners(Running(s.h))
	if err != nil {
		return nil, fmt.Errorf("listening ports: %w", err)
	}
	var found []int
	for _, l := range all[string(s.h.ID())] {
		if addr, port := l.Addr.Addr(), int(l.Addr.Port()); (addr.IsLoopback() || addr.IsUnspecified()) && port >= fetch.LeastPort {
			found = append(found, port)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Check returns an *Error if nothing of the terminal's would answer on a port now.
func (s *Servers) Check(port int) error {
	_, err := s.hosts(port)
	return err
}

// hosts is look, which it shares with others who ask at the same time.
func (s *Servers) hosts(port int) ([]string, error) {
	s.mu.Lock()
	l := s.looks[port]
	if l == nil {
		l = new(looks)
		s.looks[port] = l
	}
	s.mu.Unlock()
	return l.find(func() ([]string, error) { return s.look(port) })
}

// look returns the loopback addresses at which only programs of the terminal can answer.
func (s *Servers) look(port int) ([]string, error) {
	if port < fetch.LeastPort {
		return nil, failed(None, "port %d: ports below %d are not asked", port, fetch.LeastPort)
	}
	all, err := proc.OnPort(port, Running(s.h)...)
	if err != nil {
		return nil, failed(Unknown, "this system does not tell which program has port %d: %v", port, err)
	}
	hosts, err := Reachable(all, port)
	if closed, ok := errors.AsType[*agenttools.ClosedError](err); ok {
		if closed.Other {
			return nil, s.foreign(port)
		}
		return nil, failed(None, "no program of %s listens on port %d", s.h.ID(), port)
	}
	return hosts, err
}

func (s *Servers) foreign(port int) error {
	return failed(Foreign, "no program of %s listens on port %d; another program has it, such as one that publishes a container's port", s.h.ID(), port)
}

// Dirs returns the directories whose files the servers may be asked for by absolute
// paths, see fetch.Request: the terminal's, and the git work tree, as far as it is known.
func (s *Servers) Dirs(f *checkout.Finder) []string {
	i := s.h.InfoAsIs()
	dirs := []string{i.StartCwd, i.Cwd}
	if c, ok := f.Known(i.Cwd)[i.Cwd]; ok && c.Worktree != "" {
		dirs = append(dirs, c.Worktree)
	}
	return dirs
}
