package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// commandsPart runs commands of the command line as programs, in turn with tmux's
// commands for the same. Without tmux there are only times.
func commandsPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	id, _, err := r.start(ctx, self, childArg, "plain", "1")
	if err != nil {
		return nil, err
	}
	other, _ := exec.LookPath("tmux") // missing: no ratios
	tmux := func(args ...string) []string {
		return append([]string{other, "-S", filepath.Join(r.home, "tmux"), "-f", os.DevNull}, args...)
	}
	if other != "" {
		if err := r.runProgram(ctx, tmux("new-session", "-d", "sleep", "1000")...); err != nil {
			return nil, err
		}
		defer func() { _ = r.runProgram(context.WithoutCancel(ctx), tmux("kill-server")...) }()
	}
	own := s.programs.daemon[0]
	var rows []row
	for _, c := range []struct {
		args, other []string
		most        float64 // times tmux's
	}{
		{[]string{"--version"}, []string{"-V"}, 2.5},
		{[]string{"ls"}, []string{"ls"}, 2.5},
		{[]string{"read", "--tail", "10", id}, []string{"capture-pane", "-p"}, 2.5},
		{[]string{"run", "--detach", "--", "sleep", "1000"}, []string{"new-window", "sleep", "1000"}, 2},
	} {
		var ours, theirs []float64
		for range 4 * s.starts {
			if ours, err = r.timed(ctx, ours, append([]string{own}, c.args...)...); err != nil {
				return nil, err
			}
			if other == "" {
				continue
			}
			if theirs, err = r.timed(ctx, theirs, tmux(c.other...)...); err != nil {
				return nil, err
			}
		}
		name := "tether " + strings.Join(c.args[:min(2, len(c.args))], " ")
		rows = append(rows, row{Part: "commands", Name: name, Value: median(ours), Unit: "ms"})
		if other != "" {
			rows = append(rows, row{Part: "commands", Name: name + ", times tmux " + c.other[0], Value: median(ours) / median(theirs),
				Note: digits(median(theirs)) + " ms"}.most(c.most))
		}
	}
	return rows, nil
}

// timed runs a program and adds how long it took to times, in ms.
func (r *rig) timed(ctx context.Context, times []float64, argv ...string) ([]float64, error) {
	began := time.Now()
	err := r.runProgram(ctx, argv...)
	return append(times, millis(time.Since(began))), err
}

func (r *rig) runProgram(ctx context.Context, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(r.env, "TETHER_ALLOW_ROOT=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", argv, err, out)
	}
	return nil
}
