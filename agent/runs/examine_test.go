package runs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/runs"
	"tether/agent/term"
	"tether/agent/verdict"
	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// command is what a shell with integration prints for a command.
func command(line, output string, exit int) string {
	return fmt.Sprintf("\x1b]633;E;%s;n0nce\a\x1b]633;C;n0nce\a%s\x1b]633;D;%d;n0nce\a", strings.ReplaceAll(line, " ", `\x20`), output, exit)
}

// short is a verdict in one line.
func short(v verdict.Verdict) string {
	s := v.Name + v.Line + ": " + string(v.State)
	if v.Good != nil {
		s += ", good " + v.Good.Run
	}
	if v.Failing != nil {
		s += ", failing " + v.Failing.Run
	}
	if v.New != nil {
		s += fmt.Sprintf(", %d new errors", v.New.Errors)
	}
	if v.Running != nil {
		s += ", running"
	}
	if v.Uncounted > 0 {
		s += fmt.Sprintf(", %d uncounted", v.Uncounted)
	}
	return s
}

// verdicts are those of series, in lines.
func verdicts(t *testing.T, v runs.View, names ...string) string {
	t.Helper()
	var lines []string
	for _, one := range must.Get(v.Verdict(t.Context(), "", names))(t) {
		lines = append(lines, short(one))
	}
	return strings.Join(lines, "\n")
}

// told are the changes of verdicts after the first n, as far as there are some now.
func told(t *testing.T, v runs.View, n int64) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	list, _, _ := v.VerdictChanges(ctx, n)
	var lines []string
	for _, c := range list {
		lines = append(lines, fmt.Sprintf("%s %s to %s", c.Run, c.From, c.To))
	}
	return strings.Join(lines, "\n")
}

const wrong = "main.c:3:5: error: expected ';' before 'return'\r\n"

// The commands of a shell are judged by their exit status, and what they printed counts
// beside it.
func TestVerdictOfCommands(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{Command: []string{"bash"}})
		prints(f, "$ "+command("make", "cc main.c\r\n", 0)+command("ls", "", 0)+command("make", "cc main.c\r\n"+wrong, 2)+command("make", "cc", 130)+command("false", "", 1))
		settle()
		id := string(h.ID())
		all := verdicts(t, w.person())
		if want := "make: failing, good " + id + ".1, failing " + id + ".3, 1 new errors, 1 uncounted"; all != want {
			t.Errorf("%s\nwant\n%s", all, want)
		}
		for _, name := range []string{"make", id + ".3", id + ".1"} {
			if got := verdicts(t, w.person(), name); got != all {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got, want := told(t, w.person(), 0), id+".3 good to failing"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		if got := verdicts(t, w.person(), "ls"); got != "ls: good, good "+id+".2" {
			t.Errorf("a command that is named: %s", got)
		}
		if _, err := w.person().Verdict(t.Context(), "", []string{"nothing"}); !errors.Is(err, agenttools.ErrNotFound) {
			t.Errorf("a name without runs: %v", err)
		}
		agent := w.runs.As(runs.Asker{Actor: term.User, Host: "elsewhere"})
		if got := verdicts(t, agent) + told(t, agent, 0); got != "" {
			t.Errorf("a host to which nothing was lent knows %s", got)
		}
		prints(f, command("make", "cc main.c\r\n", 0))
		settle()
		if got, want := verdicts(t, w.person()), "make: good, good "+id+".6"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got, want := told(t, w.person(), 1), id+".6 failing to good"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		w.stop(time.Minute)
		w.record(dir, runs.Options{}) // another daemon
		prints(f, command("make", wrong, 2))
		settle()
		if got, want := told(t, w.person(), 0), id+".7 good to failing"; got != want {
			t.Errorf("told after a restart %q, want %q", got, want)
		}
	})
}

// What ends a shell at which a person works says nothing; of one that runs a command it
// does.
func TestVerdictOfShells(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		for _, argv := range [][]string{{"bash", "--login", "-i"}, {"sh", "-c", "make test"}, {"/bin/zsh"}} {
			_, f := w.spawn(term.Spec{Command: argv})
			f.End(2)
			settle()
		}
		if got := verdicts(t, w.person()); !strings.HasPrefix(got, "sh -c make test: failing") || strings.Contains(got, "\n") {
			t.Errorf("%s", got)
		}
	})
}

