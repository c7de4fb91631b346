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
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
	"tether/internal/jsonspan"
)

// Floors relative to the other host: the least ratio of rates, and the greatest ratio of times and memory.
const (
	floorPeerPlain    = 2.0
	floorPeerColoured = 4.0
	floorPeerMany     = 6.0
	floorPeerEcho     = 0.5
	floorPeerIdle     = 0.2
	// floorPeerStalled is the most memory, in MiB, that our host may gain by a flood while an observer does not read: less than the flood's text.
	floorPeerStalled = 16.0
)

const (
	peerScript = "scripts/vscode-host.sh"
	peerDir    = "bin/tools/vscode-host"
	peerToken  = "bench-peer"
	peerWithin = 2 * time.Minute
)

// contender is a host that runs shells on its own machine for its clients.
type contender struct {
	endpoint client.Endpoint
	pid      int
	stop     func()
}

// peerPart makes tether-host and VS Code's agent host run the same programs in server-executed terminals, in turn.
func peerPart(ctx context.Context, s settings) ([]row, error) {
	var ours, theirs []result
	for range s.rounds {
		r, err := trial(ctx, s, func() (*contender, error) { return startOurs(ctx, s.programs) })
		if err != nil {
			return nil, fmt.Errorf("tether-host: %w", err)
		}
		ours = append(ours, r)
		if r, err = trial(ctx, s, func() (*contender, error) { return startVSCode(ctx) }); err != nil {
			return nil, fmt.Errorf("VS Code's agent host: %w", err)
		}
		theirs = append(theirs, r)
	}
	return besides(ours, theirs), nil
}

// besides returns the rows that compare the trials of two hosts.
func besides(ours, theirs []result) []row {
	const part = "beside VS Code's host"
	compare := func(name, unit string, value func(result) float64) row {
		a, b := medianOf(ours, value), medianOf(theirs, value)
		return row{Part: part, Name: name, Value: a / b, Note: fmt.Sprintf("%s against %s %s", digits(a), digits(b), unit)}
	}
	stalled := func(r result) float64 { return r.stalled }
	return []row{
		compare("throughput, plain", "MB/s", func(r result) float64 { return r.plain }).least(floorPeerPlain),
		compare("throughput, coloured", "MB/s", func(r result) float64 { return r.coloured }).least(floorPeerColoured),
		compare("10 observers, in all", "MB/s", func(r result) float64 { return r.ten }).least(floorPeerMany),
		compare("50 observers, in all", "MB/s", func(r result) float64 { return r.fifty }).least(floorPeerMany),
		compare("echo, p50", "ms", func(r result) float64 { return quantile(r.echo, 0.5) }),
		compare("echo, p99", "ms", func(r result) float64 { return quantile(r.echo, 0.99) }).most(floorPeerEcho),
		compare("idle memory", "MiB", func(r result) float64 { return r.idle }).most(floorPeerIdle),
		row{Part: part, Name: "memory gained by a flood to an observer that does not read", Value: medianOf(ours, stalled), Unit: "MiB",
			Note: fmt.Sprintf("against %s MiB", digits(medianOf(theirs, stalled)))}.most(floorPeerStalled),
	}
}

func medianOf(results []result, value func(result) float64) float64 {
	var all []float64
	for _, r := range results {
		all = append(all, value(r))
	}
	return median(all)
}

// result is the measurement of one host in one round.
type result struct {
	plain, coloured, ten, fifty float64   // MB/s; ten and fifty observers
	echo                        []float64 // ms
	idle, stalled               float64   // MiB
}

func startOurs(ctx context.Context, p programs) (*contender, error) {
	p.host = append(p.host[:len(p.host):len(p.host)], "--shells")
	r, err := newHostRig(ctx, p)
	if err != nil {
		return nil, err
	}
	return &contender{endpoint: r.host, pid: r.server.Process.Pid, stop: r.close}, nil
}

// startVSCode starts the host that scripts/test-tools.sh has installed.
func startVSCode(ctx context.Context) (*contender, error) {
	dir, err := filepath.Abs(peerDir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "vs", "out")); err != nil {
		return nil, fmt.Errorf("it is not installed; scripts/test-tools.sh vscode-host installs it: %w", err)
	}
	free, err := freePorts()
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(free)
	cmd := exec.Command("bash", peerScript, "start", dir, port, peerToken)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = os.RemoveAll(filepath.Join(dir, "data", "data", "logs")) // it logs all that it sends: gigabytes
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	c := &contender{endpoint: client.Endpoint{URL: "ws://127.0.0.1:" + port, Token: peerToken}, stop: stop}
	c.pid, err = poll(ctx, func() (int, error) {
		conn, err := client.Connect(ctx, c.endpoint, client.Options{ClientID: "bench-probe"})
		if err != nil {
			return 0, errNotYet
		}
		conn.Close()
		out, err := exec.CommandContext(ctx, "bash", peerScript, "pid", port).Output()
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(out)))
	})
	if err != nil {
		stop()
	}
	return c, err
}

// freePorts returns a free port whose successor is free, too: the host takes both. Each round gets new ports, because a process of the
// previous round may keep the old ones for a while.
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

