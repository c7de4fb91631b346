package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

func TestUIAtATerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	command(t, "run", "--detach", "--private", "--name", "first", "--", "sh", "-c", `echo one; exec sleep 1000`)
	command(t, "run", "--detach", "--private", "--name", "shown", "--", "sh", "-c", `echo preview-""text; while read x; do echo "<$x>"; done`)
	p := sit(t, "ui")
	p.sees("\x1b[?1049h", "2 running", "shown", "preview-text") // which the command in the list does not have
	p.types("\r")
	p.sees("\x1b[?1049l", "preview-text")
	p.types("hello\r")
	p.sees("<hello>")
	p.types("~.")
	p.sees("2 running")
	p.types("x")
	p.sees("Kill shown and its processes? y/N")
	p.types("y")
	p.sees("killed shown")
	p.types("q")
	p.sees("\x1b[?1049l")
	p.exits(0)
	if out, _ := command(t, "ls"); !strings.Contains(out, "killed") || !strings.Contains(out, "first") {
		t.Errorf("after it:\n%s", out)
	}
	if _, status := command(t, "ui"); status != 2 {
		t.Errorf("without a terminal it exits with %d", status)
	}
}

// A terminal that cannot move the cursor gets an error instead of escape sequences.
func TestUIRefusesADumbTerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	t.Setenv("TERM", "dumb")
	p := sit(t, "ui")
	p.sees("TERM=dumb", "tether ls")
	p.exits(2)
	if strings.Contains(p.shown(), "\x1b") {
		t.Errorf("it printed escape sequences: %q", p.shown())
	}
}

// The daemon carries out the keys: lending, promoting and answering at a real screen.
func TestUIActs(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	must.Do(t, os.MkdirAll(filepath.Join(home, "config"), 0o700))
	rule := "[[policy.rules]]\nname = \"ask me\"\neffect = \"ask\"\nargv = [\"sleep\", \"777\"]\n"
	must.Do(t, os.WriteFile(filepath.Join(home, "config", "config.toml"), []byte(rule), 0o600))
	h := &testHost{}
	must.Do(t, h.start(""))
	defer h.stop()
	if out, status := command(t, "pair", "--without-token", "--name", "lab", "ws://"+h.address); status != 0 {
		t.Fatalf("pair: %s", out)
	}
	client := localclient.New(agent.SocketPath(dirsOf(home)))
	defer client.Close()
	bob := client.As("bob")
	theirs := must.Get(bob.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"sleep", "1000"}, Cwd: "/", Name: "theirs"}))(t)
	found := func(what string, is func(localapi.Terminal) bool) {
		t.Helper()
		testkit.Eventually(t, patience, what, func() bool {
			tm, err := client.Find(t.Context(), theirs.ID)
			return err == nil && is(tm)
		})
	}
	p := sit(t, "ui")
	p.sees("theirs", "enter attach")
	p.types("u") // its message is drawn over the former one, in pieces
	found("it is lent to nobody", func(tm localapi.Terminal) bool { return len(tm.Loans) == 0 })
	p.types("l")
	found("it is lent again", func(tm localapi.Terminal) bool { return len(tm.Loans) == 1 && tm.Loans[0].Host == "lab" })
	p.types("p")
	found("it is the person's", func(tm localapi.Terminal) bool { return tm.Owner == "user" })
	answered := make(chan error, 1)
	go func() {
		_, err := bob.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"sleep", "777"}, Cwd: "/"})
		answered <- err
	}()
	p.sees("1 agent request (a)")
	p.types("a")
	p.sees("y approve")
	p.types("y")
	if err := <-answered; err != nil {
		t.Errorf("what was approved was not run: %v", err)
	}
	p.types("q")
	p.exits(0)
}

// read --screen and ui show a full-screen program's screen.
func TestDrawnScreens(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	command(t, "run", "--detach", "--private", "--name", "drawn", "--", "sh", "-c",
		`printf '\033[?1049h\033[2J\033[HTHE \033[31mHEADER\033[m\033[3;1Hcounter'; for i in 1 2 3; do printf '\033[3;9H%s' $i; done; exec sleep 1000`)
	testkit.Eventually(t, patience, "it is drawn", func() bool {
		out, _ := command(t, "read", "--screen", "drawn")
		return out == "THE HEADER\n\ncounter 3"
	})
	if out, _ := command(t, "read", "--screen", "--color", "always", "drawn"); out != "THE \x1b[0;31mHEADER\x1b[0m\n\ncounter 3" {
		t.Errorf("with colours the screen is %q", out)
	}
	if _, status := command(t, "read", "--screen", "--tail", "3", "drawn"); status != 2 {
		t.Errorf("with --tail it ends with %d", status)
	}
	p := sit(t, "ui")
	p.sees("HEADER", "counter 3")
	p.types("q")
	p.exits(0)
}
