package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tether/agent"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// Commands that all need a daemon at the same moment end up with one.
func TestOneDaemonForAll(t *testing.T) {
	program := must.Get(exec.LookPath("tether"))(t)
	for range testkit.Load(20, 5) {
		home := testkit.Home(t)
		t.Setenv(allowRootVar, "1")
		d := dirsOf(home)
		var wg sync.WaitGroup
		pids := make([]int, 4)
		for i := range pids {
			wg.Go(func() {
				c := localclient.New(agent.SocketPath(d))
				defer c.Close()
				err := c.EnsureDaemon(t.Context(), localclient.Launch{Path: program, Argv: []string{"tether", "daemon"}, Env: os.Environ(),
					Output: filepath.Join(d.State, "daemon.out")})
				if err != nil {
					t.Error(err)
					return
				}
				s, err := c.Status(t.Context())
				check.OK(t, err)
				pids[i] = s.Pid
			})
		}
		wg.Wait()
		for _, pid := range pids[1:] {
			if pid != pids[0] {
				t.Errorf("daemons %v", pids)
			}
		}
		log, err := os.ReadFile(agent.LogPath(d))
		if n := bytes.Count(log, []byte(`"message":"ready"`)); err != nil || n != 1 {
			t.Errorf("%d daemons were ready, %v:\n%s", n, err, log)
		}
		quit(t, home)
	}
}

// quit ends the daemon and leaves the home to its owner.
func quit(t *testing.T, home string) {
	t.Helper()
	c := localclient.New(agent.SocketPath(dirsOf(home)))
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	check.OK(t, c.Shutdown(ctx))
	check.OK(t, c.WaitGone(ctx))
}

// A daemon that has just ended does not keep the next one from starting.
func TestStopAndGo(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	for range 5 {
		if out, status := command(t, "run", "--private", "--", "echo", "hello"); status != 0 || out != "hello" {
			log, _ := os.ReadFile(agent.LogPath(dirsOf(home)))
			t.Fatalf("status %d, %q\n%s", status, out, log)
		}
		command(t, "stop")
	}
}

// A script that is ended ends its terminal; an interrupt is typed.
func TestSignalsToAScript(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	for _, c := range []struct {
		signal string
		want   int
		state  string
	}{
		{"TERM", 143, "killed SIGTERM"},
		{"HUP", 129, "killed SIGTERM"},
		{"INT", 5, "exited 5"},
	} {
		name := "by-" + strings.ToLower(c.signal)
		script := exec.Command("tether", "run", "--private", "--name", name, "--", "sh", "-c", `trap 'exit 5' INT; echo ready; while :; do sleep 0.01; done`)
		in := must.Get(script.StdinPipe())(t) // its end would be typed, too
		defer in.Close()
		out := must.Get(script.StdoutPipe())(t)
		must.Do(t, script.Start())
		must.Get(out.Read(make([]byte, 64)))(t)
		must.Do(t, exec.Command("kill", "-"+c.signal, strconv.Itoa(script.Process.Pid)).Run())
		_ = script.Wait()
		if got := script.ProcessState.ExitCode(); got != c.want {
			t.Errorf("SIG%s: exited with %d, want %d", c.signal, got, c.want)
		}
		testkit.Eventually(t, patience, name+" is over", func() bool {
			list, _ := command(t, "ls")
			for line := range strings.Lines(list) {
				if strings.Contains(line, name) {
					return strings.Contains(line, c.state)
				}
			}
			return false
		})
	}
}

// Many bytes go both ways whole.
func TestPipesCarryMuch(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	var text bytes.Buffer
	for i := range 20_000 {
		text.WriteString(strconv.Itoa(i) + " the quick brown fox\n")
	}
	c := exec.Command("tether", "run", "--private", "--", "sh", "-c", "echo go; exec head -c "+strconv.Itoa(text.Len()))
	in := must.Get(c.StdinPipe())(t)
	var out bytes.Buffer
	ready := make(chan struct{})
	c.Stdout = writerFunc(func(p []byte) (int, error) {
		if out.Len() == 0 {
			close(ready)
		}
		return out.Write(p)
	})
	must.Do(t, c.Start())
	<-ready
	must.Get(in.Write(text.Bytes()))(t)
	must.Do(t, c.Wait())
	want := strings.ReplaceAll(text.String(), "\n", "\r\n") // the output is a terminal's
	if got := strings.TrimPrefix(out.String(), "go\r\n"); got != want {
		t.Errorf("%d bytes came back of %d, or others", len(got), len(want))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
