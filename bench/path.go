package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tether/internal/jsonspan"
	"tether/jsonrpc/wsconn"
	"tether/platform/proc"
)

// Floors for tether as installed, each a ratio to another path in the same run.
const (
	floorOfRelay      = 0.95 // throughput, to relaysock64-hand-64
	floorCPUOfVSCode  = 0.16 // CPU time, to VS Code's host
	floorEchoOfRelay  = 1.25 // addition to the bare pty's echo, p50, to relaysock64-hand-64
	floorEchoOfRelay9 = 1.4  // the same, p99
	floorBesideVSCode = 0.5  // echo beside a flood, p99, to VS Code's host
	floorBesideRelay  = 1.2  // echo beside a flood, p50 and p99, to relaywin64-hand-64
	floorTyped        = 0.55 // throughput of a flood while somebody types elsewhere, to the same without

	// leastAddition is the least that a reference peer must add to the bare pty's echo
	// before ours can be compared with it, in ms. On a busy machine the bare pty's p99
	// may exceed the peer's.
	leastAddition = 0.001
)

// A path carries the output of programs on ptys to viewers.
type path interface {
	// open runs argv in a terminal. It calls show with the output, from one goroutine at
	// a time.
	open(ctx context.Context, argv []string, show func(p []byte)) (*screen, error)
	// pids are the processes that carry the output.
	pids() []int
	stop()
}

// screen is a terminal with its viewer. write types there.
type screen struct {
	write func(p []byte) error
	close func()
}

// tetherPath is the daemon and the host. Keys come through the WebSocket of user
// interfaces.
type tetherPath struct{ *rig }

func (p tetherPath) open(ctx context.Context, argv []string, show func([]byte)) (*screen, error) {
	id, uri, err := p.start(ctx, argv...)
	if err != nil {
		return nil, err
	}
	o, err := p.watch(ctx, uri, show)
	if err != nil {
		return nil, err
	}
	conn, err := dialUI(ctx, p.socket)
	if err != nil {
		o.close()
		return nil, err
	}
	go func() { // the daemon sends lists of terminals
		for {
			if _, err := conn.Recv(context.Background()); err != nil {
				return
			}
		}
	}()
	return &screen{func(keys []byte) error {
		return conn.Send(ctx, fmt.Appendf(nil, `{"type":"pty:input","id":%q,"data":%q}`, id, keys))
	}, func() {
		_ = p.kill(ctx, id) // rig.close kills it, too
		conn.Close()
		o.close()
	}}, nil
}

func (p tetherPath) stop() { p.close() }

// pids are the daemon, the host and the holders.
func (p tetherPath) pids() []int {
	pids := []int{p.daemon.Process.Pid, p.server.Process.Pid}
	all, _ := proc.List()
	for _, one := range all {
		if one.Parent == p.daemon.Process.Pid {
			pids = append(pids, one.Pid)
		}
	}
	return pids
}

// relayPath is a reference peer.
type relayPath struct {
	host, daemon      *exec.Cmd
	hostAt, daemonAt  string
	hostEnd, daemonIn io.Closer
}

func startRelay(held bool) (path, error) {
	p := &relayPath{}
	var err error
	if p.host, p.hostEnd, p.hostAt, err = relayProcess("relay-host", "-"); err != nil {
		return nil, err
	}
	p.daemon, p.daemonIn, p.daemonAt, err = relayProcess("relay-daemon", "ws://"+p.hostAt, strconv.FormatBool(held))
	if err != nil {
		p.hostEnd.Close()
		_ = p.host.Wait()
		return nil, err
	}
	return p, nil
}

