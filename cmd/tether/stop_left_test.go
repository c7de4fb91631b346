package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
	"tether/platform/ipc"
	"tether/platform/secret"
)

// Processes that were left running and cannot be ended in time are named; the message
// neither claims their end nor a daemon that does not answer.
func TestStopWithoutADaemonThatCannotEndAll(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	newHome(t)
	d, err := dirs.Get()
	must.Do(t, err)
	holder := must.Get(ipc.Listen(filepath.Join(d.Runtime, "h", "pty-deaf.sock")))(t) // nobody accepts
	t.Cleanup(func() { holder.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	a, printed := printing(t)
	err = a.stop(ctx, false)
	if err == nil || !strings.Contains(err.Error(), "pty-deaf") || strings.Contains(err.Error(), "does not answer") {
		t.Errorf("the error is %v", err)
	}
	if out := printed(); strings.Contains(out, "ended") {
		t.Errorf("it says %q", out)
	}

	lock := must.Get(ipc.Lock(filepath.Join(d.Runtime, localapi.LockName)))(t) // a daemon that begins or ends
	defer lock.Close()
	ctx, cancel = context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	err = a.stop(ctx, false)
	if locked := new(agent.LockError); !errors.As(err, &locked) || locked.Pid != os.Getpid() {
		t.Errorf("beside a daemon the error is %v", err)
	}
	if out := printed(); strings.Contains(out, "no daemon was running") {
		t.Errorf("beside a daemon it says %q", out)
	}
}

// A program that holds the daemon's lock without being one is named wherever a daemon is
// missed.
func TestLockOfAnotherProgram(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel() // it waits most of the time
	home := acpHome(t)
	d := dirsOf(home)
	must.Do(t, secret.Dir(d.Runtime))
	holding := exec.Command("holdlock", filepath.Join(d.Runtime, localapi.LockName))
	in := must.Get(holding.StdinPipe())(t)
	out := must.Get(holding.StdoutPipe())(t)
	must.Do(t, holding.Start())
	defer func() { in.Close(); holding.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	want := fmt.Sprintf(`process %d ("holdlock")`, holding.Process.Pid)
	var asking sync.WaitGroup // at the same time, since each waits for seconds
	for _, c := range []struct {
		args   []string
		status int
	}{{[]string{"status"}, localapi.ExitNotRunning}, {[]string{"status", "--json"}, localapi.ExitNotRunning}, {[]string{"doctor"}, localapi.ExitFailure}, {[]string{"daemon"}, localapi.ExitFailure}, {[]string{"run", "--", "true"}, localapi.ExitFailure}} {
		asking.Go(func() {
			said, status := everything(home, c.args...)
			said = strings.ReplaceAll(said, `\"`, `"`) // JSON
			if status != c.status || !strings.Contains(said, want) || !strings.Contains(said, fmt.Sprintf("end process %d", holding.Process.Pid)) {
				t.Errorf("tether %s: status %d\n%s\nwant status %d and %s", strings.Join(c.args, " "), status, said, c.status, want)
			}
		})
	}
	asking.Wait()
	in.Close()
	check.OK(t, holding.Wait())
	if out, status := everything(home, "run", "--", "echo", "alive"); status != 0 || !strings.Contains(out, "alive") {
		t.Errorf("afterwards: %d, %q", status, out)
	}
}

// After the daemon was killed, each command that needs it says that terminals run on, and
// how to get them back; without terminals it says how to start one.
func TestCommandsTellOfTerminalsWithoutADaemon(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	m.spawn(localapi.SpawnRequest{Command: []string{"sleep", "999"}, Name: "one", Private: true})
	m.spawn(localapi.SpawnRequest{Command: []string{"sleep", "998"}, Name: "two", Private: true})
	m.kill()
	commands := [][]string{{"ls"}, {"read", "one"}, {"kill", "one"}, {"lend", "one"}, {"ports", "one"}, {"attach", "one"}}
	const left = "2 terminals are running without a daemon; tether daemon --background resumes them, tether stop ends them"
	for _, c := range append(commands, []string{"status"}, []string{"doctor"}) {
		out, status := everything(m.home, c...)
		if strings.Count(out, "without a daemon") != 1 || c[0] != "doctor" && !strings.Contains(out, left) {
			t.Errorf("%v: %d, it says %q", c, status, out)
		}
	}
	if out, status := everything(m.home, "stop"); status != 0 {
		t.Errorf("stop: %d %s", status, out)
	}
	for _, c := range commands {
		if out, _ := everything(m.home, c...); !strings.Contains(out, "start it with: tether daemon --background") || strings.Contains(out, "without a daemon") {
			t.Errorf("%v without terminals: it says %q", c, out)
		}
	}
}
