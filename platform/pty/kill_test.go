//go:build linux || darwin

package pty_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// wantNone fails the test if processes of p's terminal are left.
func (p *term) wantNone() {
	p.t.Helper()
	left, err := proc.Tagged(p.tag)
	if errors.Is(err, proc.ErrUnsupported) {
		p.t.Skip("this system does not show the environment of processes, so strays cannot be counted")
	}
	if err != nil || len(left) > 0 {
		p.t.Errorf("left after Kill: %+v, %v", left, err)
	}
}

func (p *term) kill(grace time.Duration) time.Duration {
	p.t.Helper()
	began := time.Now()
	must.Do(p.t, p.Kill(p.t.Context(), grace))
	return time.Since(began)
}

func TestKillIsPoliteFirst(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, nil, "sh", "-c", `trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.05; done`)
	p.until("ready")
	p.kill(patience)
	if got := p.Wait(); got.Code != 5 {
		t.Errorf("exit %+v, want the program's own 5", got)
	}
	if got := p.rest(); !strings.Contains(got, "bye") {
		t.Errorf("output %q lacks its last word", got)
	}
	p.kill(0) // again: nothing to do
}

func TestKillTakesTheStubborn(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, nil, "sh", "-c", `trap "" TERM HUP INT; echo ready; while :; do sleep 1000; done`)
	p.until("ready")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // ends the grace
	must.Do(t, p.Kill(ctx, time.Hour))
	if got := p.Wait(); got.Signal != "SIGKILL" {
		t.Errorf("exit %+v, want SIGKILL", got)
	}
	p.wantNone()
}

func TestKillWakesTheStopped(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, nil, "sh", "-c", `echo ready; kill -STOP $$; echo not reached`)
	p.until("ready")
	p.kill(patience)
	p.wantNone()
}

// A background process that is left when the program ends by itself is found, too.
func TestKillAfterExit(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, nil, "sh", "-c", `trap "" HUP; sleep 1000 & sleep 1000 & exit 0`)
	p.Wait()
	p.kill(patience)
	p.wantNone()
}

// A daemon is in another session, has another parent and ignores the polite signals.
func TestKillFindsDaemons(t *testing.T) {
	testkit.Leaks(t)
	for range testkit.Rounds(t, 8, 1000) {
		p := startHelper(t, "detach")
		p.until("pid ")
		p.kill(0)
		p.wantNone()
		p.Close()
	}
}

func TestKillFindsDaemonsLater(t *testing.T) {
	testkit.Leaks(t)
	p := startHelper(t, "detach")
	p.Wait()
	p.kill(0)
	p.wantNone()
}

// A process that is replaced by its child all the time must not run away from the sweep.
func TestKillCatchesARunner(t *testing.T) {
	testkit.Leaks(t)
	for range 5 {
		p := startHelper(t, "chain")
		p.Wait()
		p.kill(0)
		p.wantNone()
	}
}

func TestKillSparesOthers(t *testing.T) {
	testkit.Leaks(t)
	other := start(t, nil, "sleep", "1000")
	p := start(t, nil, "sh", "-c", "sleep 1000 & echo ready; wait")
	p.until("ready")
	p.kill(patience)
	select {
	case <-other.Exited():
		t.Error("another terminal's program was killed as well")
	default:
	}
}

// Not even a daemon run as root kills another user's process. It says that it has left
// one.
func TestKillSparesOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process as another user")
	}
	testkit.Leaks(t)
	p := startHelper(t, "alien")
	var pid int
	must.Get(fmt.Sscanf(p.until("\n"), "pid %d", &pid))(t)
	defer func() { // before the terminal is killed in the end, which would find it again
		_ = unix.Kill(pid, unix.SIGKILL)
		testkit.Eventually(t, patience, "the end of the other user's process", func() bool {
			row, err := proc.Lookup(pid)
			return err != nil || row.Zombie
		})
	}()
	err := p.Kill(t.Context(), 0)
	if want := fmt.Sprintf("processes of other users were not killed: pid [%d]", pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Kill: %v, want %q", err, want)
	}
	if got := p.Wait(); got.Signal == "" {
		t.Errorf("the program itself: %+v, want killed", got)
	}
	if row, err := proc.Lookup(pid); err != nil || row.Zombie {
		t.Errorf("the other user's process: %+v, %v; want alive", row, err)
	}
}

func TestKillTogether(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, nil, "sh", "-c", `trap "" HUP; sleep 1000 & sleep 1000`)
	results := make(chan error, 4)
	for range cap(results) {
		go func() { results <- p.Kill(t.Context(), time.Second) }()
	}
	for range cap(results) {
		check.OK(t, <-results)
	}
	p.wantNone()
}
