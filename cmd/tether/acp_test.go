package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// living returns the processes whose command line has the text in it.
func living(t *testing.T, text string) (some []int) {
	t.Helper()
	all := must.Get(proc.List())(t)
	for _, p := range all {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
		if err == nil && !p.Zombie && strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), text) {
			some = append(some, p.Pid)
		}
	}
	return some
}

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}

// unique is a number that is in no other command line.
func unique(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("3%d.%d", os.Getpid(), time.Now().UnixNano()%1e9)
}

// TestACPAgent is a conversation with an agent on the official SDK.
func TestACPAgent(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	argv, env := sdkAgent(t)
	e := editAs(t, "", []string{"--as", "tester"}, argv, env).opens(object{})
	if r := e.does(object{"do": "capabilities"}); !strings.Contains(string(r[0]), `"terminal":true`) {
		t.Errorf("the agent was told %s", r[0])
	}
	long := unique(t)
	script := filepath.Join(e.work, "run me")
	must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\necho ran\n"), 0o700))
	for _, c := range []struct {
		name         string
		params       object
		output, exit string
		truncated    bool
	}{
		{"a shell line in the session's directory", object{"command": "pwd; exit 3"}, e.work + "\n", "3", false},
		{"a program", object{"command": "printf", "args": []string{"%s|", "a b", "$HOME"}}, "a b|$HOME|", "0", false},
		{"a word", object{"command": "true"}, "", "0", false},
		{"a file with a space", object{"command": "./run me"}, "ran\n", "0", false},
		{"a directory of its own", object{"command": "pwd -P", "cwd": "/"}, "/\n", "0", false},
		{"its variables, and those that keep pagers away", object{"command": "echo $A $PAGER $GIT_PAGER", "env": []any{object{"name": "A", "value": "1"}, object{"name": "GIT_PAGER", "value": "own"}}},
			"1 cat own\n", "0", false},
		{"colours are for people", object{"command": `printf '\033[31mred\033[0m\n'`}, "red\n", "0", false},
		{"the end of much", object{"command": "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done", "outputByteLimit": 20}, "line 4998\nline 4999\n", "0", true},
		{"a limit within a character", object{"command": "printf '端末端末'", "outputByteLimit": 7}, "端末", "0", true},
		{"nothing is to be kept", object{"command": "echo a", "outputByteLimit": 0}, "", "0", true},
		{"a size", object{"command": "stty size"}, "24 120\n", "0", false},
		{"a shell that does not know the word", object{"command": "nosuchword"}, "*", "127", false},
		{"a child that keeps the terminal open", object{"command": "setsid sleep " + long + " & echo started"}, "started\n", "0", false},
	} {
		end := e.runs(c.params) // an answer that does not come is missed by hears
		if *end.Output != c.output && c.output != "*" || end.ExitStatus.String() != c.exit || end.Truncated != c.truncated {
			t.Errorf("%s: %q, exit %s, truncated %v; want %q, %s, %v", c.name, *end.Output, end.ExitStatus, end.Truncated, c.output, c.exit, c.truncated)
		}
	}
	for _, pid := range living(t, "sleep "+long) {
		kill(pid)
	}
	if status := e.leaves(); status != 0 {
		t.Errorf("exit status %d; tether said:\n%s", status, e.stderr.String())
	}
}

