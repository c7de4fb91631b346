package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"tether/agent/localapi"
)

const (
	floorPerViewer   = 64.0  // KiB of the daemon's memory for each viewer of a silent terminal
	floorPerFlooded  = 512.0 // the same for a terminal that floods
	floorBesideFlood = 10.0  // ms until the echo of a key at another terminal, p99
)

// viewersPart measures user interfaces on the local WebSocket: the memory for each, and
// what many viewers of a flooding terminal cost that terminal and another one.
func viewersPart(ctx context.Context, s settings) ([]row, error) {
	const part = "local interfaces"
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	silent, err := r.private(ctx, "sleep", "1000")
	if err != nil {
		return nil, err
	}
	empty, err := r.settled(s.settle)
	if err != nil {
		return nil, err
	}
	idle, err := r.show(silent, s.viewers, false)
	if err != nil {
		return nil, err
	}
	with, err := r.settled(s.settle)
	idle.stop()
	if err != nil {
		return nil, err
	}
	rows := []row{row{Part: part, Name: fmt.Sprintf("memory per viewer, of %d of a silent terminal", s.viewers), Unit: "KiB",
		Value: float64(with.rss-empty.rss) / 1024 / float64(s.viewers)}.most(floorPerViewer)}
	flooded, err := r.viewFlood(ctx, s, empty)
	return append(rows, flooded...), err
}

// viewFlood measures viewers of a flood. empty is the daemon's memory without viewers.
func (r *rig) viewFlood(ctx context.Context, s settings, empty memory) ([]row, error) {
	const part = "local interfaces"
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	id, err := r.private(ctx, self, childArg, "coloured", "0")
	if err == nil {
		err = r.typeLine(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	alone, _, err := r.over(ctx, id, s.viewing)
	if err != nil {
		return nil, err
	}
	stalledViewers := (s.viewers + 9) / 10
	many, err := r.show(id, s.viewers, false)
	if err != nil {
		return nil, err
	}
	defer many.stop()
	stalled, err := r.show(id, stalledViewers, true)
	if err != nil {
		return nil, err
	}
	defer stalled.stop()
	before, err := many.count()
	if err != nil {
		return nil, err
	}
	rate, cpu, err := r.over(ctx, id, s.viewing)
	if err != nil {
		return nil, err
	}
	after, err := many.more(ctx, before)
	if err != nil {
		return nil, err
	}
	echoes, err := r.keysAt(ctx, s.keys/4)
	if err != nil {
		return nil, err
	}
	now, err := memoryOf(r.daemon.Process.Pid)
	if err != nil {
		return nil, err
	}
	shown := float64(after.Bytes-before.Bytes) / 1e6 / s.viewing.Seconds()
	log := float64(4 << 20) // of the flooding terminal
	rows := []row{
		{Part: part, Name: "flood without a viewer", Value: alone, Unit: "MB/s"},
		{Part: part, Name: fmt.Sprintf("flood with %d, and %d that do not read", s.viewers, stalledViewers), Value: rate, Unit: "MB/s",
			Note: fmt.Sprintf("the daemon used %s of a core", digits(cpu))},
		{Part: part, Name: "JSON to all viewers", Value: shown, Unit: "MB/s",
			Note: fmt.Sprintf("each was brought up to date %s times a second", digits(float64(after.Attached-before.Attached)/float64(s.viewers)/s.viewing.Seconds()))},
		row{Part: part, Name: "memory per viewer of a flood", Value: (float64(now.rss-empty.rss) - log) / 1024 / float64(s.viewers+stalledViewers), Unit: "KiB"}.most(floorPerFlooded),
	}
	keys := quantiles(part, "key at another terminal meanwhile", echoes)
	keys[2] = keys[2].most(floorBesideFlood)
	return append(rows, keys...), nil
}

// private starts a private terminal with the policy lag.
func (r *rig) private(ctx context.Context, argv ...string) (string, error) {
	t, err := r.door.Spawn(ctx, localapi.SpawnRequest{Command: argv, Env: r.env, Cwd: r.home, Private: true, OnSlow: "lag"})
	return t.ID, err
}

// over measures for span, or longer until there is output: how fast the terminal prints,
// in MB/s, and how many cores the daemon uses.
func (r *rig) over(ctx context.Context, id string, span time.Duration) (rate, cores float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, span+startWithin)
	defer cancel()
	first, err := r.door.Find(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	before, err := r.usage()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	time.Sleep(span)
	last, err := poll(ctx, func() (localapi.Terminal, error) { // on a busy machine, output may take longer than span
		last, err := r.door.Find(ctx, id)
		if err == nil && last.Bytes == first.Bytes {
			err = errNotYet
		}
		return last, err
	})
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(began).Seconds()
	after, err := r.usage()
	return float64(last.Bytes-first.Bytes) / 1e6 / took, (after.daemon - before.daemon).Seconds() / took, err
}

// keysAt types keys at a new terminal and returns how long the echo of each took, in ms.
func (r *rig) keysAt(ctx context.Context, keys int) ([]float64, error) {
	id, err := r.private(ctx, echoing...)
	if err != nil {
		return nil, err
	}
	k, err := newKeyboard(ctx, r, id, "")
	if err != nil {
		return nil, err
	}
	defer k.close()
	var all []float64
	for n := range keys {
		took, _, err := k.press(ctx, key(n))
		if err != nil {
			return nil, err
		}
		all = append(all, millis(took))
	}
	return all, nil
}

// viewerProcess is a process with viewers of one terminal.
type viewerProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// show starts n viewers of a terminal, and returns when each has received the existing
// output.
func (r *rig) show(id string, n int, stalled bool) (*viewerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := []string{self, childArg, "view", r.socket, id, fmt.Sprint(n), fmt.Sprint(stalled)}
	a := &viewerProcess{cmd: r.command(argv)}
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	a.out = json.NewDecoder(bufio.NewReader(out))
	var ready shown
	if err := a.out.Decode(&ready); err != nil {
		a.stop()
		return nil, fmt.Errorf("viewers: %w", err)
	}
	return a, nil
}

// count returns what the viewers have received so far.
func (a *viewerProcess) count() (shown, error) {
	var s shown
	if _, err := io.WriteString(a.in, "\n"); err != nil {
		return s, err
	}
	return s, a.out.Decode(&s)
}

// more waits until the viewers have received more bytes than before, and returns count.
func (a *viewerProcess) more(ctx context.Context, before shown) (shown, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	return poll(ctx, func() (shown, error) {
		s, err := a.count()
		if err == nil && s.Bytes == before.Bytes {
			err = errNotYet
		}
		return s, err
	})
}

func (a *viewerProcess) stop() {
	a.in.Close()
	if err := a.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		_ = a.cmd.Process.Kill()
	}
}
