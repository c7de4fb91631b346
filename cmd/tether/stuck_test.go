package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// everything runs tether in a home and returns its output, errors too, and its status.
func everything(home string, args ...string) (printed string, status int) {
	c := exec.Command("tether", args...)
	c.Env = environ(home)
	out, _ := c.CombinedOutput() // the status says it
	return string(out), c.ProcessState.ExitCode()
}

// stopProcess stops a process as SIGSTOP does, and waits until that has had its effect:
// its threads may take a moment, in which they might answer.
func stopProcess(t *testing.T, pid string) {
	t.Helper()
	if out, err := exec.Command("kill", "-STOP", pid).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testkit.Eventually(t, patience, "it has stopped", func() bool {
		out, _ := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
		return strings.HasPrefix(strings.TrimSpace(string(out)), "T")
	})
}

// A daemon that does not answer blocks no command for good, and each names a remedy that
// helps.
func TestAStuckDaemon(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel() // it waits most of the time
	home := acpHome(t)
	if out, status := everything(home, "run", "--detach", "--private", "--name", "goeson", "--", "sleep", "1000"); status != 0 {
		t.Fatalf("run: %d %s", status, out)
	}
	out, _ := everything(home, "status", "--json")
	var s localapi.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid := strconv.Itoa(s.Pid)
	stopProcess(t, pid)
	var asking sync.WaitGroup // at the same time, since each waits for seconds
	for line, want := range map[string]int{
		"status": localapi.ExitTimeout, "status --json": localapi.ExitTimeout, "ls": localapi.ExitTimeout, "stop": localapi.ExitTimeout,
		"daemon --replace --background": localapi.ExitTimeout, "doctor": localapi.ExitFailure,
		"run --detach -- true": localapi.ExitTimeout, "kill goeson": localapi.ExitTimeout, "lend goeson": localapi.ExitTimeout, "unlend --all": localapi.ExitTimeout,
		"approvals": localapi.ExitTimeout, "approve q-1": localapi.ExitTimeout, "read goeson": localapi.ExitTimeout, "commands goeson": localapi.ExitTimeout,
		"host ls": localapi.ExitTimeout, "host use x": localapi.ExitTimeout, "up": localapi.ExitTimeout, "token ls": localapi.ExitTimeout, "env": localapi.ExitTimeout,
	} {
		asking.Go(func() {
			out, status := everything(home, strings.Fields(line)...)
			if status != want || !strings.Contains(out, "not answer") || !strings.Contains(out, "it is process "+pid+"; to replace it: tether daemon --replace --force --background") {
				t.Errorf("tether %s: status %d:\n%s", line, status, out)
			}
			if strings.HasPrefix(line, "run") && strings.Contains(out, "may have begun") { // it asks first what the daemon can do
				t.Errorf("tether %s was not sent:\n%s", line, out)
			}
		})
	}
	asking.Wait()
	if out, status := everything(home, "daemon", "--replace", "--force", "--background"); status != 0 {
		t.Errorf("another daemon: status %d:\n%s", status, out)
	}
	testkit.Eventually(t, patience, "another daemon has it", func() bool {
		out, status := everything(home, "ls")
		return status == 0 && strings.Contains(out, "goeson") && strings.Contains(out, "running")
	})
}

// A kill whose holder is stopped says so, and is done when the holder runs again.
func TestAStoppedHolder(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel() // it waits most of the time
	home := acpHome(t)
	if out, status := everything(home, "run", "--detach", "--private", "--name", "held", "--", "sleep", "1000"); status != 0 {
		t.Fatalf("run: %d %s", status, out)
	}
	out, _ := everything(home, "ls", "--json")
	var l localapi.TerminalList
	if err := json.Unmarshal([]byte(out), &l); err != nil || len(l.Terminals) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	ppid := must.Get(exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(l.Terminals[0].Pid)).Output())(t)
	holder := strings.TrimSpace(string(ppid))
	stopProcess(t, holder)
	again := exec.Command("kill", "-CONT", holder)
	if out, status := everything(home, "kill", "held"); status != localapi.ExitTimeout || !strings.Contains(out, "the process "+holder+", which holds this terminal, is stopped") || !strings.Contains(out, "kill -CONT "+holder) {
		t.Errorf("kill: status %d:\n%s", status, out)
	}
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testkit.Eventually(t, patience, "it was killed", func() bool {
		out, status := everything(home, "ls")
		return status == 0 && strings.Contains(out, "killed")
	})
}

