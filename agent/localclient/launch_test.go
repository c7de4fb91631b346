package localclient_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/secret"
)

func TestNotRunning(t *testing.T) {
	c := localclient.New(testkit.Home(t) + "/run/daemon.sock")
	defer c.Close()
	_, err := c.Status(t.Context())
	_, attach := c.Attach(t.Context(), "x", localclient.AttachOptions{})
	for _, err := range []error{err, attach} {
		if !errors.Is(err, localclient.ErrNotRunning) || !errors.Is(err, ipc.ErrNotRunning) || localapi.ExitStatus(err) != localapi.ExitNotRunning {
			t.Errorf("%v, want ErrNotRunning", err)
		}
	}
	if err := c.WaitGone(t.Context()); err != nil {
		t.Errorf("wait for the end of nothing: %v", err)
	}
}

// A daemon that has closed its socket is not gone before it has released its lock.
func TestWaitGoneWaitsForTheLock(t *testing.T) {
	dir := testkit.Home(t) + "/run"
	must.Do(t, secret.Dir(dir))
	lock := must.Get(ipc.Lock(filepath.Join(dir, localapi.LockName)))(t)
	c := localclient.New(dir + "/daemon.sock")
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.WaitGone(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it has the lock: %v", err)
	}
	gone := make(chan error, 1)
	go func() { gone <- c.WaitGone(t.Context()) }()
	must.Do(t, lock.Close())
	must.Do(t, <-gone)
}

func TestEnsureReportsTheReason(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := testkit.Home(t)
	c := localclient.New(home + "/run/daemon.sock")
	defer c.Close()
	for _, tt := range []struct {
		name   string
		launch localclient.Launch
		want   string
	}{
		{"it complains", localclient.Launch{Path: "/bin/sh", Argv: []string{"sh", "-c", "echo no such luck >&2; exit 1"}}, "it ended at once (exit status 1):\nno such luck"},
		{"it tells", localclient.Launch{Path: "/bin/sh", Argv: []string{"sh", "-c", `echo '{"message":"no luck today","hint":"try tomorrow"}' >&0; exit 1`}}, "the daemon did not start: no luck today"},
		{"it says nothing", localclient.Launch{Path: "/bin/sh", Argv: []string{"sh", "-c", "exit 1"}}, "it ended at once"},
		{"no such program", localclient.Launch{Path: home + "/none"}, "start the daemon"},
	} {
		tt.launch.Output = home + "/state/out"
		err := c.EnsureDaemon(t.Context(), tt.launch)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "luck") != strings.Contains(tt.want, "luck") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- c.EnsureDaemon(ctx, localclient.Launch{Path: "/bin/sh", Argv: []string{"sh", "-c", "echo I am there; exec sleep 1"}, Output: home + "/state/out"})
	}()
	testkit.Eventually(t, testkit.Patience, "it runs", func() bool {
		text, _ := os.ReadFile(home + "/state/out")
		return strings.Contains(string(text), "I am there")
	})
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "did not start") {
		t.Errorf("it never answers: %v", err)
	}
	if _, err := ipc.Dial(t.Context(), home+"/run/daemon.sock"); !errors.Is(err, ipc.ErrNotRunning) {
		t.Errorf("a socket was left: %v", err)
	}
}