// relayProcess starts a part of a reference peer and returns the address that it prints.
// The process ends when end is closed.
func relayProcess(args ...string) (cmd *exec.Cmd, end io.Closer, at string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, "", err
	}
	cmd = exec.Command(self, append([]string{childArg}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return cmd, in, strings.TrimSpace(line), err
}

func (p *relayPath) open(ctx context.Context, argv []string, show func([]byte)) (*screen, error) {
	keys, err := net.Dial("tcp", p.daemonAt)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(argv)
	if err == nil {
		_, err = keys.Write(append(line, '\n'))
	}
	id := ""
	if err == nil {
		id, err = bufio.NewReader(keys).ReadString('\n')
	}
	var conn *wsconn.Conn
	if err == nil {
		conn, err = wsconn.Dial(ctx, "ws://"+p.hostAt+"/view?id="+strings.TrimSpace(id), wsconn.Options{})
	}
	if err != nil {
		keys.Close()
		return nil, err
	}
	go func() {
		var text []byte
		for {
			msg, err := conn.Recv(context.Background())
			if err != nil {
				return
			}
			_, quoted, err := cutRelayed(msg)
			if err != nil {
				return
			}
			if text, err = jsonspan.AppendUnquote(text[:0], quoted); err != nil {
				return
			}
			show(text)
		}
	}()
	return &screen{func(key []byte) error { _, err := keys.Write(key); return err }, func() { keys.Close(); conn.Close() }}, nil
}

func (p *relayPath) pids() []int {
	pids := []int{p.host.Process.Pid, p.daemon.Process.Pid}
	all, _ := proc.List()
	for _, one := range all {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", one.Pid)); err == nil && one.Parent == p.daemon.Process.Pid &&
			bytes.Contains(line, []byte("\x00relay-holder\x00")) {
			pids = append(pids, one.Pid)
		}
	}
	return pids
}

func (p *relayPath) stop() {
	p.daemonIn.Close()
	_ = p.daemon.Wait()
	p.hostEnd.Close()
	_ = p.host.Wait()
}

// Names of the paths; the first is the installed one.
const (
	asInstalled  = "as installed"
	relayPlain   = "relaywin64-hand-64"
	relayHeld    = "relaysock64-hand-64"
	besideVSCode = "VS Code's host"
)

type namedPath struct {
	name  string
	start func(context.Context) (path, error)
}

func allPaths(s settings) []namedPath {
	paths := []namedPath{
		{asInstalled, func(ctx context.Context) (path, error) {
			r, err := newRig(ctx, s.programs)
			return tetherPath{r}, err
		}},
		{relayPlain, func(context.Context) (path, error) { return startRelay(false) }},
		{relayHeld, func(context.Context) (path, error) { return startRelay(true) }},
	}
	if vscodeInstalled() {
		paths = append(paths, namedPath{besideVSCode, startVSCode})
	}
	return paths
}

// walked is the measurement of one path in one round. Echoes are in ms.
type walked struct {
	plain, coloured, cpu float64   // MB/s, MB/s, ms/MB
	alone, beside        []float64 // echoes without a flood, and beside one
	quiet, typed         float64   // MB/s of the flood, without and with somebody who types elsewhere
}

// pathPart measures the same programs on all paths, in turn.
func pathPart(ctx context.Context, s settings) ([]row, error) {
	all := map[string][]walked{}
	var bare []float64
	paths := allPaths(s)
	for range s.rounds {
		some, err := bareEchoes(s.keys / 2)
		if err != nil {
			return nil, err
		}
		bare = append(bare, some...)
		for _, p := range paths {
			w, err := walk(ctx, s, p.start)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			all[p.name] = append(all[p.name], w)
		}
	}
	return pathRows(paths, bare, all), nil
}

// pathRows compares our paths with the others.
func pathRows(paths []namedPath, bare []float64, all map[string][]walked) []row {
	const part = "the whole path"
	rows := quantiles(part, "bare pty: echo", bare)
	type measure struct {
		name, unit string
		value      func(walked) float64
	}
	measures := []measure{
		{"plain", "MB/s", func(w walked) float64 { return w.plain }},
		{"coloured", "MB/s", func(w walked) float64 { return w.coloured }},
		{"CPU of all servers, coloured", "ms/MB", func(w walked) float64 { return w.cpu }},
		{"echo, p50", "ms", func(w walked) float64 { return quantile(w.alone, 0.5) }},
		{"echo, p99", "ms", func(w walked) float64 { return quantile(w.alone, 0.99) }},
		{"echo beside a flood, p50", "ms", func(w walked) float64 { return quantile(w.beside, 0.5) }},
		{"echo beside a flood, p99", "ms", func(w walked) float64 { return quantile(w.beside, 0.99) }},
		{"the flood while somebody types, of that without", "", func(w walked) float64 { return w.typed / w.quiet }},
	}
	of := func(name string, n int) float64 {
		var values []float64
		for _, w := range all[name] {
			values = append(values, measures[n].value(w))
		}
		return median(values)
	}
	for n, m := range measures {
		for _, p := range paths {
			rows = append(rows, row{Part: part, Name: p.name + ": " + m.name, Value: of(p.name, n), Unit: m.unit})
		}
	}
	ratio := func(n int, name string) row {
		return row{Part: part, Name: measures[n].name + ", of " + name, Value: of(asInstalled, n) / of(name, n)}
	}
	above := func(n int, at float64) row {
		r := row{Part: part, Name: measures[n].name + ", above the bare pty, of " + relayHeld}
		b, reference := quantile(bare, at), of(relayHeld, n)
		if reference-b < leastAddition {
			r.Unjudged = fmt.Sprintf("cannot be judged in this run: the bare pty took %s ms, %s %s ms", digits(b), relayHeld, digits(reference))
			return r
		}
		r.Value = (of(asInstalled, n) - b) / (reference - b)
		return r
	}
	rows = append(rows, ratio(0, relayHeld).least(floorOfRelay), ratio(1, relayHeld).least(floorOfRelay),
		above(3, 0.5).most(floorEchoOfRelay), above(4, 0.99).most(floorEchoOfRelay9),
		ratio(5, relayPlain).most(floorBesideRelay), ratio(6, relayPlain).most(floorBesideRelay),
		row{Part: part, Name: measures[7].name, Value: of(asInstalled, 7)}.least(floorTyped))
	if len(all[besideVSCode]) > 0 {
		rows = append(rows, ratio(2, besideVSCode).most(floorCPUOfVSCode), ratio(6, besideVSCode).most(floorBesideVSCode))
	}
	return rows
}

// walk starts a path and measures it.
func walk(ctx context.Context, s settings, start func(context.Context) (path, error)) (w walked, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*startWithin)
	defer cancel()
	p, err := start(ctx)
	if err != nil {
		return w, err
	}
	defer p.stop()
	if w.plain, _, err = pass(ctx, p, "plain", s.megabytes/5); err != nil {
		return w, fmt.Errorf("plain: %w", err)
	}
	if w.coloured, w.cpu, err = pass(ctx, p, "coloured", s.megabytes/5); err != nil {
		return w, fmt.Errorf("coloured: %w", err)
	}
	if w.alone, err = typeAt(ctx, p, s.keys/2); err != nil {
		return w, fmt.Errorf("echo: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return w, err
	}
	var shown atomic.Int64
	f, err := p.open(ctx, []string{self, childArg, "coloured", "0"}, func(b []byte) { shown.Add(int64(len(b))) })
	if err != nil {
		return w, err
	}
	defer f.close()
	if err := until(ctx, func() bool { return shown.Load() > 0 }); err != nil {
		return w, err
	}
	if err := f.write([]byte("\n")); err != nil {
		return w, err
	}
	rate := func(from int64, began time.Time) float64 {
		return float64(shown.Load()-from) / 1e6 / time.Since(began).Seconds()
	}
	from, began := shown.Load(), time.Now()
	if err := sleep(ctx, s.flow/2); err != nil {
		return w, err
	}
	w.quiet = rate(from, began)
	from, began = shown.Load(), time.Now()
	if w.beside, err = typeAt(ctx, p, s.keys/2); err != nil {
		return w, fmt.Errorf("echo beside a flood: %w", err)
	}
	w.typed = rate(from, began)
	return w, nil
}

// pass runs a program that prints about that many megabytes. It returns how fast all of
// the output reached a viewer, in MB/s, and the CPU time of the path's processes, in
// ms/MB.
func pass(ctx context.Context, p path, kind string, megabytes int) (rate, cpu float64, err error) {
	c, err := findCorpus(kind)
	if err != nil {
		return 0, 0, err
	}
	w := newWork(c, max(1, megabytes))
	argv, err := w.argv()
	if err != nil {
		return 0, 0, err
	}
	var shown atomic.Int64
	sc, err := p.open(ctx, argv, func(b []byte) { shown.Add(int64(len(b))) })
	if err != nil {
		return 0, 0, err
	}
	defer sc.close()
	if err := until(ctx, func() bool { return shown.Load() > 0 }); err != nil {
		return 0, 0, err
	}
	before := cpuOf(p.pids())
	first, began := shown.Load(), time.Now()
	if err := sc.write([]byte("\n")); err != nil {
		return 0, 0, err
	}
	want := w.want.bytes - int64(len(onTerminal([]byte(childReady))))
	if err := until(ctx, func() bool { return shown.Load()-first >= want }); err != nil {
		return 0, 0, fmt.Errorf("%d of %d bytes came: %w", shown.Load()-first, want, err)
	}
	took, mb := time.Since(began), float64(want)/1e6
	return mb / took.Seconds(), (cpuOf(p.pids()) - before) / mb, nil
}

// cpuOf is the CPU time of the processes together, in ms. A process whose time the system
// does not report counts as 0.
func cpuOf(pids []int) float64 {
	sum := 0.0
	for _, pid := range pids {
		took, _ := cpuTime(pid)
		sum += millis(took)
	}
	return sum
}

// keyPause is the time between an echo and the next key: shorter than between keys of a
// person, but not zero.
const keyPause = 2 * time.Millisecond

// drainPause is the time in which what a new terminal prints has come.
const drainPause = 250 * time.Millisecond

// typeAt types keys at a new terminal and returns how long the echo of each took, in ms.
func typeAt(ctx context.Context, p path, keys int) ([]float64, error) {
	came := make(chan time.Time, 64)
	sc, err := p.open(ctx, echoing, func([]byte) { came <- time.Now() })
	if err != nil {
		return nil, err
	}
	defer sc.close()
	timeout := time.NewTimer(keyTimeout)
	defer timeout.Stop()
	var all []float64
	for n := -1; n < keys; n++ { // before the first key, the program prints that it is ready
		began := time.Now()
		if n >= 0 {
			k := key(n)
			began = time.Now()
			if err := sc.write([]byte{k}); err != nil {
				return nil, err
			}
		}
		select {
		case at := <-came:
			if n >= 0 {
				all = append(all, millis(at.Sub(began)))
			}
		case <-timeout.C:
			return nil, errors.New("a key did not come back")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		time.Sleep(keyPause)
		if n < 0 {
			time.Sleep(drainPause)
			for len(came) > 0 {
				<-came
			}
		}
	}
	return all, nil
}
