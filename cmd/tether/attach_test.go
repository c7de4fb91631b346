//go:build linux || darwin

package main

import (
	"context"
	"math"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/attach"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// A person attached to any terminal hears of an agent's question, also while nothing is
// printed there. The bell's text goes to the desktop: no secret is in it, neither a token
// of a known form nor the value of a variable.
func TestBellForQuestions(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	t.Setenv("DEPLOY_PASSWORD", "correct horse battery")
	id, _ := command(t, "run", "--detach", "--private", "--", "sh", "-c", "echo ready; read x")
	person, terminal, err := pty.Open()
	must.Do(t, err)
	defer person.Close()
	defer terminal.Close()
	a := newApp(terminal, terminal, terminal)
	client, _, err := a.client()
	must.Do(t, err)
	defer client.Close()
	var seen testkit.Output
	go func() { // ends with the terminal
		for buf := make([]byte, 4096); ; {
			n, err := person.Read(buf)
			seen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	sees := func(what, text string) {
		t.Helper()
		testkit.Eventually(t, patience, what, func() bool { return strings.Contains(seen.String(), text) })
	}
	ended := make(chan error, 1)
	go func() {
		ended <- a.attachTo(t.Context(), client, id, localclient.AttachOptions{Tail: replay}, attach.Options{})
	}()
	sees("the terminal", "ready")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = client.As("bob").Spawn(ctx, localapi.SpawnRequest{Command: []string{"python3", "-c", "1\x1b]0;x\a", "Authorization: token hunter2hunter2",
			"shpat_" + strings.Repeat("a1", 16), "correct horse battery"}, Cwd: t.TempDir()})
	}()
	testkit.Eventually(t, patience, "a question", func() bool {
		l, err := client.Approvals(t.Context(), nil)
		return err == nil && len(l.Approvals) == 1 && l.Approvals[0].State == localapi.ApprovalWaiting
	})
	sees("the bell", "\x1b]9;tether: agent bob asks to run: python3 -c 1")
	sees("its end", "\x07\x07")
	bell := seen.String()[strings.Index(seen.String(), "\x1b]9;")+2:]
	if strings.Contains(bell, "\x1b") {
		t.Errorf("the bell has control sequences: %q", bell)
	}
	for _, secret := range []string{"hunter2", "a1a1", "correct horse", "battery"} {
		if strings.Contains(bell, secret) {
			t.Errorf("the bell tells %q: %q", secret, bell)
		}
	}
	cancel()
	<-asked
	must.Get(person.WriteString("\r"))(t)
	<-ended
}

// The session asks who can watch once changes are already being reported, not before.
func TestLentIsLookedAtWhenAttached(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	h := host.New(host.Options{})
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.Close(); h.Close() })
	if out, status := command(t, "pair", "--without-token", "--name", "lab", server.URL); status != 0 {
		t.Fatalf("pair: %d %s", status, out)
	}
	id, _ := command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "read x; exit 3")
	person, terminal, err := pty.Open()
	must.Do(t, err)
	defer person.Close()
	defer terminal.Close()
	a := newApp(terminal, terminal, terminal)
	client, _, err := a.client()
	must.Do(t, err)
	defer client.Close()
	var seen testkit.Output
	go func() { // ends with the terminal
		for buf := make([]byte, 4096); ; {
			n, err := person.Read(buf)
			seen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	ended := make(chan error, 1)
	go func() {
		ended <- a.attachTo(t.Context(), client, id, localclient.AttachOptions{Tail: replay}, attach.Options{})
	}()
	testkit.Eventually(t, patience, "who can watch is said", func() bool { return strings.Contains(seen.String(), "web is visible to lab (0 watching)") })
	must.Get(person.WriteString("\r"))(t)
	if err := <-ended; err != exitCode(3) {
		t.Errorf("attached: %v", err)
	}
}

// A command inside an adopted pane does not print that pane's output into it.
func TestAPaneIsNotShownInItself(t *testing.T) {
	person, terminal, err := pty.Open()
	must.Do(t, err)
	defer person.Close()
	defer terminal.Close()
	file := must.Get(os.CreateTemp(t.TempDir(), "out"))(t)
	defer file.Close()
	inside, outside := &vocab.Adopted{Pid: os.Getppid()}, &vocab.Adopted{Pid: math.MaxInt32}
	for _, c := range []struct {
		out     *os.File
		adopted *vocab.Adopted
		refused bool
	}{{terminal, inside, true}, {terminal, outside, false}, {terminal, &vocab.Adopted{}, false}, {terminal, nil, false}, {file, inside, false}} {
		a := newApp(os.Stdin, c.out, c.out)
		if err := a.showsItself(localapi.Terminal{Name: "web", Adopted: c.adopted}); (err != nil) != c.refused {
			t.Errorf("%s, %+v: %v", c.out.Name(), c.adopted, err)
		}
	}
}