// A watcher is judged by its rounds while it runs.
func TestVerdictOfWatcher(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{Command: []string{"tsc", "-w"}})
		step := func(text, want string) {
			t.Helper()
			prints(f, text)
			settle()
			if got := verdicts(t, w.person()); got != "tsc -w: "+strings.ReplaceAll(want, "ID", string(h.ID())) {
				t.Errorf("after %q: %s, want %s", text, got, want)
			}
		}
		const again, done = "\x1b[2J\x1b[3J\x1b[H[10:00:05 AM] File change detected. Starting incremental compilation...\r\n\r\n", "[10:00:06 AM] Found %d errors. Watching for file changes.\r\n"
		bad := "a.ts(1,2): error TS1005: ';' expected.\r\n\r\n"
		step("[10:00:01 AM] Starting compilation in watch mode...\r\n\r\n", "unknown, running")
		step(fmt.Sprintf(done, 0), "good, good ID, running")
		step(again, "good, good ID, running")
		step(bad+fmt.Sprintf(done, 1), "failing, good ID, failing ID, 1 new errors, running")
		step(again+bad+bad+fmt.Sprintf(done, 2), "failing, good ID, failing ID, 1 new errors, running")
		w.stop(time.Minute)
		w.record(dir, runs.Options{}) // another daemon
		step(again+fmt.Sprintf(done, 0), "good, good ID, running")
		step(again+bad+fmt.Sprintf(done, 1), "failing, good ID, failing ID, 1 new errors, running")
		c := must.Get(w.person().Compare(t.Context(), "", "tsc -w", ""))(t)
		if len(c.New) != 1 || len(c.Gone) != 0 || c.New[0].Message != "';' expected." {
			t.Errorf("new %+v, gone %+v", c.New, c.Gone)
		}
		f.End(0)
		settle()
		if got, want := verdicts(t, w.person()), "tsc -w: failing, good ID, failing ID, 1 new errors"; got != strings.ReplaceAll(want, "ID", string(h.ID())) {
			t.Errorf("a watcher that has ended: %s", got)
		}
	})
}

// A declared terminal is good once it is ready.
func TestVerdictOfServer(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{Name: "web", Command: []string{"node", "server.js"}})
		become := func(s vocab.ReadyState) {
			h.SetReady(s, "")
			prints(f, "x\r\n")
			settle()
		}
		become(vocab.ReadyStarting)
		if got := verdicts(t, w.person()); got != "web: unknown, running" {
			t.Errorf("starting: %s", got)
		}
		become(vocab.ReadyYes)
		id := string(h.ID())
		if got := verdicts(t, w.person()); got != "web: good, good "+id+", running" {
			t.Errorf("ready: %s", got)
		}
		prints(f, wrong)
		settle()
		if got := verdicts(t, w.person()); got != "web: failing, failing "+id+", 1 new errors, running" {
			t.Errorf("an error was printed: %s", got)
		}
		if got, want := told(t, w.person(), 0), id+" good to failing"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// In a flood, what was printed last is examined, at a bounded rate.
func TestExamineFlood(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		_, f := w.spawn(term.Spec{})
		noise := strings.Repeat("cc -c a.c\r\n", 1000)
		for range 300 {
			f.Print(noise)
			time.Sleep(10 * time.Millisecond)
		}
		prints(f, wrong)
		f.End(2)
		settle()
		if list := w.all(); len(list) != 1 || list[0].Problems.Errors != 1 || len(list[0].Problems.First) != 1 {
			t.Errorf("%+v", list)
		}
	})
}

// What a run printed is compared with the last good run of its series, or another one.
func TestCompareRuns(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{Command: []string{"bash"}})
		id := string(h.ID())
		prints(f, command("make", "10:00:01 cc a.c pid 12\r\nold.c:1:1: warning: odd\r\nbuilt in 3 s\r\n", 0)+command("make", "10:09:59 cc a.c pid 4711\r\nold.c:4:1: warning: odd\r\n"+wrong, 2))
		settle()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := must.Get(w.person().Compare(ctx, "", "make", ""))(t)
		if c.Run.Run != id+".2" || c.With.Run != id+".1" || c.Problems != (verdict.ProblemCounts{New: 1, Same: 1}) || len(c.Added) != 1 || c.Added[0].Text != strings.TrimSpace(wrong) || len(c.Removed) != 1 || c.Removed[0].Text != "built in 3 s" {
			t.Errorf("%+v", c)
		}
		if c := must.Get(w.person().Compare(ctx, "", id+".1", id+".2"))(t); c.Problems.Gone != 1 || c.Run.Run != id+".1" {
			t.Errorf("the other way round: %+v", c)
		}
		if _, err := w.person().Compare(ctx, "", id+".1", ""); err == nil || !strings.Contains(err.Error(), "name the run to compare with") {
			t.Errorf("the first run: %v", err)
		}
		if _, err := w.person().Compare(ctx, "", "make", "pty-none"); !errors.Is(err, agenttools.ErrNotFound) {
			t.Errorf("with a run that there is not: %v", err)
		}
	})
}