func TestACPKill(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	argv, env := sdkAgent(t)
	e := editAs(t, "", nil, argv, env).opens(object{})
	one, two := unique(t), unique(t)
	r := e.does(
		object{"do": "create", "as": "deaf", "params": object{"command": "trap '' TERM HUP; echo up; sleep " + one + "; sleep " + one}},
		object{"do": "until", "as": "deaf", "text": "up"},
		object{"do": "kill", "as": "deaf"},
		object{"do": "wait", "as": "deaf"},
		object{"do": "output", "as": "deaf"},
		object{"do": "kill", "as": "deaf"},
		object{"do": "release", "as": "deaf"},
		object{"do": "output", "as": "deaf"},
		object{"do": "create", "as": "running", "params": object{"command": "sleep " + two}},
		object{"do": "release", "as": "running"},
		object{"do": "create", "params": object{"command": "ls", "cwd": "/no/such/directory"}},
		object{"do": "create", "params": object{"command": "no-such-program", "args": []string{"x"}}},
		object{"do": "request", "method": "terminal/create", "params": object{"sessionId": e.session, "command": 7}},
	)
	for i, want := range []string{"terminalId", "up", "{}", `{"exitCode":null,"signal":"SIGKILL"}`, `"signal":"SIGKILL"`, "{}", "{}", "-32002", "terminalId", "{}", "-32602", "-32602", "-32602"} {
		if !strings.Contains(string(r[i]), want) {
			t.Errorf("step %d: %s, want %s", i, r[i], want)
		}
	}
	if left := append(living(t, "sleep "+one), living(t, "sleep "+two)...); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// The view of an editor that shows terminals, and of one that does not.
func TestACPShown(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	argv, env := sdkAgent(t)
	steps := []object{
		{"do": "show", "update": object{"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Run", "kind": "execute"}},
		{"do": "create", "params": object{"command": `printf '\033[1mone\033[0m\n'; read answer; echo $answer`}},
		{"do": "show", "update": object{"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress"}, "terminals": []string{"t"}},
		{"do": "until", "text": "one"},
		{"do": "wait"},
		{"do": "release"},
		{"do": "show", "update": object{"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}, "terminals": []string{"t"}},
		{"do": "sleep", "ms": 100},
	}
	script := must.Get(json.Marshal(steps))(t)
	for name, c := range map[string]struct {
		capabilities object
		shows        func(update string) string // the terminal's part of it
		want         []string                   // in this order
		also         string                     // anywhere: the agent's messages and the end of the terminal come in any order
	}{
		"rich": {object{"_meta": object{"terminal_output": true}}, func(u string) string { return u },
			[]string{"terminal_info", `"data":"\u001b[1mone`, `two\r\n`, `"status":"completed","toolCallId":"c","content":[{"type":"terminal"`}, `"exit_code":0`},
		"text": {object{}, func(u string) string { return u }, []string{`\none\n`, `one\ntwo`, `"status":"completed","toolCallId":"c","content":[{"content":{"text":"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := editAs(t, "", nil, argv, env).opens(c.capabilities)
			id := e.asks("session/prompt", prompt(e.session, string(script)))
			// A person answers the command's question: agents cannot type.
			var ref string
			testkit.Eventually(t, patience, "the command is listed", func() bool {
				l, err := e.client.List(t.Context())
				if err != nil || len(l.Terminals) == 0 {
					return false
				}
				ref = l.Terminals[0].ID
				return l.Terminals[0].Bytes > 0
			})
			testkit.Eventually(t, patience, "the editor sees the first line", func() bool {
				e.next()
				return strings.Contains(e.seen(), "one")
			})
			att := must.Get(e.client.Attach(t.Context(), ref, localclient.AttachOptions{}))(t)
			defer att.Close()
			must.Do(t, att.Write(t.Context(), []byte("two\r")))
			e.answered(id)
			seen := e.seen()
			if !strings.Contains(seen, c.also) {
				t.Errorf("the editor does not see %s in\n%s", c.also, seen)
			}
			for _, want := range c.want {
				if i := strings.Index(seen, want); i < 0 {
					t.Errorf("the editor does not see %s in its turn in\n%s", want, e.seen())
				} else {
					seen = seen[i:]
				}
			}
		})
	}
}

// seen is all updates.
func (e *editor) seen() string {
	var all []string
	for _, u := range e.updates {
		all = append(all, string(u))
	}
	return strings.Join(all, "\n")
}

// When either side ends, everything ends.
func TestACPEnds(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	argv, env := sdkAgent(t)
	begin := func(t *testing.T, flags ...string) (*editor, string) {
		t.Helper()
		e := editAs(t, "", flags, argv, env).opens(object{})
		n := unique(t)
		e.does(object{"do": "create", "params": object{"command": "echo up; trap '' HUP; sleep " + n + " & sleep " + n}}, object{"do": "until", "text": "up"})
		return e, "sleep " + n
	}
	nothing := func(t *testing.T, text string) {
		t.Helper()
		testkit.Eventually(t, patience, "no process is left", func() bool { return len(living(t, text)) == 0 })
	}
	t.Run("the editor closes its end", func(t *testing.T) {
		t.Parallel()
		e, text := begin(t)
		if status := e.leaves(); status != 0 {
			t.Errorf("status %d", status)
		}
		nothing(t, text)
	})
	t.Run("the agent ends by itself", func(t *testing.T) {
		t.Parallel()
		e, text := begin(t)
		e.asks("session/prompt", prompt(e.session, `[{"do":"end","status":7}]`))
		if status := e.exits(); status != 7 {
			t.Errorf("status %d, want the agent's 7", status)
		}
		nothing(t, text)
	})
	t.Run("a signal", func(t *testing.T) {
		t.Parallel()
		e, text := begin(t)
		e.cmd.Process.Signal(syscall.SIGTERM)
		if status := e.exits(); status != 130 && status != 143 {
			t.Errorf("status %d", status)
		}
		nothing(t, text)
	})
	t.Run("the agent does not listen", func(t *testing.T) {
		t.Parallel()
		n := unique(t)
		e := editAs(t, "", nil, []string{"sh", "-c", "trap '' TERM HUP; echo '{\"jsonrpc\":\"2.0\",\"method\":\"up\"}'; sleep " + n + " & while :; do sleep " + n + "; done"}, nil)
		e.hears()
		e.leaves()
		nothing(t, "sleep "+n)
	})
	t.Run("a program that the agent left holds its output open", func(t *testing.T) {
		t.Parallel()
		n := unique(t)
		e := editAs(t, "", nil, []string{"sh", "-c", "sleep " + n + " & exit 4"}, nil)
		if status := e.exits(); status != 4 {
			t.Errorf("status %d", status)
		}
		nothing(t, "sleep "+n)
	})
	t.Run("no such agent", func(t *testing.T) {
		t.Parallel()
		e := editAs(t, "", nil, []string{"no-such-agent"}, nil)
		if status := e.exits(); status != 1 || !strings.Contains(e.stderr.String(), "no-such-agent") {
			t.Errorf("status %d: %s", status, e.stderr.String())
		}
	})
}

// A daemon that is killed loses no terminal and no output.
func TestACPDaemonKilled(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	argv, env := sdkAgent(t)
	e := editAs(t, "", nil, argv, env).opens(object{})
	marker := filepath.Join(e.work, "go on")
	e.does(object{"do": "create", "params": object{"command": "echo before; while [ ! -e 'go on' ]; do sleep 0.05; done; echo after; exit 5"}}, object{"do": "until", "text": "before"})
	status := must.Get(e.client.Status(t.Context()))(t)
	kill(status.Pid) // the proxy starts another one, at the latest for the next command
	must.Do(t, os.WriteFile(marker, nil, 0o600))
	r := e.does(object{"do": "wait"}, object{"do": "output"}, object{"do": "release"}, object{"do": "create", "params": object{"command": "echo again"}}, object{"do": "wait"})
	if !strings.Contains(string(r[1]), `"output":"before\nafter\n"`) || !strings.Contains(string(r[0]), `"exitCode":5`) || !strings.Contains(string(r[4]), `"exitCode":0`) {
		t.Errorf("after the daemon was killed: %s", r)
	}
}

func TestACPNewerProtocol(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	argv, env := sdkAgent(t)
	e := editAs(t, "", nil, argv, append(env, "ACP_VERSION=2"))
	m := e.answered(e.asks("initialize", object{"protocolVersion": 2, "clientCapabilities": object{}}))
	testkit.Eventually(t, patience, "it is said", func() bool { return strings.Contains(e.stderr.String(), "version 2 of the protocol") })
	if m.Error != nil && !strings.Contains(e.stderr.String(), "version 2") {
		t.Errorf("%s", m.Error)
	}
}

// The editor's person is asked for approvals that the policy needs; anyone who watches
// tether approvals may answer, too.
func TestACPApproval(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	argv, env := sdkAgent(t)
	e := editAs(t, "", []string{"--as", "tester"}, argv, env).opens(object{})
	must.Do(t, os.Mkdir(filepath.Join(e.work, "build"), 0o700))
	e.runs(object{"command": "rm -r build"})
	if _, err := os.Stat(filepath.Join(e.work, "build")); err == nil || !strings.Contains(e.asked, "rm -r build") {
		t.Errorf("%v after the editor was asked %s", err, e.asked)
	}
	e.refuse = true
	if r := e.does(object{"do": "create", "params": object{"command": "rm -r other"}}); !strings.Contains(string(r[0]), "-32603") || !strings.Contains(string(r[0]), "denied by the user") {
		t.Errorf("refused: %s", r)
	}
	e.silent = true
	id := e.asks("session/prompt", prompt(e.session, `[{"do":"create","params":{"command":"rm -rf third"}},{"do":"wait"},{"do":"release"}]`))
	for !strings.Contains(e.asked, "third") {
		e.next()
	}
	l, err := e.client.Approvals(t.Context(), nil)
	if err != nil || len(l.Approvals) != 1 || l.Approvals[0].Actor != "agent tester" {
		t.Fatalf("waiting: %+v, %v", l, err)
	}
	must.Get(e.client.Approve(t.Context(), l.Approvals[0].ID, true, 0))(t)
	e.answered(id)
	if r := e.results(3); !strings.Contains(string(r[1]), `"exitCode":0`) {
		t.Errorf("approved elsewhere: %s", r)
	}
}
