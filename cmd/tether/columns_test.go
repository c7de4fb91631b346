package main

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"tether/agent/local"
	"tether/internal/testkit"
)

// Columns are aligned with any content, and rows too long for the window are cut.
func TestTableFits(t *testing.T) {
	x := columns{least: []int{0, 4, 6}, rows: [][]string{{"ID", "NAME", "COMMAND"}, {"1", "名前名前名前", "make 田 all"}, {"2", "e\u0301te\u0301", strings.Repeat("long ", 20)}}}
	for _, width := range []int{0, 200, 60, 30, 16} {
		lines := x.lines(width)
		at := -1
		for _, l := range lines {
			if width > 0 && ansi.StringWidth(l) > width {
				t.Errorf("%d columns in a window of %d: %q", ansi.StringWidth(l), width, l)
			}
			command := strings.TrimRight(l, " ")
			for _, begin := range []string{"COMM", "make", "long"} {
				if i := strings.Index(command, begin); i >= 0 {
					if w := ansi.StringWidth(command[:i]); at >= 0 && w != at {
						t.Errorf("in a window of %d a column begins at %d and %d:\n%s", width, at, w, strings.Join(lines, "\n"))
					} else {
						at = w
					}
				}
			}
		}
	}
	if all := x.lines(0); !strings.Contains(all[1], "名前名前名前  make 田 all") {
		t.Errorf("cut without a bound: %q", all)
	}
}

func TestFoldExited(t *testing.T) {
	gone := &local.Exit{At: time.Now()}
	shown, hidden := foldExited([]local.Terminal{{ID: "a"}, {ID: "b", Exit: gone}, {ID: "c", Exit: gone}, {ID: "d", Exit: gone}}, 1)
	if len(shown) != 2 || shown[1].ID != "b" || hidden != 2 {
		t.Errorf("%d shown, %d hidden", len(shown), hidden)
	}
}

// At a terminal ls fits the window, folds terminals that exited earlier, and shows each terminal's owner; elsewhere it lists everything.
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
