package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// program is where a target's program is built.
func (r *release) program(t target, name string) string {
	return filepath.Join(r.work, t.os+"-"+t.arch, t.exe(name))
}

// build builds the programs, one target after the other: go build uses all processors.
// Compiled packages are shared with make build and make lint, whose flags agree; only
// linking is new.
func (r *release) build(ctx context.Context) error {
	for _, t := range r.targets {
		dir := filepath.Dir(r.program(t, product))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := r.goBuild(ctx, dir, "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0"); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

// goBuild builds both programs into dir. It leaves out git's description of the tree
// (-buildvcs), which depends on the clone; the version has the commit.
func (r *release) goBuild(ctx context.Context, dir string, env ...string) error {
	link := "-s -w -X tether/internal/version.released=" + string(r.version)
	if r.names.given {
		link += " -X tether/internal/version.base=" + string(r.names.base)
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags=" + r.tags, "-ldflags=" + link, "-o", dir + string(filepath.Separator)}
	for _, name := range programs {
		args = append(args, "./cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT="), env...)
	return runQuiet(cmd)
}

// dated is this process's environment with the time and the zone of the commit.
func (r *release) dated() []string {
	return append(os.Environ(), epochVar+"="+strconv.FormatInt(r.epoch.Unix(), 10), "TZ=UTC", "LC_ALL=C.UTF-8")
}

// runQuiet runs a command whose output matters only if it fails.
func runQuiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:min(2, len(cmd.Args))], " "), err, out)
	}
	return nil
}
