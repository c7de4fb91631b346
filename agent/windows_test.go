//go:build windows

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/windows"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/proc"
)

func TestEndsWithEverythingOnWindows(t *testing.T) {
	testkit.Leaks(t)
	d, terminals := shutDown(t, []string{"cmd", "/c", "start /b ping -n 1000 127.0.0.1 & pause"})
	for _, tm := range terminals {
		if p, err := proc.Lookup(tm.Pid); err == nil && !p.Zombie {
			t.Errorf("process %d is left", tm.Pid)
		}
	}
	if conn, err := ipc.Dial(t.Context(), agent.SocketPath(d)); !errors.Is(err, ipc.ErrNotRunning) {
		t.Errorf("after the end: %v, %v", conn, err)
	}
}

// Programs get the environment of the account, with a request's additions, and of
// tether's variables only the terminal's mark and the home by which tether finds this
// daemon there.
func TestEnvironmentOnWindows(t *testing.T) {
	t.Setenv("ONLY_THE_DAEMONS", "x")
	t.Setenv("TETHER_TOKEN_FILE", "x")
	a := start(t, agent.Config{Dirs: home(t)})
	cmd := filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe")
	out, code := prints(t, a.client, localapi.SpawnRequest{Command: []string{cmd, "/d", "/c", "set"}, SetEnv: []string{"path=C:\\x", "GOOD=grün"}, Cols: 500, Rows: 100})
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for text, want := range map[string]bool{"GOOD=grün": true, "path=C:\\x": true, "PATH=C:\\windows": false, "SystemRoot=": true, "USERPROFILE=": true,
		"TETHER_TERMINAL=": true, "TETHER_HOME=": true, "TETHER_TOKEN": false, "ONLY_THE_DAEMONS": false} {
		if strings.Contains(strings.ToUpper(out), strings.ToUpper(text)) != want {
			t.Errorf("%q in the environment: %t, want %t:\n%s", text, !want, want, out)
		}
	}
}

// Exit codes are 32 bits without a sign, through every layer.
func TestExitCodesOnWindows(t *testing.T) {
	a := start(t, agent.Config{Dirs: home(t)})
	for text, want := range map[string]int{"0": 0, "3": 3, "300": 300, "-1": 0xffffffff, "-1073741819": 0xc0000005, "2147483647": 0x7fffffff} {
		if _, code := prints(t, a.client, localapi.SpawnRequest{Line: "exit " + text}); code != want {
			t.Errorf("exit %s became %s, want %s", text, strconv.Itoa(code), strconv.Itoa(want))
		}
	}
}

func TestShellsOnWindows(t *testing.T) {
	t.Setenv("SHELL", filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe"))
	a := start(t, agent.Config{Dirs: home(t)})
	for _, command := range [][]string{nil, {"cmd"}, {"cmd.exe"}} {
		dir := t.TempDir()
		tm := must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: command, Shell: true, Cwd: dir, Cols: 200, Rows: 50}))(t)
		at := must.Get(a.client.Attach(t.Context(), tm.ID, localclient.AttachOptions{}))(t)
		check.OK(t, at.Write(t.Context(), []byte("exit 5\r")))
		testkit.Eventually(t, patience, "the shell ends", func() bool {
			tm, err := a.client.Find(t.Context(), tm.ID)
			return err == nil && tm.Exit != nil && tm.Exit.Code == 5
		})
		at.Close()
	}
}

// Terminals outlive the daemon, and the next one goes on with them.
func TestHandOverOnWindows(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	c := withHolders(t, d)
	first := start(t, c)
	var all []localapi.Terminal
	for _, name := range []string{"one", "two", "three"} {
		x := must.Get(first.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"cmd", "/d", "/q", "/k", "prompt $s"}, Name: name,
			Cwd: testkit.Abs("/"), Private: true, Env: os.Environ(), Cols: 200, Rows: 50}))(t)
		all = append(all, x)
	}
	say := func(one *daemon, id, text, want string) {
		t.Helper()
		a := must.Get(one.client.Attach(t.Context(), id, localclient.AttachOptions{}))(t)
		defer a.Close()
		must.Do(t, a.Write(t.Context(), []byte(text+"\r")))
		testkit.Eventually(t, patience, "it prints "+want, func() bool {
			body := must.Get(one.client.Read(t.Context(), id, localclient.ReadOptions{}, nil))(t)
			defer body.Close()
			text, err := io.ReadAll(body)
			return err == nil && strings.Contains(string(text), want)
		})
	}
	for _, x := range all {
		say(first, x.ID, "set /a 40+2", "42")
	}
	first.end()
	if left, err := agent.LeftRunning(d); len(left) != len(all) || err != nil {
		t.Errorf("left after the daemon: %v, %v", left, err)
	}
	second := start(t, c)
	second.list(len(all))
	for _, x := range all {
		say(second, x.ID, "set /a 70+7", "77")
		say(second, x.ID, "echo still", "42")
	}
	second.stop()
	if left, err := agent.LeftRunning(d); len(left) != 0 || err != nil {
		t.Errorf("left after stop: %v, %v", left, err)
	}
}

