package runs_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"tether/agent/runs"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
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

// Whoever asks finds what was printed a moment ago.
func TestAskedAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan struct{})
		answer := sync.OnceFunc(func() { close(answered) })
		w := open(t, dir, runs.Options{Never: func(string, ...string) (bool, <-chan struct{}) {
			select {
			case <-answered:
				return false, nil
			default:
				time.AfterFunc(100*time.Millisecond, answer)
				return false, answered
			}
		}})
		h, f := w.spawn(term.Spec{})
		prints(f, "ready")
		if got := read(t, w.person(), string(h.ID())); got != "ready" {
			t.Errorf("read at once: %q", got)
		}
		prints(f, ", and more")
		if got := read(t, w.person(), string(h.ID())); got != "ready, and more" {
			t.Errorf("read again: %q", got)
		}
	})
}

// Nothing is kept of private terminals, and of what is printed below a directory that is
// never lent; the rest of such a shell is.
func TestNothingIsKeptOf(t *testing.T) {
	dir, top := t.TempDir(), testkit.Abs("/secret")
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, never(top))
		_, private := w.spawn(term.Spec{Private: true})
		_, below := w.spawn(term.Spec{Cwd: top + "/below"})
		h, shell := w.spawn(term.Spec{})
		for _, f := range []*testkit.Child{private, below} {
			prints(f, "classified")
		}
		inside := executed + "classified\r\n" + failed
		prints(shell, "one\r\n"+moved+escaped(top)+";n0nce\a"+"classified\r\n"+inside)
		settle()
		prints(shell, "classified"+moved+escaped(testkit.Abs("/src"))+";n0nce\a"+"two\r\n")
		for _, f := range []*testkit.Child{private, below, shell} {
			f.End(0)
		}
		settle()
		if got, want := read(t, w.person(), string(h.ID())), "one\r\n"+gap("classified\r\nclassified\r\nclassified")+"two\r\n"; got != want {
			t.Errorf("the shell's text is %q, want %q", got, want)
		}
		if list := w.all(); len(list) != 1 || list[0].ID != string(h.ID()) {
			t.Errorf("the runs are %+v", list)
		}
	})
	if text := everything(t, dir); strings.Contains(text, "classified") || strings.Contains(text, filepath.Base(top)) || !strings.Contains(text, "two") {
		t.Errorf("on disk is %q", text)
	}
}

// While the rules about a directory do not answer, nothing is written, and nothing is
// lost afterwards. Other terminals go on.
func TestRulesThatHang(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		settled := make(chan struct{})
		w := open(t, dir, runs.Options{Never: func(_ string, dirs ...string) (bool, <-chan struct{}) {
			select {
			case <-settled:
			default:
				if slices.Contains(dirs, testkit.Abs("/slow")) {
					return false, settled
				}
			}
			return false, nil
		}})
		slow, f := w.spawn(term.Spec{Cwd: testkit.Abs("/slow")})
		moves, g := w.spawn(term.Spec{})
		prints(f, "slow\r\n")
		prints(g, "one\r\n"+moved+escaped(testkit.Abs("/slow"))+";n0nce\atwo\r\n")
		settle()
		if got := read(t, w.person(), string(slow.ID())) + read(t, w.person(), string(moves.ID())); got != "noneone\r\n" {
			t.Errorf("before: %q", got)
		}
		close(settled)
		settle()
		if got := read(t, w.person(), string(slow.ID())) + read(t, w.person(), string(moves.ID())); got != "slow\r\none\r\ntwo\r\n" {
			t.Errorf("after: %q", got)
		}
	})
}

