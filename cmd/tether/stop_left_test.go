package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/local"
	"tether/internal/testkit"
	"tether/platform/dirs"
	"tether/platform/ipc"
)

// What was left running and cannot be ended in time is named, and neither said to be ended nor a daemon that does not answer.
func TestStopWithoutADaemonThatCannotEndAll(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	newHome(t)
	d, err := dirs.Get()
	if err != nil {
		t.Fatal(err)
	}
	holder, err := ipc.Listen(filepath.Join(d.Runtime, "h", "pty-deaf.sock")) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { holder.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	a, printed := printing(t)
	err = a.stop(ctx, false, false)
	if err == nil || !strings.Contains(err.Error(), "pty-deaf") || strings.Contains(err.Error(), "does not answer") {
		t.Errorf("the error is %v", err)
	}
	if out := printed(); strings.Contains(out, "ended") {
		t.Errorf("it says %q", out)
	}

	lock, err := ipc.Lock(filepath.Join(d.Runtime, local.LockName)) // a daemon that begins or ends
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	err = a.stop(t.Context(), false, false)
	if running := new(agent.RunningError); !errors.As(err, &running) {
		t.Errorf("beside a daemon the error is %v", err)
	}
	if out := printed(); strings.Contains(out, "no daemon was running") {
		t.Errorf("beside a daemon it says %q", out)
	}
}
