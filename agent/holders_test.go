package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/holder"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
	"tether/platform/ipc"
	"tether/platform/secret"
)

// withHolders is a daemon whose terminals are in holders, which are this test's program.
func withHolders(t *testing.T, d dirs.Dirs) agent.Config {
	t.Helper()
	self := must.Get(os.Executable())(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	t.Cleanup(func() { // left by a failed test
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := agent.EndLeftRunning(ctx, d); err != nil {
			t.Error(err)
		}
	})
	return agent.Config{Dirs: d, Holder: agent.Program{Path: self, Argv: []string{"tether-test", "holder"}}}
}

// stop is tether stop.
func (d *daemon) stop() {
	d.t.Helper()
	check.OK(d.t, d.client.Shutdown(d.t.Context()))
	d.end()
}

// One daemon after the other in this process: nothing of the first stays, and the second
// has the terminals that it left.
func TestHandOver(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	testkit.Leaks(t)
	d := home(t)
	c := withHolders(t, d)
	first := start(t, c)
	x := must.Get(first.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"cat"}, Cwd: "/", Private: true, Env: []string{"PATH=/bin:/usr/bin"}}))(t)
	type_ := func(one *daemon, text string) {
		t.Helper()
		a := must.Get(one.client.Attach(t.Context(), x.ID, localclient.AttachOptions{}))(t)
		defer a.Close()
		must.Do(t, a.Write(t.Context(), []byte(text+"\n")))
	}
	sees := func(one *daemon, want string) {
		t.Helper()
		testkit.Eventually(t, patience, "it has "+want, func() bool {
			body := must.Get(one.client.Read(t.Context(), x.ID, localclient.ReadOptions{}, nil))(t)
			defer body.Close()
			text, err := io.ReadAll(body)
			return err == nil && strings.ReplaceAll(string(text), "\r", "") == want
		})
	}
	type_(first, "one")
	sees(first, "one\none\n")
	if h, err := first.client.HandOver(t.Context()); err != nil || h.Kept != 1 {
		t.Errorf("handed over: %+v, %v", h, err)
	}
	first.end()
	c.Replace = true
	second := start(t, c)
	sees(second, "one\none\n")
	type_(second, "two")
	sees(second, "one\none\ntwo\ntwo\n")
	second.stop()
	if left, err := agent.LeftRunning(d); len(left) != 0 || err != nil {
		t.Errorf("left after stop: %v, %v", left, err)
	}
}

// greeting is a line for the system's shell that says hello and waits for an answer.
func greeting() string {
	if filepath.Separator == '\\' {
		return "echo hello& set /p x="
	}
	return "echo hello; read x"
}

// Terminals come and go in a daemon that goes on, and it holds no goroutine, no
// descriptor and no process of theirs.
func TestTerminalsComeAndGo(t *testing.T) {
	d := home(t)
	c := withHolders(t, d)
	c.Terminals.KeepFor = time.Second // exited terminals are forgotten
	one := start(t, c)
	defer one.stop()
	cycle := func() {
		x, err := one.client.Spawn(t.Context(), localapi.SpawnRequest{Line: greeting(), Cwd: testkit.Abs("/"), Private: true, Env: os.Environ()})
		if err == nil {
			_, err = one.client.Kill(t.Context(), x.ID)
		}
		check.OK(t, err)
	}
	cycle() // things that are made once for all
	one.client.Close()
	t.Run("cycles", func(t *testing.T) {
		testkit.Leaks(t)
		for range testkit.Rounds(t, 5, 2500) {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(cycle)
			}
			wg.Wait()
		}
		one.client.Close()
	})
	testkit.Eventually(t, patience, "no file is left", func() bool {
		left, err := os.ReadDir(filepath.Join(d.Runtime, "h"))
		return len(left) == 0 && err == nil
	})
}

