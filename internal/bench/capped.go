package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"tether/agent/localapi"
)

const (
	cappedLogs = 64 << 20 // bytes that all terminals together may keep
	// floorOverCap is the most memory of the daemon beyond the cap, in MiB: for itself, its terminals and garbage.
	floorOverCap = 64.0

	capConfig = "[terminals]\ntotal_log_bytes = \"64MiB\"\n"
)

// cappedPart measures a daemon whose terminals all flood while the host is frozen: it accepts connections and answers nothing.
func cappedPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRigWith(ctx, s.programs, capConfig)
	if err != nil {
		return nil, err
	}
	defer r.close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := r.signalHost("STOP"); err != nil {
		return nil, err
	}
	defer r.signalHost("CONT") // a frozen host could not end
	for range s.floods {
		t, err := r.door.Spawn(ctx, localapi.SpawnRequest{Command: []string{self, childArg, "coloured", "0"}, Env: r.env, Cwd: r.home, OnSlow: "lag"})
		if err != nil {
			return nil, err
		}
		if err := r.typeLine(ctx, t.ID); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, s.flooding); err != nil {
		return nil, err
	}
	status, err := r.door.Status(ctx)
	if err != nil {
		return nil, err
	}
	all, err := r.door.List(ctx)
	if err != nil {
		return nil, err
	}
	var printed int64
	for _, t := range all.Terminals {
		printed += t.Bytes
		if t.Exit != nil {
			return nil, fmt.Errorf("%s has ended", t.ID)
		}
	}
	m, err := memoryOf(r.daemon.Process.Pid)
	if err != nil {
		return nil, err
	}
	part := fmt.Sprintf("%d floods, the host frozen", s.floods)
	return []row{
		row{Part: part, Name: "output kept", Value: mib(status.Logs.Bytes), Unit: "MiB", Note: fmt.Sprintf("of %s MiB printed", digits(mib(printed)))}.most(mib(cappedLogs)),
		row{Part: part, Name: "daemon's memory beyond the configured cap", Value: mib(m.rss - cappedLogs), Unit: "MiB",
			Note: fmt.Sprintf("%s MiB in all, at most %s", digits(mib(m.rss)), digits(mib(m.peak)))}.most(floorOverCap),
	}, nil
}

// signalHost sends a signal with the system's kill program, because signals differ between systems.
func (r *rig) signalHost(name string) error {
	return exec.Command("kill", "-"+name, strconv.Itoa(r.server.Process.Pid)).Run()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeConfig writes the configuration file of a daemon that starts later; "" writes none.
func (r *rig) writeConfig(text string) error {
	if text == "" {
		return nil
	}
	dir := filepath.Join(r.home, "config")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600)
}
