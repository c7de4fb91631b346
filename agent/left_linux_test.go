package agent_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

func init() { // the programs of TestProcessesThatOutliveAnAgentsTerminal
	if len(os.Args) != 4 {
		return
	}
	switch socket, file := os.Args[2], os.Args[3]; os.Args[1] {
	case "leave":
		leave(socket, file)
		os.Exit(0)
	case "ask":
		askWhenTold(socket, file)
		os.Exit(1)
	}
}

// leave starts askWhenTold in a session of its own and without an environment.
func leave(socket, file string) {
	cmd := exec.Command(os.Args[0], "ask", socket, file)
	cmd.Env, cmd.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	if cmd.Start() != nil {
		os.Exit(1)
	}
	testkit.AwaitFile(file + ".pid")
}

// askWhenTold writes its number into file.pid, waits for file.go, writes into the file
// who it is, and stays.
func askWhenTold(socket, file string) {
	say := func(name, format string, args ...any) {
		_ = os.WriteFile(name+".new", fmt.Appendf(nil, format, args...), 0o600)
		_ = os.Rename(name+".new", name)
	}
	say(file+".pid", "%d", os.Getpid())
	testkit.AwaitFile(file + ".go")
	w, err := localclient.New(socket).Whoami(context.Background())
	say(file, "%s, %v", w.Actor, err)
	testkit.AwaitFile(file + ".end") // nobody writes it
}

// allowing lets agents start a program without a question.
func allowing(program string) *config.Config {
	settings := config.Default()
	settings.Policy.Rules = []config.PolicyRule{{Name: "test", Effect: "allow", Argv: []string{program}}}
	return &settings
}

// A program that outlives its agent's terminal in a session of its own and without its
// environment is the agent to the next daemon, and ends with tether stop.
func TestProcessesThatOutliveAnAgentsTerminal(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	c := withHolders(t, d)
	c.Settings = allowing(c.Holder.Path)
	first := start(t, c)
	file := filepath.Join(t.TempDir(), "said")
	tm, err := first.client.As("bob").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{c.Holder.Path, "leave", agent.SocketPath(d), file}, Cwd: "/"})
	must.Do(t, err)
	testkit.Eventually(t, patience, "the agent's terminal has exited", func() bool {
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
	if string(said) != "agent bob, <nil>" {
		t.Errorf("it is %s, want agent bob", said)
	}
	text := must.Get(os.ReadFile(file + ".pid"))(t)
	pid := must.Get(strconv.Atoi(string(text)))(t)
	second.stop()
	testkit.Eventually(t, patience, "the program has ended", func() bool {
		p, err := proc.Lookup(pid)
		return err != nil || p.Zombie
	})
}