// A daemon that goes on where another one has stopped loses and repeats nothing, also of
// what was printed in between, and of commands.
func TestTheNextDaemonGoesOn(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{})
		prints(f, "a\r\n"+executed+"b\r\n")
		settle()
		w.stop(time.Minute)
		prints(f, "c\r\n"+failed+"d\r\n")
		w.record(dir, runs.Options{})
		prints(f, "e\r\n"+executed)
		settle()
		w.stop(time.Minute)
		w.record(dir, runs.Options{})
		prints(f, "f\r\n"+failed)
		f.End(0)
		settle()
		w.stop(time.Minute)
		w.record(dir, runs.Options{})
		settle()
		id := string(h.ID())
		for run, want := range map[string]string{id: "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\n", id + ".1": "b\r\nc\r\n", id + ".2": "f\r\n", id + ".3": "none"} {
			if got := read(t, w.person(), run); got != want {
				t.Errorf("%s is %q, want %q", run, got, want)
			}
		}
		for _, r := range w.all() {
			if r.Exit == nil || r.Lost {
				t.Errorf("the end of %s is not known", r.ID)
			}
		}
	})
}

// held is a child with a holder that says when it ended.
type held struct {
	*testkit.Child
	at time.Time
}

func (held) StreamFrom(int64) error         { return nil }
func (h held) ExitedAt() (time.Time, int64) { return h.at, 1 << 20 }
func (held) Gone() bool                     { return false }
func (held) SetMeta([]byte) error           { return nil }
func (held) Checkpoint(int64, []byte) error { return nil }
func (held) Keep(int64) error               { return nil }
func (held) Forget(context.Context) error   { return nil }

// No run ends before it began, also if its beginning was read after its end, or the clock
// was set back.
func TestNoRunEndsBeforeItBegan(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		w.wrap = func(c *testkit.Child) term.PTY { return held{c, time.Now().Add(-time.Second)} }
		_, f := w.spawn(term.Spec{})
		prints(f, "$ "+executed+"works\r\n")
		f.End(0)
		settle()
		list := w.all()
		if len(list) != 2 {
			t.Errorf("%d runs", len(list))
		}
		for _, r := range list {
			if r.Ended.IsZero() || r.Ended.Before(r.Started) {
				t.Errorf("%s began at %v and ended at %v", r.ID, r.Started, r.Ended)
			}
		}
	})
}

// Of a flood there are the beginning and the end, and what is missing in between is said.
// The child is not held for it.
func TestFlood(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{})
		const line = "0123456789 0123456789 0123456789 0123456789 0123456789 01234567\n"
		prints(f, "begins\n")
		settle()
		for range 160 {
			f.Print(strings.Repeat(line, 512))
		}
		prints(f, "ends\n")
		f.End(0)
		settle()
		got := read(t, w.person(), string(h.ID()))
		if !strings.HasPrefix(got, "begins\n") || !strings.HasSuffix(got, line+"ends\n") {
			t.Errorf("%d bytes, from %.20q", len(got), got)
		}
		if want := 160*512*len(line) + len("begins\nends\n"); len(got)-2*strings.Count(got, "<") != want {
			t.Errorf("%d bytes are there or said to be missing, want %d", len(got), want)
		}
	})
}

// escaped is a directory as a mark has it.
func escaped(dir string) string { return strings.ReplaceAll(dir, `\`, `\x5c`) }

// everything is all text of a history's files.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	decoder := must.Get(zstd.NewReader(nil))(t)
	defer decoder.Close()
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data := must.Get(os.ReadFile(path))(t)
		if filepath.Ext(path) == ".zst" {
			data = must.Get(decoder.DecodeAll(data, nil))(t)
		}
		b.Write(data)
		return nil
	}))
	return b.String()
}

// Fifty terminals that print nothing do not wake the recorder: no timer runs, and it
// makes no rounds.
func TestIdleTerminalsWakeNobody(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		var one *testkit.Child
		for range 50 {
			_, one = w.spawn(term.Spec{})
			prints(one, "$ ")
		}
		settle()
		before, timer := w.runs.Woken()
		if timer || before.IsZero() {
			t.Errorf("when all were read, a timer runs: %v; woken last at %v", timer, before)
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if last, timer := w.runs.Woken(); timer || last != before {
			t.Errorf("woken %v after the last output; a timer runs: %v", last.Sub(before), timer)
		}
		prints(one, "more")
		settle()
		if last, _ := w.runs.Woken(); last == before {
			t.Error("output does not wake it")
		}
	})
}
