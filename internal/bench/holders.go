package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tether/agent/holder"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/platform/proc"
	"tether/platform/pty"
)

const (
	floorHolderPSS   = 2.0  // MB of each
	floorHolderReady = 10.0 // ms until a holder and its child run
)

// holdersPart measures the cost of holders, and how long another daemon takes to adopt their terminals.
func holdersPart(ctx context.Context, s settings) ([]row, error) {
	var rows []row
	for _, measure := range []func(context.Context, settings) ([]row, error){holderReady, holderMany} {
		some, err := measure(ctx, s)
		if err != nil {
			return rows, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// holderReady measures the time until a holder and its child run and the connection is there.
func holderReady(ctx context.Context, s settings) ([]row, error) {
	home, err := os.MkdirTemp(shortTemp(), "tb")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	path, err := filepath.Abs(s.programs.daemon[0])
	if err != nil {
		return nil, err
	}
	if s.programs.daemon[1] != "daemon" {
		return nil, errors.New("holders are measured with the built programs")
	}
	o := holder.Options{Dir: filepath.Join(home, "h"), Path: path, Argv: []string{"tether", "holder"}, Key: make([]byte, holder.KeyBytes)}
	var took []float64
	for n := range 10 * s.starts {
		began := time.Now()
		c, err := holder.Spawn(ctx, o, holder.Spec{ID: strconv.Itoa(n), Command: pty.Command{Path: "/bin/sleep", Args: []string{"sleep", "1000"}}})
		if err != nil {
			return nil, err
		}
		took = append(took, millis(time.Since(began)))
		if err := errors.Join(c.Kill(ctx, 0), func() error { c.Wait(); return c.Forget(ctx) }()); err != nil {
			return nil, err
		}
		c.Close()
	}
	return []row{row{Part: "holders", Name: "ready, with its child", Value: median(took), Unit: "ms",
		Note: "p99 " + digits(quantile(took, 0.99))}.most(floorHolderReady)}, nil
}

// holderMany measures the memory of many idle holders, and the time that a new daemon takes to adopt them after the old one was killed.
func holderMany(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for range s.holders {
		if _, err := r.door.Spawn(ctx, localapi.SpawnRequest{Command: []string{"sleep", "1000"}, Env: r.env, Cwd: r.home, Private: true}); err != nil {
			return nil, err
		}
	}
	time.Sleep(settle)
	rss, pss, err := r.holderMemory()
	if err != nil {
		return nil, err
	}
	rows := []row{
		row{Part: "holders", Name: fmt.Sprintf("PSS each, of %d", s.holders), Value: pss, Unit: "MB"}.most(floorHolderPSS),
		{Part: "holders", Name: "RSS each", Value: rss, Unit: "MB"},
	}
	var took []float64
	for range s.starts {
		one, err := r.restart(ctx, s)
		if err != nil {
			return rows, err
		}
		took = append(took, millis(one))
	}
	return append(rows, row{Part: "holders", Name: fmt.Sprintf("from the start of a daemon until it has taken up %d", s.holders), Value: median(took),
		Unit: "ms", Note: "without any " + digits(millis(r.daemonReady))}), nil
}

// restart kills the daemon, starts another one, and returns how long that one takes to have all terminals.
func (r *rig) restart(ctx context.Context, set settings) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := r.daemon.Process.Kill(); err != nil {
		return 0, err
	}
	_ = r.daemon.Wait()
	cmd := r.command(set.programs.daemon)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	r.daemon = cmd
	s, err := poll(ctx, func() (localapi.Status, error) {
		s, err := r.door.Status(ctx)
		if errors.Is(err, localclient.ErrNotRunning) || err == nil && (s.Pid != cmd.Process.Pid || s.Holders.Alive != set.holders) {
			err = errNotYet // on a busy machine, the daemon answers before it has adopted all
		}
		return s, err
	})
	if err != nil {
		err = fmt.Errorf("%d of %d terminals were taken up: %w", s.Holders.Alive, set.holders, err)
	}
	return time.Since(began), err
}

// holderMemory returns the mean memory of the daemon's holders, in MB. It counts all child processes of the daemon as holders.
func (r *rig) holderMemory() (rss, pss float64, err error) {
	all, err := proc.List()
	if err != nil {
		return 0, 0, err
	}
	n := 0
	for _, p := range all {
		if p.Parent != r.daemon.Process.Pid {
			continue
		}
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.Pid))
		if err != nil {
			return 0, 0, fmt.Errorf("memory of a holder: this system does not tell it: %w", err)
		}
		n++
		rss += rollup(string(data), "Rss:")
		pss += rollup(string(data), "Pss:")
	}
	if n == 0 {
		return 0, 0, errors.New("the daemon has no holders")
	}
	return rss / float64(n), pss / float64(n), nil
}

// rollup returns the value called name in the text of smaps_rollup, in MB; 0 if it is missing.
func rollup(text, name string) float64 {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == name {
			kb, _ := strconv.ParseFloat(words[1], 64)
			return kb * 1024 / 1e6
		}
	}
	return 0
}