// Commands that are connected to a daemon that stops say so, and go on when it does.
func TestConnectedCommandsWait(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel() // it waits most of the time
	home := acpHome(t)
	if out, status := everything(home, "run", "--detach", "--private", "--name", "cat", "--", "cat"); status != 0 {
		t.Fatalf("run: %d %s", status, out)
	}
	out, _ := everything(home, "status", "--json")
	var s localapi.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	signal := func(name string) {
		t.Helper()
		if out, err := exec.Command("kill", "-"+name, strconv.Itoa(s.Pid)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	attached := sitAt(t, pty.Command{Path: "tether", Args: []string{"tether", "attach", "cat"}, Env: append(environ(home), "TERM=xterm")})
	attached.types("one\r")
	attached.sees("one\r\none")
	type started struct {
		line      string
		said      testkit.Output
		in        io.WriteCloser
		c         *exec.Cmd
		beginning string // its beginning input
	}
	all := []*started{{line: "wait cat --pattern two"}, {line: "read --follow cat"}, {line: "mcp", beginning: handshake}, {line: "record cat --output -"}}
	for _, one := range all {
		one.c = atAPrompt(append([]string{"tether"}, strings.Fields(one.line)...)...)
		one.c.Env = environ(home)
		one.c.WaitDelay = time.Second // the shell's children end with its input
		one.c.Stdout, one.c.Stderr = &one.said, &one.said
		var err error
		if one.in, err = one.c.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		must.Do(t, one.c.Start())
		t.Cleanup(func() { one.in.Close(); one.c.Process.Kill(); one.c.Wait() })
		if one.beginning != "" {
			must.Get(io.WriteString(one.in, one.beginning))(t)
			testkit.Eventually(t, patience, "it is connected", func() bool { return strings.Contains(one.said.String(), "serverInfo") })
		}
	}
	testkit.Eventually(t, patience, "what is followed is there", func() bool { return strings.Contains(all[1].said.String(), "one") })
	testkit.Eventually(t, patience, "the recording has begun", func() bool { return strings.Contains(all[3].said.String(), `"version"`) })
	stopProcess(t, strconv.Itoa(s.Pid))
	must.Get(io.WriteString(all[2].in, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`+"\n"))(t)
	begin := func(args ...string) (said *testkit.Output, in io.WriteCloser) { // that begins now waits, too
		t.Helper()
		late := exec.Command("tether", args...)
		late.Env = environ(home)
		said = &testkit.Output{}
		late.Stdout, late.Stderr = said, said
		in = must.Get(late.StdinPipe())(t)
		must.Do(t, late.Start())
		t.Cleanup(func() { in.Close(); late.Process.Kill(); late.Wait() })
		return said, in
	}
	lateSaid, _ := begin("attach", "cat")
	acpSaid, editor := begin("acp", "--as", "bob", "--", "cat")
	const silent, again = "the daemon does not answer; still waiting", "the daemon answers again"
	attached.sees(silent)
	sees := func(what string, said *testkit.Output, text string) {
		t.Helper()
		testkit.Eventually(t, patience, what+" says "+text, func() bool { return strings.Contains(said.String(), text) })
	}
	for _, one := range all {
		sees(one.line, &one.said, silent)
	}
	sees("attach", lateSaid, silent)
	sees("acp", acpSaid, silent)
	signal("CONT")
	attached.sees(again)
	sees("acp", acpSaid, again)
	must.Get(io.WriteString(editor, `{"jsonrpc":"2.0","method":"hello"}`+"\n"))(t)
	sees("acp", acpSaid, `"hello"`)
	for _, one := range all {
		sees(one.line, &one.said, again)
	}
	sees("mcp", &all[2].said, `"id":7`)
	attached.types("two\r")
	attached.sees("two\r\ntwo")
	if err := all[0].c.Wait(); err != nil || !strings.Contains(all[0].said.String(), "two") {
		t.Errorf("wait: %v\n%s", err, all[0].said.String())
	}
	sees("read", &all[1].said, "two")
	sees("record", &all[3].said, "two")
	for _, one := range all {
		if n := strings.Count(one.said.String(), silent); n != 1 {
			t.Errorf("tether %s says it %d times:\n%s", one.line, n, one.said.String())
		}
	}
}

// handshake opens a session of MCP.
const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// To end several terminals takes as long as the slowest, not as all of them.
func TestKillsAtOnce(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	home := acpHome(t)
	const n = 3
	var names []string
	for i := range n {
		names = append(names, "deaf"+strconv.Itoa(i))
		everything(home, "run", "--detach", "--private", "--name", names[i], "--", "sh", "-c", `trap "" TERM HUP; echo deaf; while :; do sleep 1; done`)
		if out, status := everything(home, "wait", names[i], "--pattern", "deaf"); status != 0 {
			t.Fatalf("wait: %d %s", status, out)
		}
	}
	began := time.Now()
	out, status := everything(home, append([]string{"kill", "nothing"}, names...)...)
	t.Logf("it took %v", time.Since(began))
	if status != localapi.ExitNoTerminal || strings.Count(out, "killed SIGKILL") != n || !strings.Contains(out, "nothing: no such terminal") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// If the disk is full at the daemon's start, the command that needs the daemon says so,
// although nothing could be logged.
func TestStartOnAFullDisk(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	disk, there := testkit.OnSmallDisk(t)
	if !there {
		return
	}
	home := filepath.Join(disk, "home")
	must.Do(t, os.Mkdir(home, 0o700))
	_ = os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 2<<20), 0o600) // as far as it goes
	want := "tether: the daemon did not start: no space left on " + home + "/run\n  free some space, then run the command again\n"
	if out, status := everything(home, "run", "--private", "--", "true"); status == 0 || !strings.Contains(out, want) {
		t.Errorf("run: %d %s, want %q", status, out, want)
	}
	must.Do(t, os.Remove(filepath.Join(disk, "filler")))
	if out, status := everything(home, "run", "--private", "--", "echo", "hello"); status != 0 || !strings.Contains(out, "hello") {
		t.Errorf("with room: %d %s", status, out)
	}
	if out, status := everything(home, "stop"); status != 0 {
		t.Errorf("stop: %d %s", status, out)
	}
}
