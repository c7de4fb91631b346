package adopt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/platform/ipc"
	"tether/platform/proc"
)

// maxAnswer bounds what a program tells at once, in bytes.
const maxAnswer = 8 << 20

// tellers returns the programs of this user that tell pictures and can be found.
func tellers(o Options) []teller {
	return slices.Concat(kitties(o), herdrs(o), wezterms(o), zellijs(o))
}

// tellerOf returns the program that tells about p.
func tellerOf(p Pane) (teller, bool) {
	switch server := p.Target.Server; p.Target.Program {
	case "tmux":
		return oldTmux{p.Socket}, true
	case "kitty":
		return kitty{p.Socket, server}, true
	case "herdr":
		return herdr{p.Socket, server}, true
	case "wezterm":
		return wezterm{"wezterm", p.Socket, server}, true
	case "zellij":
		return zellij{"zellij", filepath.Base(p.Socket), p.Socket, p.Server}, true
	}
	return nil, false
}

// listTellers returns the panes of those programs. A program that is not there any more
// is no fault.
func listTellers(ctx context.Context, o Options) (all []Pane, faults []error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	from := tellers(o)
	from = from[:min(len(from), maxSockets)]
	panes, errs := make([][]Pane, len(from)), make([]error, len(from))
	var told sync.WaitGroup
	for i := range from {
		told.Go(func() { panes[i], errs[i] = from[i].panes(ctx) })
	}
	told.Wait()
	for i := range from {
		all = append(all, panes[i]...)
		if errs[i] != nil && !errors.Is(errs[i], ipc.ErrNotRunning) {
			faults = append(faults, errs[i])
		}
	}
	return all[:min(len(all), maxPanes)], faults
}

// findTeller returns one of those panes.
func findTeller(ctx context.Context, o Options, t Target) (Pane, error) {
	all, faults := listTellers(ctx, o)
	for _, p := range all {
		if p.Target == t {
			return p, nil
		}
	}
	if len(faults) > 0 {
		return Pane{}, errors.Join(faults...)
	}
	return Pane{}, &UnknownError{t}
}

// dial connects to the unix socket of another program of this user, and returns the
// process that listens there.
func dial(ctx context.Context, socket string) (net.Conn, proc.ID, error) {
	conn, err := ipc.Dial(ctx, socket)
	if err != nil {
		return nil, proc.ID{}, err
	}
	server, err := listener(conn)
	if err != nil {
		conn.Close()
		return nil, proc.ID{}, fmt.Errorf("socket %s: %w", socket, err)
	}
	if until, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(until)
	}
	return conn, server, err
}

// listener returns the process at the other end.
func listener(conn net.Conn) (proc.ID, error) {
	peer, err := ipc.PeerOf(conn)
	if err != nil {
		return proc.ID{}, err
	}
	defer peer.Close()
	info, err := proc.Lookup(peer.Pid)
	return info.ID, err
}

// readTo reads up to the end of an answer, without it.
func readTo(r io.Reader, end string) ([]byte, error) {
	var b bytes.Buffer
	piece := make([]byte, 32<<10)
	for b.Len() <= maxAnswer {
		n, err := r.Read(piece)
		b.Write(piece[:n])
		if text, ok := bytes.CutSuffix(b.Bytes(), []byte(end)); ok {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the answer is too long")
}

// directory returns a directory as another program names it if it is absolute.
func directory(path string) string {
	if !filepath.IsAbs(path) || len(path) > maxDir || printable(path, maxDir) != path {
		return ""
	}
	return path
}

// run runs a program's command, and returns the beginning of what it prints. settings are
// added to the environment of this process. An error says what the program says.
func run(ctx context.Context, settings []string, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), settings...)
	c.WaitDelay = time.Second
	var out, errs limited
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	said := strings.TrimSpace(printable(string(errs.b), maxText))
	switch {
	case err != nil && ctx.Err() != nil:
		err = errors.New("it does not answer; it may be stopped")
	case err != nil && said != "":
		err = errors.New(said)
	}
	return out.b, err
}

// limited keeps the beginning of what is written.
type limited struct{ b []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.b = append(l.b, p[:min(len(p), maxAnswer-len(l.b))]...)
	return len(p), nil
}
