package runs_test

import (
	"testing"
	"testing/synctest"

	"tether/agent/runs"
	"tether/agent/term"
	"tether/internal/testkit"
)

// Marks of a shell with integration.
const (
	executed = "\x1b]633;E;go test\\x20hunter2-value;n0nce\a\x1b]633;C;n0nce\a"
	failed   = "\x1b]633;D;2;n0nce\a"
	moved    = "\x1b]633;P;Cwd="
)

// A terminal is a run, and so is each command of a shell in it: with everything that is
// known of them, as hosts would see it.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{Name: "web", Command: []string{"sh", value}})
		prints(f, "$ "+executed+"bad "+value+"\r\n"+failed+"$ ")
		settle()
		id := string(h.ID())
		if got := read(t, w.person(), id); got != "$ bad "+masked+"\r\n$ " {
			t.Errorf("the terminal's text: %q", got)
		}
		if got := read(t, w.person(), id+".1"); got != "bad "+masked+"\r\n" {
			t.Errorf("the command's text: %q", got)
		}
		f.End(3)
		settle()
		list := w.all()
		if len(list) != 2 {
			t.Fatalf("%d runs: %+v", len(list), list)
		}
		command, terminal := list[0], list[1]
		if command.ID != id+".1" || command.Line != "go test "+masked || command.Exit == nil || command.Exit.Code != 2 || command.Dir != testkit.Abs("/src") || command.Start != 2 || command.End != 21 {
			t.Errorf("the command: %+v", command)
		}
		if terminal.ID != id || terminal.Name != "web" || !terminal.Named || terminal.Line != "sh "+masked || terminal.Exit == nil || terminal.Exit.Code != 3 || terminal.End != 23 || terminal.Owner != "user" {
			t.Errorf("the terminal: %+v", terminal)
		}
	})
}