// trial starts a host and measures it.
func trial(ctx context.Context, s settings, start func() (*contender, error)) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, peerWithin)
	defer cancel()
	c, err := start()
	if err != nil {
		return result{}, err
	}
	defer c.stop()
	var r result
	time.Sleep(settle)
	if r.idle, err = c.memory(); err != nil {
		return r, err
	}
	if r.echo, err = c.echoes(ctx, s.keys/2); err != nil {
		return r, fmt.Errorf("echo: %w", err)
	}
	for _, work := range []struct {
		corpus   string
		watchers int
		rate     *float64
	}{{"plain", 1, &r.plain}, {"coloured", 1, &r.coloured}, {"coloured", 10, &r.ten}, {"coloured", 50, &r.fifty}} {
		if *work.rate, err = c.flood(ctx, s, work.corpus, work.watchers, false); err != nil {
			return r, fmt.Errorf("%s to %d observers: %w", work.corpus, work.watchers, err)
		}
	}
	before, err := c.memory()
	if err != nil {
		return r, err
	}
	if _, err := c.flood(ctx, s, "coloured", 1, true); err != nil {
		return r, fmt.Errorf("with a stalled observer: %w", err)
	}
	after, err := c.memory()
	r.stalled = max(after-before, 0)
	return r, err
}

// memory is the resident memory of the host's process, in MiB.
func (c *contender) memory() (float64, error) {
	m, err := memoryOf(c.pid)
	return mib(m.rss), err
}

// shellTerminal is a server-executed terminal and the output that its one observer has received.
type shellTerminal struct {
	conn *client.Conn
	uri  string

	mu    sync.Mutex
	text  []byte         // the newest output, while show is nil
	bytes int64          // received since the last reset, as JSON
	news  change.Signal  // raised by each event
	over  bool           // the terminal has exited
	show  func(p []byte) // called with all text, with mu held, if not nil
	buf   []byte
}

var shellCount int // makes names unique; used by one goroutine

// open starts a shell, has it exec a program, and waits until the program prints "ready".
func (c *contender) open(ctx context.Context, argv ...string) (*shellTerminal, error) {
	shellCount++
	t := &shellTerminal{uri: fmt.Sprintf("ahp-terminal:/bench-shell-%d", shellCount)}
	id := fmt.Sprintf("bench-owner-%d", shellCount)
	var err error
	t.conn, err = client.Connect(ctx, c.endpoint, client.Options{ClientID: id, OnEnvelope: t.envelope})
	if err != nil {
		return nil, err
	}
	if err = t.conn.CreateTerminal(ctx, ahp.CreateTerminalParams{Channel: t.uri, Claim: ahp.ClientClaim(id)}); err == nil {
		_, err = t.conn.Subscribe(ctx, t.uri)
	}
	if err == nil {
		err = t.enter(ctx, "exec "+strings.Join(argv, " ")+"\r")
	}
	if err == nil {
		err = t.await(ctx, func() bool { return bytes.Contains(t.text, []byte("ready")) })
	}
	if err != nil {
		t.conn.Close()
	}
	return t, err
}

func (t *shellTerminal) enter(ctx context.Context, text string) error {
	_, err := t.conn.Dispatch(ctx, t.uri, ahp.TerminalInput{Data: text})
	return err
}

func (t *shellTerminal) envelope(v ahp.EnvelopeView) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch v.Kind {
	case ahp.ActionTerminalData:
		t.bytes += int64(len(v.Data)) - 2
		if t.show != nil {
			if text, err := jsonspan.AppendUnquote(t.buf[:0], v.Data); err == nil {
				t.buf = text
				t.show(text)
			}
			return
		}
		if text, err := jsonspan.AppendUnquote(t.text, v.Data); err == nil {
			t.text = text[max(0, len(text)-256):]
		}
	case ahp.ActionTerminalExited:
		t.over = true
	default:
		return
	}
	t.news.Raise()
}

// await returns when cond is true. It calls cond with the lock held, after each event.
func (t *shellTerminal) await(ctx context.Context, cond func() bool) error {
	for {
		t.mu.Lock()
		news, done := t.news.Next(), cond()
		t.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-t.conn.Done():
			return errors.Join(errors.New("the connection has ended"), t.conn.Err())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// flood runs a program that prints much, and returns how fast all observers together received the output, in MB/s of JSON text. With stalled,
// one more observer reads nothing.
func (c *contender) flood(ctx context.Context, s settings, kind string, watchers int, stalled bool) (float64, error) {
	corpus, err := findCorpus(kind)
	if err != nil {
		return 0, err
	}
	argv, err := newWork(corpus, max(1, s.megabytes/10)).argv()
	if err != nil {
		return 0, err
	}
	t, err := c.open(ctx, argv...)
	if err != nil {
		return 0, err
	}
	defer t.conn.Close()
	var g gallery
	defer g.close()
	for n := range watchers - 1 {
		if err := g.join(ctx, c.endpoint, n, t.uri, false); err != nil {
			return 0, err
		}
	}
	if stalled {
		o, err := stall(ctx, c.endpoint, t.uri)
		if err != nil {
			return 0, err
		}
		defer o.close()
	}
	t.mu.Lock()
	t.bytes = 0
	t.mu.Unlock()
	began := time.Now()
	if err := t.enter(ctx, "\r"); err != nil {
		return 0, err
	}
	if err := t.await(ctx, func() bool { return t.over }); err != nil {
		return 0, err
	}
	took := time.Since(began)
	others, _ := g.count()
	return float64(t.bytes+others) / 1e6 / took.Seconds(), nil
}

// echoes types keys and returns how long the echo of each took, in ms.
func (c *contender) echoes(ctx context.Context, keys int) ([]float64, error) {
	t, err := c.open(ctx, "sh", "-c", "'"+echoing[2]+"'")
	if err != nil {
		return nil, err
	}
	defer t.conn.Close()
	var all []float64
	for n := range keys {
		k := key(n)
		t.mu.Lock()
		t.bytes = 0
		t.mu.Unlock()
		began := time.Now()
		if err := t.enter(ctx, string(k)); err != nil {
			return nil, err
		}
		if err := t.await(ctx, func() bool { return t.bytes > 0 }); err != nil {
			return nil, err
		}
		all = append(all, millis(time.Since(began)))
	}
	return all, nil
}
