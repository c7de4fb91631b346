package agent_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/history"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
)

// becomeDaemon is a daemon with holders in a process of its own. It prints a line when it
// is ready.
func becomeDaemon() int {
	d, err := dirs.Get()
	if err != nil {
		return 1
	}
	a, err := agent.New(agent.Config{Dirs: d, AllowRoot: true, Ready: func() { fmt.Println("ready") },
		Holder: agent.Program{Path: os.Args[0], Argv: []string{"tether-test", "holder"}}, Reader: []string{os.Args[0], "adopt-reader"}})
	if err != nil || a.Run(context.Background()) != nil {
		return 1
	}
	return 0
}

// stored returns what the history in a home has of a terminal, while no daemon writes.
func stored(t *testing.T, d dirs.Dirs, id string) string {
	t.Helper()
	h := must.Get(history.Open(history.Options{Dir: agent.HistoryDir(d), Keep: time.Hour, MaxBytes: 1 << 30}))(t)
	defer func() { check.OK(t, h.Close()) }()
	text, err := h.Text(id)
	if err != nil {
		return err.Error()
	}
	defer text.Close()
	var b strings.Builder
	for {
		f, err := text.Next()
		if err == io.EOF {
			return b.String()
		}
		must.Do(t, err)
		if f.Missing > 0 {
			fmt.Fprintf(&b, "<%d missing>", f.Missing)
		}
		b.Write(f.Data)
	}
}

// Daemons are killed at any moment while a terminal prints, and each next one goes on:
// no byte is missing in the history, and none is there twice.
func TestHistoryOutlivesKilledDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	d := home(t)
	self := withHolders(t, d).Holder.Path
	client := localclient.New(agent.SocketPath(d))
	defer client.Close()
	var id string
	for n := range 6 {
		c := exec.Command(self, "daemon")
		out := must.Get(c.StdoutPipe())(t)
		must.Do(t, c.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("it said %q, %v", line, err)
		}
		if id == "" {
			x := must.Get(client.Spawn(t.Context(), localapi.SpawnRequest{Cwd: "/", Env: []string{"PATH=/bin:/usr/bin"},
				Command: []string{"/bin/sh", "-c", "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo line $i; [ $((i%3)) = 0 ] && sleep 0.002; done"}}))(t)
			id = x.ID
		}
		if n == 5 {
			testkit.Eventually(t, patience, "the terminal has ended", func() bool {
				x, err := client.Find(t.Context(), id)
				return err == nil && x.Exit != nil
			})
			must.Do(t, client.Shutdown(t.Context()))
			must.Do(t, c.Wait())
			break
		}
		before := int64(-1)
		testkit.Eventually(t, patience, "it prints on", func() bool {
			x, err := client.Find(t.Context(), id)
			if before < 0 && err == nil {
				before = x.Bytes
			}
			return err == nil && (x.Bytes > before+1500 || x.Exit != nil)
		})
		must.Do(t, c.Process.Kill())
		_ = c.Wait()
	}
	var want strings.Builder
	for i := 1; i <= 1500; i++ {
		fmt.Fprintf(&want, "line %d\r\n", i)
	}
	if got := stored(t, d, id); got != want.String() {
		t.Errorf("the history has %d bytes, want %d; it ends with %.60q", len(got), want.Len(), got[max(0, len(got)-60):])
	}
}

// The past of a terminal that runs is forgotten: neither the daemon nor the next one,
// which takes the output from the holder, has it in memory or writes it again. What comes
// after is there.
func TestForgottenPastDoesNotComeBack(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	d := home(t)
	c := withHolders(t, d)
	one := start(t, c)
	id := must.Get(one.client.Spawn(t.Context(), localapi.SpawnRequest{Cwd: "/", Env: []string{"PATH=/bin:/usr/bin"},
		Command: []string{"/bin/sh", "-c", "echo forgotten; while read x; do echo got $x; done"}}))(t).ID
	read := func() string {
		body, err := one.client.Read(t.Context(), id, localclient.ReadOptions{}, nil)
		if err != nil {
			return err.Error()
		}
		defer body.Close()
		text, _ := io.ReadAll(body)
		return strings.ReplaceAll(string(text), "\r", "")
	}
	sees := func(want string) {
		t.Helper()
		testkit.Eventually(t, patience, "it has "+want, func() bool { return read() == want })
	}
	types := func(text string) {
		t.Helper()
		a := must.Get(one.client.Attach(t.Context(), id, localclient.AttachOptions{}))(t)
		defer a.Close()
		must.Do(t, a.Write(t.Context(), []byte(text+"\n")))
	}
	sees("forgotten\n")
	testkit.Eventually(t, patience, "it is forgotten", func() bool {
		f, err := one.client.Forget(t.Context(), localapi.ForgetRequest{Runs: []string{id}})
		return err == nil && f.Pasts == 1 && f.InHolders == 0
	})
	sees("")
	types("1")
	sees("1\ngot 1\n")
	one.end()
	one = start(t, c)
	sees("1\ngot 1\n")
	types("2")
	sees("1\ngot 1\n2\ngot 2\n")
	one.stop()
	if got := stored(t, d, id); strings.Contains(got, "forgotten") || !strings.HasSuffix(got, "1\r\ngot 1\r\n2\r\ngot 2\r\n") {
		t.Errorf("the history has %q", got)
	}
}