// An agent's processes are in the agent's job, which carries its limits, and the person's
// are not.
func TestLimitsOfAnAgentOnWindows(t *testing.T) {
	testkit.Leaks(t)
	a := start(t, withHolders(t, home(t)))
	name := "bob" + strconv.Itoa(os.Getpid())
	run := func(client *localclient.Client) localapi.Terminal {
		t.Helper()
		return must.Get(client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"ping", "-n", "1000", "127.0.0.1"}, Cwd: outside(t)}))(t)
	}
	bobs, mine := run(a.client.As(name)), run(a.client)
	job := must.Get(proc.AgentJob(name))(t)
	defer job.Close()
	if pids, err := job.Pids(); err != nil || !slices.Contains(pids, bobs.Pid) || slices.Contains(pids, mine.Pid) {
		t.Errorf("in the job of %s: %v, %v; want %d and not %d", name, pids, err, bobs.Pid, mine.Pid)
	}
	a.stop()
}

func init() { // programs of TestProcessesThatOutliveAnAgentsTerminalOnWindows
	if len(os.Args) != 4 {
		return
	}
	switch socket, file := os.Args[2], os.Args[3]; os.Args[1] {
	case "outlive":
		self, err := os.Executable()
		if err != nil {
			os.Exit(1)
		}
		cmd := exec.Command(self, "ask", socket, file)
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS}
		if cmd.Start() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case "ask":
		testkit.AwaitFile(file + ".go")
		w, err := localclient.New(socket).Whoami(context.Background())
		_ = os.WriteFile(file+".new", fmt.Appendf(nil, "%d %s, %v", os.Getpid(), w.Actor, err), 0o600)
		_ = os.Rename(file+".new", file)
		testkit.AwaitFile(file + ".end") // nobody writes it
		os.Exit(1)
	}
}

// A program that outlives its agent's terminal is the agent to the next daemon, and ends
// with tether stop.
func TestProcessesThatOutliveAnAgentsTerminalOnWindows(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	c := withHolders(t, d)
	first := start(t, c)
	self, err := os.Executable()
	must.Do(t, err)
	name, file := "bob"+strconv.Itoa(os.Getpid()), filepath.Join(t.TempDir(), "said")
	tm := must.Get(first.client.As(name).Spawn(t.Context(), localapi.SpawnRequest{Command: []string{self, "outlive", agent.SocketPath(d), file}, Cwd: outside(t)}))(t)
	testkit.Eventually(t, patience, "the terminal has exited", func() bool {
		tm, err = first.client.Find(t.Context(), tm.ID)
		return err == nil && tm.Exit != nil
	})
	first.end()
	second := start(t, c)
	must.Do(t, os.WriteFile(file+".go", nil, 0o600))
	var said []byte
	testkit.Eventually(t, patience, "the program has asked", func() bool {
		said, err = os.ReadFile(file)
		return err == nil
	})
	pid, who, _ := strings.Cut(string(said), " ")
	if who != "agent "+name+", <nil>" {
		t.Errorf("it is %s, want agent %s", who, name)
	}
	second.stop()
	n := must.Get(strconv.Atoi(pid))(t)
	testkit.Eventually(t, patience, "the program has ended", func() bool {
		p, err := proc.Lookup(n)
		return err != nil || p.Zombie
	})
}

// Killing an agent's exited terminal ends the processes that it has left, and spares
// those of the agent's other terminals.
func TestKillFindsLeftoverProcessesOnWindows(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	daemon := start(t, withHolders(t, d))
	self, err := os.Executable()
	must.Do(t, err)
	bob := daemon.client.As("bob" + strconv.Itoa(os.Getpid()))
	var terminals [2]localapi.Terminal
	var pids [2]int
	for i := range terminals {
		file := filepath.Join(t.TempDir(), "said")
		if terminals[i], err = bob.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{self, "outlive", agent.SocketPath(d), file}, Cwd: outside(t)}); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, patience, "the terminal has exited", func() bool {
			tm, err := daemon.client.Find(t.Context(), terminals[i].ID)
			return err == nil && tm.Exit != nil
		})
		must.Do(t, os.WriteFile(file+".go", nil, 0o600))
		testkit.Eventually(t, patience, "the program has asked", func() bool {
			said, err := os.ReadFile(file)
			pid, _, _ := strings.Cut(string(said), " ")
			pids[i], _ = strconv.Atoi(pid)
			return err == nil && pids[i] > 0
		})
	}
	gone := func(pid int) bool {
		p, err := proc.Lookup(pid)
		return err != nil || p.Zombie
	}
	if _, err := daemon.client.Kill(t.Context(), terminals[0].ID); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, patience, "the program has ended", func() bool { return gone(pids[0]) })
	if gone(pids[1]) {
		t.Error("what another terminal has left was ended, too")
	}
	// Then there is nothing to end, although the agent's job is not empty: nothing is
	// said to have been done.
	if _, err := daemon.client.Kill(t.Context(), terminals[0].ID); err != nil {
		t.Error(err)
	}
	daemon.stop()
	log := must.Get(os.ReadFile(agent.AuditPath(d)))(t)
	if n := strings.Count(string(log), "what it had left running"); n != 1 {
		t.Errorf("the audit log tells %d times of what was left:\n%s", n, log)
	}
}