// A holder that is stopped does not stop a daemon that starts; it is taken up when it
// goes on.
func TestStoppedHolder(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	if testing.Short() {
		t.Skip("waits for what does not come")
	}
	testkit.Leaks(t)
	d := home(t)
	c := withHolders(t, d)
	first := start(t, c)
	var ids []string
	for range 2 {
		x := must.Get(first.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"/bin/sh", "-c", "echo $PPID; read x"}, Cwd: "/", Private: true, Env: []string{}}))(t)
		ids = append(ids, x.ID)
	}
	var pid string
	testkit.Eventually(t, patience, "one says who holds it", func() bool {
		body := must.Get(first.client.Read(t.Context(), ids[0], localclient.ReadOptions{}, nil))(t)
		defer body.Close()
		text, _ := io.ReadAll(body)
		line, _, whole := strings.Cut(string(text), "\n")
		pid = strings.TrimSpace(line)
		return whole
	})
	first.end()
	send := func(signal string) {
		if out, err := exec.Command("kill", "-"+signal, pid).CombinedOutput(); err != nil {
			t.Fatalf("kill: %v %s", err, out)
		}
	}
	send("STOP")
	second := start(t, c)
	last := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(last)
		}
	})
	testkit.Eventually(t, patience, "one of two is taken up", func() bool {
		list, err := second.client.List(t.Context())
		last = fmt.Sprintf("%d terminals: %+v, %v; %s was stopped", len(list.Terminals), list.Terminals, err, ids[0])
		return err == nil && len(list.Terminals) == 1 && list.Terminals[0].ID == ids[1]
	})
	send("CONT")
	second.status("the other is taken up", func(s localapi.Status) bool { return s.Holders.Alive == 2 })
	second.stop()
}

// The holder is killed while it kills its terminal: that is gone then, as was asked.
func TestKillOutlivesAKilledHolder(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	testkit.Leaks(t)
	c := withHolders(t, home(t))
	c.Terminals.KillGrace = 2 * patience
	one := start(t, c)
	defer one.stop()
	x, err := one.client.Spawn(t.Context(), localapi.SpawnRequest{Cwd: "/", Private: true, Env: []string{"PATH=/bin:/usr/bin"},
		Command: []string{"/bin/sh", "-c", "trap 'kill -9 $PPID' TERM; echo ready; while :; do sleep 0.01; done"}})
	must.Do(t, err)
	testkit.Eventually(t, patience, "it catches signals", func() bool {
		list, err := one.client.List(t.Context())
		return err == nil && list.Terminals[0].Bytes > 0
	})
	if x, err = one.client.Kill(t.Context(), x.ID); err != nil || x.Exit == nil {
		t.Errorf("killed: %+v, %v", x.Exit, err)
	}
}

// A holder of a program that is too new is left alone, and status says so.
func TestHolderOfAnotherTime(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	l := must.Get(ipc.Listen(filepath.Join(d.Runtime, "h", "pty-newer.sock")))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "TETHER-H\x00\x0c\x00\x07\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00")
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	})
	one := start(t, withHolders(t, d))
	s := one.status("it says so", func(s localapi.Status) bool { return len(s.Degraded) > 0 })
	if text := s.Degraded[0].Text; !strings.Contains(text, "pty-newer") || !strings.Contains(text, "versions 7 to 9") {
		t.Errorf("status says %q", text)
	}
	one.stop()
	l.Close()
	serving.Wait()
}

// Many terminals are there again at once, when another daemon starts.
func TestManyAreAdopted(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	c := withHolders(t, d)
	first := start(t, c)
	many := testkit.Load(20, 8)
	for n := range many {
		must.Get(first.client.Spawn(t.Context(), localapi.SpawnRequest{Line: greeting(), Name: fmt.Sprint("n", n), Cwd: testkit.Abs("/"),
			Private: true, Env: os.Environ()}))(t)
	}
	const hello = int64(len("hello\r\n")) // a console of Windows prints more with it
	testkit.Eventually(t, patience, "all have said hello", func() bool {
		list, err := first.client.List(t.Context())
		return err == nil && !slices.ContainsFunc(list.Terminals, func(x localapi.Terminal) bool { return x.Bytes < hello })
	})
	first.end()
	if left, err := agent.LeftRunning(d); len(left) != many || err != nil {
		t.Errorf("%d left, %v", len(left), err)
	}
	second := start(t, c)
	list := second.list(many)
	for n, x := range list.Terminals {
		if x.Name != fmt.Sprint("n", many-1-n) || x.Bytes < hello || !x.Outlives { // the newest come first
			t.Errorf("the %d-th is %+v", n, x)
		}
	}
	second.end()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if ended, err := agent.EndLeftRunning(ctx, d); ended.Terminals != many || err != nil {
		t.Errorf("ended %+v, %v", ended, err)
	}
	if ids, err := holder.List(filepath.Join(d.Runtime, "h")); len(ids) != 0 || err != nil {
		t.Errorf("holders left: %v, %v", ids, err)
	}
}

