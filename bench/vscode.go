package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/jsonspan"
)

const (
	vscodeScript = "scripts/vscode-host.sh"
	vscodeDir    = "bin/tools/vscode-host"
	vscodeToken  = "bench-peer"
)

// vscodeInstalled reports whether scripts/test-tools.sh has installed VS Code's host.
func vscodeInstalled() bool {
	_, err := os.Stat(filepath.Join(vscodeDir, "vs", "out"))
	return err == nil
}

// vscodePath is VS Code's host, which runs the programs in terminals of its own.
type vscodePath struct {
	endpoint client.Endpoint
	pid      int
	end      func()
	opened   int // terminals, for their names
}

func startVSCode(ctx context.Context) (path, error) {
	dir, err := filepath.Abs(vscodeDir)
	if err != nil {
		return nil, err
	}
	free, err := freePorts()
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(free)
	state, err := os.MkdirTemp("", "bench-vscode")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("bash", vscodeScript, "start", dir, port, vscodeToken, state)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(state))
	}
	p := &vscodePath{endpoint: client.Endpoint{URL: "ws://127.0.0.1:" + port, Token: vscodeToken}, end: func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = os.RemoveAll(state) // it logs all that it sends: gigabytes
	}}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	p.pid, err = poll(ctx, func() (int, error) {
		conn, err := client.Connect(ctx, p.endpoint, client.Options{ClientID: "bench-probe"})
		if err != nil {
			return 0, errNotYet
		}
		conn.Close()
		out, err := exec.CommandContext(ctx, "bash", vscodeScript, "pid", port).Output()
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(out)))
	})
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// freePorts returns a free port whose successor is free, too: the host takes both. Each
// round gets new ports, because a process of the previous round may keep the old ones for
// a while.
func freePorts() (int, error) {
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		defer first.Close()
		port := first.Addr().(*net.TCPAddr).Port
		second, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+1)))
		if err == nil {
			second.Close()
			return port, nil
		}
	}
	return 0, errors.New("there are no two free ports in a row")
}

func (p *vscodePath) pids() []int { return []int{p.pid} }
func (p *vscodePath) stop()       { p.end() }

// open starts a shell, has it exec the program, and waits until the program prints
// "ready".
func (p *vscodePath) open(ctx context.Context, argv []string, show func([]byte)) (*screen, error) {
	if argv[0] == echoing[0] {
		argv = []string{"sh", "-c", "'" + echoing[2] + "'"}
	}
	p.opened++
	uri, owner := fmt.Sprintf("ahp-terminal:/bench-shell-%d", p.opened), fmt.Sprintf("bench-owner-%d", p.opened)
	t := &shellText{show: show, ready: make(chan struct{})}
	conn, err := client.Connect(ctx, p.endpoint, client.Options{ClientID: owner, OnEnvelope: t.envelope})
	if err != nil {
		return nil, err
	}
	enter := func(keys []byte) error {
		_, err := conn.Dispatch(ctx, uri, ahp.TerminalInput{Data: string(keys)})
		return err
	}
	if err = conn.CreateTerminal(ctx, ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim(owner)}); err == nil {
		_, err = conn.Subscribe(ctx, uri)
	}
	if err == nil {
		err = enter([]byte("exec " + strings.Join(argv, " ") + "\r"))
	}
	if err == nil {
		err = wait(ctx, t.ready, "the program's first line")
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &screen{enter, conn.Close}, nil
}

// shellText passes the output of a program that a shell has started to show, from the
// program's "ready" on.
type shellText struct {
	show  func(p []byte)
	ready chan struct{} // closed when the program has printed it

	mu   sync.Mutex
	text []byte // the newest output, while the program is not ready
	on   bool
}

func (t *shellText) envelope(v ahp.EnvelopeView) {
	if v.Kind != ahp.ActionTerminalData {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on {
		t.text = t.text[:0]
	}
	text, err := jsonspan.AppendUnquote(t.text, v.Data)
	if err != nil {
		return
	}
	t.text = text
	switch {
	case t.on:
		t.show(text)
	case bytes.Contains(text, []byte("ready")):
		t.on = true
		t.show([]byte("ready"))
		close(t.ready)
	default:
		t.text = text[max(0, len(text)-256):]
	}
}
