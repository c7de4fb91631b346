//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// scripted runs tether as a program without a terminal does, with these variables, and
// returns all that it printed, and its status.
func scripted(t *testing.T, env []string, args ...string) (printed string, status int) {
	t.Helper()
	c := exec.Command("tether", args...)
	c.Env = append(os.Environ(), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // tests may run at a terminal
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// At a terminal a person has a person's powers, but neither in its background nor without
// one, unless they send a token. Operations that need no sign work in any case.
func TestSignOfAPerson(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	t.Setenv(tokenVar, "")
	if out, status := scripted(t, nil, "token", "create", "--person", "early"); status != 0 {
		t.Errorf("in a home that no agent has used: %d, %s", status, out)
	}
	if out, status := scripted(t, nil, "acp", "--as", "bob", "--", "tether", "whoami"); status != 0 || !strings.HasPrefix(out, "agent bob: ") {
		t.Fatalf("%d, %s", status, out)
	}

	out, status := scripted(t, nil, "token", "create", "--person", "late")
	if status != localapi.ExitDenied {
		t.Errorf("a script: status %d, want %d", status, localapi.ExitDenied)
	}
	for _, want := range []string{"may not make a token of yours", "it counts as yours", `("tether") has no controlling terminal`, "run it at a terminal", "tether token create --person NAME", "TETHER_TOKEN_FILE=FILE"} {
		if !strings.Contains(out, want) {
			t.Errorf("a script is told %q, without %q", out, want)
		}
	}
	if out, _ := scripted(t, nil, "whoami"); !strings.Contains(out, "user: no agent has started") || !strings.Contains(out, "\nno sign of a person: ") {
		t.Errorf("whoami says %q", out)
	}

	at := sit(t, "whoami")
	at.sees("sign of a person: process ", "is in the foreground of a terminal")
	at.exits(0)
	for word, status := range map[string]int{"yes": 1, "person": 0} {
		late := sit(t, "token", "create", "--person", "late")
		late.sees("Type the word person")
		late.types(word + "\r")
		late.exits(status)
	}
	shell := func(line string) *person {
		return sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-c", line}, Env: append(os.Environ(), "TERM=xterm")})
	}
	behind := shell(`set -m; tether token create x & wait $!; echo "status $?"; tether token create x </dev/null; echo "status $?"`)
	behind.sees("may not make a token", "runs in the background of its terminal", "status 6", "status 0")
	behind.exits(0)

	file := filepath.Join(t.TempDir(), "token")
	save := shell(`umask 077; TETHER_TOKEN_FILE=` + file + ` tether token create --person scripts </dev/null >` + file + ` 2>&1`)
	save.sees("Type the word person")
	save.types("person\r")
	save.exits(0)
	with := []string{tokenVar + "=" + file}
	if out, status := scripted(t, with, "whoami"); status != 0 || !strings.Contains(out, "sign of a person: your token scripts") {
		t.Errorf("with a token: %d, %s", status, out)
	}
	if out, status := scripted(t, with, "token", "create", "y"); status != 0 {
		t.Errorf("with a token: %d, %s", status, out)
	}
	if out, status := scripted(t, with, "acp", "--as", "bob", "--", "tether", "token", "create", "z"); status != localapi.ExitDenied || !strings.Contains(out, "agent bob may not") {
		t.Errorf("an agent with a token: %d, %s", status, out)
	}
	if out, status := scripted(t, []string{tokenVar + "=" + file + "x"}, "whoami"); status != 0 || !strings.Contains(out, "continuing without") || !strings.Contains(out, "no sign") {
		t.Errorf("with a file that is not there: %d, %s", status, out)
	}

	// A terminal that a script has started gives no sign; one that a person has started
	// does.
	const within = `tether whoami; tether token create within; echo "status $?"`
	if out, _ := scripted(t, nil, "run", "--", "sh", "-c", within); !strings.Contains(out, "which no person is known to have started") || !strings.Contains(out, "status 6") {
		t.Errorf("in a script's terminal: %s", out)
	}
	in := sit(t, "run", "--", "sh", "-c", within)
	in.sees("sign of a person: process ", "status 0")
	in.exits(0)

	// Nothing is typed into a person's terminal without a sign; a script's own takes the
	// script's input.
	sit(t, "run", "--detach", "--name", "mine", "--", "cat").exits(0)
	for _, c := range []struct {
		env     []string
		refused bool
	}{{nil, true}, {with, false}} {
		attach := exec.Command("tether", "attach", "mine")
		attach.Env, attach.SysProcAttr = append(os.Environ(), c.env...), &syscall.SysProcAttr{Setsid: true}
		var said testkit.Output
		attach.Stdout, attach.Stderr = &said, &said
		typing := must.Get(attach.StdinPipe())(t)
		must.Do(t, attach.Start())
		must.Get(fmt.Fprintln(typing, "typed"))(t)
		want := map[bool]string{true: "may not type into a terminal of yours", false: "typed"}[c.refused]
		testkit.Eventually(t, patience, want, func() bool { return strings.Contains(said.String(), want) })
		typing.Close()
		_ = attach.Process.Kill()
		_ = attach.Wait() // it was killed
	}
	for _, args := range [][]string{{"ls"}, {"approvals"}, {"unlend", "mine"}, {"kill", "mine"}, {"run", "--", "true"}, {"token", "ls"}, {"token", "revoke", "scripts"}} {
		if out, status := scripted(t, nil, args...); status != 0 {
			t.Errorf("tether %s: %d, %s", strings.Join(args, " "), status, out)
		}
	}
	if out, status := scripted(t, with, "token", "create", "w"); status != localapi.ExitDenied || !strings.Contains(out, "its token is not valid") {
		t.Errorf("with a revoked token: %d, %s", status, out)
	}
}

// An editor's person answers questions about their proxy's requests, and no other program
// without a sign does.
func TestAScriptDoesNotAnswerForAnEditor(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	argv, env := sdkAgent(t)
	e := editAs(t, "", []string{"--as", "tester"}, argv, env).opens(object{})
	e.silent = true
	id := e.asks("session/prompt", prompt(e.session, `[{"do":"create","params":{"command":"rm -rf third"}},{"do":"wait"},{"do":"release"}]`))
	for !strings.Contains(e.asked, "third") {
		e.next()
	}
	l, err := e.client.Approvals(t.Context(), nil)
	if err != nil || len(l.Approvals) != 1 {
		t.Fatalf("waiting: %+v, %v", l, err)
	}
	question := l.Approvals[0].ID
	home := []string{"TETHER_HOME=" + e.home, tokenVar + "="}
	if out, status := scripted(t, home, "approve", question); status != localapi.ExitDenied || !strings.Contains(out, "may not approve") {
		t.Errorf("a script: %d, %s", status, out)
	}
	if out, status := scripted(t, home, "approve", question, "--deny"); status != 0 {
		t.Errorf("a script that denies: %d, %s", status, out)
	}
	e.answered(id)
}