// A program that an agent has started does not become the daemon of the person's
// terminals by knowing the key; the next daemon does.
func TestAgentsDoNotReachHolders(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	testkit.Leaks(t)
	d := home(t)
	c := withHolders(t, d)
	self := must.Get(os.Executable())(t)
	settings := config.Default()
	settings.Policy.Rules = []config.PolicyRule{{Name: "intrude", Effect: "allow", Argv: []string{self}}}
	c.Settings = &settings
	first := start(t, c)
	private := must.Get(first.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"cat"}, Cwd: "/", Private: true, Env: []string{"PATH=/bin:/usr/bin"}}))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	x := must.Get(first.client.As("claude").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{self, "intrude", l.Addr().String(), os.Getenv(dirs.HomeVar)}, Cwd: "/"}))(t)
	conn := must.Get(l.Accept())(t)
	first.end() // so that the lock is free
	must.Do(t, conn.(*net.TCPConn).CloseWrite())
	_, _ = io.Copy(io.Discard, conn) // until it has ended
	conn.Close()
	second := start(t, c)
	defer second.stop()
	read := func(id string) string {
		body := must.Get(second.client.Read(t.Context(), id, localclient.ReadOptions{}, nil))(t)
		defer body.Close()
		text, err := io.ReadAll(body)
		check.OK(t, err)
		return string(text)
	}
	said := ""
	testkit.Eventually(t, patience, "the holder's output has come", func() bool { said = read(x.ID); return said != "" })
	if !strings.Contains(said, "agent claude has started") || strings.Contains(said, "ended 1") {
		t.Errorf("the agent's program was told %q", said)
	}
	if list := second.list(2); !slices.ContainsFunc(list.Terminals, func(i localapi.Terminal) bool { return i.ID == private.ID && i.Exit == nil }) {
		t.Errorf("listed %+v", list.Terminals)
	}
}

// If no holder can be started, nobody starts a terminal, and status reports why until one
// is.
func TestNoTerminalWithoutAHolder(t *testing.T) {
	testkit.Leaks(t)
	where := home(t)
	c := withHolders(t, where)
	d := start(t, c)
	defer d.stop()
	blocked := filepath.Join(where.Runtime, "h")
	must.Do(t, os.RemoveAll(blocked))
	must.Do(t, os.WriteFile(blocked, nil, 0o600))
	spawn := func(c *localclient.Client) error {
		_, err := c.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Cwd: testkit.Abs("/")})
		return err
	}
	for who, client := range map[string]*localclient.Client{"a person": d.client, "an agent": d.client.As("bob")} {
		if err := spawn(client); err == nil || !strings.Contains(err.Error(), "needs a holder process") || !strings.Contains(err.Error(), blocked) {
			t.Errorf("%s: %v", who, err)
		}
	}
	s := d.status("it says so", func(s localapi.Status) bool { return len(s.Degraded) > 0 })
	if s.Degraded[0].Cause != "holders" || !strings.Contains(s.Degraded[0].Text, "no terminal can be started") {
		t.Errorf("status says %+v", s.Degraded)
	}
	must.Do(t, os.Remove(blocked))
	check.OK(t, spawn(d.client))
	d.status("all is well again", func(s localapi.Status) bool { return len(s.Degraded) == 0 && s.Holders.Alive == 1 })
}

// A key that is damaged, or that no daemon can read, stops no terminal; the next daemon
// finds the one in its place.
func TestHoldersKey(t *testing.T) {
	for _, damaged := range []string{"none", "short", "a directory"} {
		t.Run(damaged, func(t *testing.T) {
			d := home(t)
			must.Do(t, secret.Dir(d.State))
			path := filepath.Join(d.State, "holders.key")
			switch damaged {
			case "a directory":
				must.Do(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
			case "short":
				must.Do(t, secret.WriteFile(path, []byte("short")))
			}
			first := must.Get(agent.HolderKey(d))(t)
			if second, err := agent.HolderKey(d); err != nil || len(first) != holder.KeyBytes || !bytes.Equal(first, second) {
				t.Errorf("%d bytes, then %d others: %v", len(first), len(second), err)
			}
			if _, err := os.Lstat(filepath.Join(d.Runtime, "holders.key")); (err == nil) != (damaged == "a directory") {
				t.Errorf("beside the sockets: %v", err)
			}
		})
	}
}
