package main

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/vocab"
)

func TestFoldExited(t *testing.T) {
	gone := &vocab.Exit{At: time.Now()}
	shown, hidden := foldExited([]localapi.Terminal{{ID: "a"}, {ID: "b", Exit: gone}, {ID: "c", Exit: gone}, {ID: "d", Exit: gone}}, 1)
	if len(shown) != 2 || shown[1].ID != "b" || hidden != 2 {
		t.Errorf("%d shown, %d hidden", len(shown), hidden)
	}
}

// At a terminal ls fits the window, folds terminals that exited earlier, and shows each
// terminal's owner; elsewhere it lists everything.
func TestLsAtATerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	for range shownExited + 2 {
		command(t, "run", "--private", "--name", "over", "--", "true")
	}
	command(t, "run", "--detach", "--private", "--name", "old", "--", "sleep", "1000")
	command(t, "run", "--detach", "--private", "--name", strings.Repeat("名前", 20), "--", "sh", "-c", "sleep 1000; echo "+strings.Repeat("long ", 30))
	p := sit(t, "ls")
	p.exits(0)
	text := p.shown()
	if n := strings.Count(text, " over "); n != shownExited || !strings.Contains(text, "2 older exited terminals not shown: tether ls --all") {
		t.Errorf("%d that have exited are shown:\n%s", n, text)
	}
	for _, l := range strings.Split(text, "\r\n") {
		if ansi.StringWidth(l) > 100 {
			t.Errorf("%d columns in a window of 100: %s", ansi.StringWidth(l), l)
		}
	}
	if !(strings.Index(text, "名前") < strings.Index(text, " old ") && strings.Index(text, " old ") < strings.Index(text, " over ")) {
		t.Errorf("not the newest that runs first:\n%s", text)
	}
	if !strings.Contains(text, "  you  ") {
		t.Errorf("it does not say whose they are:\n%s", text)
	}
	for _, args := range [][]string{{"ls"}, {"ls", "--all"}} {
		if out, _ := command(t, args...); strings.Count(out, " over ") != shownExited+2 || !strings.Contains(out, strings.Repeat("名前", 20)) {
			t.Errorf("to a pipe:\n%s", out)
		}
	}
}

// What is to be pasted is one line, and each word in it is one.
func TestHowToSee(t *testing.T) {
	for want, p := range map[string]localapi.UserPort{
		"tether adopt tmux:%3":                               {Adopt: "tmux:%3", Restart: []string{"x"}, Directory: "/"},
		"end it, then tether run --cwd '/a b' -- node 'x;y'": {Restart: []string{"node", "x;y"}, Directory: "/a b"},
		"end it, then tether run -- vite":                    {Restart: []string{"vite"}},
		"-":                                                  {Command: []string{"next-server (v16)"}},
		"end it, then tether run --cwd '/a b' -- 'x \ufffd[31m'": {Restart: []string{"x\n\x1b[31m"}, Directory: "/a\nb"},
	} {
		if got := howToSee(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
