package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"tether/agent/adopt"
	"tether/platform/pty"
)

const (
	floorAdopted  = 1.1 // times the flood without an adoption
	adoptLines    = 1_000_000
	adoptEnd      = "bench-end"
	adoptBeside   = 20 // other panes of the session that are adopted
	adoptDeadline = 2 * time.Minute
)

// adoptPart floods a pane of tmux that a person watches, in turn without a reader, while
// it is adopted, and while other panes of its session are. A time ends when the person's
// client shows the last line. Without tmux there are no rows.
func adoptPart(ctx context.Context, s settings) (rows []row, err error) {
	if _, err := exec.LookPath("tmux"); err != nil {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "bench-adopt")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	own, err := filepath.Abs(s.programs.daemon[0])
	if err != nil {
		return nil, err
	}
	m := &multiplexer{socket: filepath.Join(dir, "s"), own: own}
	if _, err := m.tmux(ctx, "-f", os.DevNull, "new-session", "-d", "-x", "120", "-y", "40", "exec sh"); err != nil {
		return nil, err
	}
	defer func() { _, _ = m.tmux(context.WithoutCancel(ctx), "kill-server") }()
	for range adoptBeside {
		if _, err := m.tmux(ctx, "new-window", "-d", "exec cat"); err != nil {
			return nil, err
		}
	}
	client, err := pty.Start(pty.Command{Path: "tmux", Args: []string{"tmux", "-S", m.socket, "attach"}, Env: append(os.Environ(), "TERM=xterm-256color"), Size: pty.Size{Cols: 120, Rows: 41}})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	m.client = client
	var times [3][]float64
	for range max(3, s.rounds) {
		for way, first := range []int{-1, 0, 1} {
			took, err := m.round(ctx, way, first)
			if err != nil {
				return nil, err
			}
			times[way] = append(times[way], took)
		}
	}
	alone := median(times[0])
	return []row{
		{Part: "adopt", Name: "flood of a pane, at its client", Value: alone, Unit: "ms"},
		row{Part: "adopt", Name: "while it is adopted, times that", Value: median(times[1]) / alone}.most(floorAdopted),
		row{Part: "adopt", Name: fmt.Sprintf("while %d panes beside it are, times that", adoptBeside), Value: median(times[2]) / alone},
	}, nil
}

// multiplexer is a server of tmux whose first pane a client shows.
type multiplexer struct {
	socket, own string
	client      *pty.PTY
}

func (m *multiplexer) tmux(ctx context.Context, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, "tmux", append([]string{"-S", m.socket}, args...)...).Output()
}

// round floods the first pane once. way is 0 without readers, 1 with one of that pane, 2
// with one of each other pane.
func (m *multiplexer) round(ctx context.Context, way, first int) (ms float64, err error) {
	panes := []int{}
	switch way {
	case 1:
		panes = []int{first}
	case 2:
		for n := range adoptBeside {
			panes = append(panes, first+n)
		}
	}
	for _, n := range panes {
		r, err := m.reader(ctx, n)
		if err != nil {
			return 0, err
		}
		defer func() {
			_ = r.Kill(context.WithoutCancel(ctx), 0)
			r.Close()
		}()
	}
	if _, err := m.tmux(ctx, "send-keys", "-t", "%0", "clear; seq "+strconv.Itoa(adoptLines)+`; echo bench"-"end`, "Enter"); err != nil {
		return 0, err
	}
	began := time.Now()
	ended := time.AfterFunc(adoptDeadline, func() { m.client.Close() })
	defer ended.Stop()
	err = printed(m.client, adoptEnd)
	return millis(time.Since(began)), err
}

// reader adopts a pane, and reads what it writes once the picture is there.
func (m *multiplexer) reader(ctx context.Context, pane int) (*pty.PTY, error) {
	p, err := adopt.Find(ctx, adopt.Options{}, adopt.Target{Program: "tmux", Server: m.socket, Pane: "%" + strconv.Itoa(pane)})
	if err != nil {
		return nil, err
	}
	argv := append([]string{m.own, "adopt-reader", filepath.Dir(m.socket)}, adopt.ReaderArgs(p, false)...)
	r, err := pty.Start(pty.Command{Path: argv[0], Args: argv, Env: adopt.ReaderEnv(os.Getenv, "bench"), Size: p.Size})
	if err != nil {
		return nil, err
	}
	if err := printed(r, "Cwd="); err != nil {
		r.Close()
		return nil, err
	}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := r.Read(buf); err != nil {
				return
			}
		}
	}()
	return r, nil
}

// printed reads until text has come.
func printed(p *pty.PTY, text string) error {
	var last []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := p.Read(buf)
		last = append(last, buf[:n]...)
		if bytes.Contains(last, []byte(text)) {
			return nil
		}
		last = last[max(0, len(last)-len(text)):]
		if err != nil {
			return errors.Join(fmt.Errorf("no %q", text), err)
		}
	}
}
