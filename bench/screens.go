package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// floorsScreens are the most CPU time of daemon and host together, in ms/MB of output,
// that the screen at the oldest kept byte may add.
var floorsScreens = []struct {
	corpus string
	most   float64
}{{"plain", 1}, {"coloured", 4}, {"redraw", 25}}

// withoutScreens are the functions that feed dropped output to the screen, by file. If
// they return at once, there are no screens, and everything else works as before.
var withoutScreens = map[string]struct{ function, end string }{
	"agent/output/oldest.go": {"func (l *Log) leave(to int64) {\n", "return\n"},
	"host/output/oldest.go":  {"func (l *Log) leave(runs []run) {\n", "return\n"},
}

// screensPart compares the programs with builds of them that keep no screens, in rounds
// that alternate.
func screensPart(ctx context.Context, s settings) ([]row, error) {
	dir, err := os.MkdirTemp("", "bench-screens")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := buildWithoutScreens(ctx, dir); err != nil {
		return nil, err
	}
	var rows []row
	for _, kept := range []bool{false, true} { // whether the logs keep all output
		daemon, host := "", []string{}
		if kept {
			daemon, host = "[terminals]\nlog_bytes = \"32MiB\"\ntotal_log_bytes = \"2GiB\"\n", []string{"--scrollback=33554432"}
		}
		with, without := s.programs, built(dir)
		with.host, without.host = append(slices.Clip(with.host), host...), append(without.host, host...)
		some, err := compareScreens(ctx, s, with, without, daemon, kept)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func compareScreens(ctx context.Context, s settings, with, without programs, config string, kept bool) ([]row, error) {
	var rigs []*rig
	for _, p := range []programs{with, without} {
		r, err := newRigWith(ctx, p, config)
		if err != nil {
			return nil, err
		}
		defer r.close()
		rigs = append(rigs, r)
	}
	var rows []row
	for _, kind := range floorsScreens {
		c, err := findCorpus(kind.corpus)
		if err != nil {
			return nil, err
		}
		r := row{Part: "screens", Name: "added to " + kind.corpus, Unit: "ms/MB"}.most(kind.most)
		w := newWork(c, s.megabytes/4)
		if kept {
			r.Name, r.Limit, r.Bound = r.Name+", while all is kept", 0, ""
			w = newWork(c, s.megabytes/20)
		}
		var took [2][]float64
		for range 2 * s.rounds {
			for i, r := range rigs {
				used, err := r.carryCPU(ctx, w)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", kind.corpus, err)
				}
				took[i] = append(took[i], used)
			}
		}
		r.Value = median(took[0]) - median(took[1])
		r.Note = fmt.Sprintf("%s with screens, %s without", digits(median(took[0])), digits(median(took[1])))
		rows = append(rows, r)
	}
	return rows, nil
}

// carryCPU returns the CPU time of daemon and host for a terminal that prints w, in
// ms/MB.
func (r *rig) carryCPU(ctx context.Context, w work) (float64, error) {
	before, err := r.usage()
	if err != nil {
		return 0, err
	}
	if _, err := r.carry(ctx, w); err != nil {
		return 0, err
	}
	after, err := r.usage()
	return millis(after.daemon-before.daemon+after.host-before.host) / (float64(w.want.bytes) / 1e6), err
}

// withoutBody returns the text of a Go file with end, a return statement, at the start of
// a function.
func withoutBody(name, function, end string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	before, after, found := strings.Cut(string(text), function)
	if !found {
		return "", fmt.Errorf("%s has no %q any more", name, function)
	}
	return before + function + end + after, nil
}

// buildWithoutScreens builds programs that keep no screens into dir, with the settings of
// make build. The programs have no switch for that, so go build reads changed copies of
// two files (-overlay).
func buildWithoutScreens(ctx context.Context, dir string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f={{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("directory of the module: %w", err)
	}
	module := strings.TrimSpace(string(root))
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for name, f := range withoutScreens {
		source := filepath.Join(module, filepath.FromSlash(name))
		text, err := withoutBody(source, f.function, f.end)
		if err != nil {
			return err
		}
		overlay.Replace[source] = filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(overlay.Replace[source], []byte(text), 0o600); err != nil {
			return err
		}
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay="+file, "-buildvcs=auto", "-trimpath", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "./cmd/tether", "./cmd/tether-host")
	build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building without screens: %w: %s", err, out)
	}
	return nil
}
