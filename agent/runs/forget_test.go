package runs_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/history"
	"tether/agent/output"
	"tether/agent/runs"
	"tether/agent/term"
	"tether/internal/testkit/must"
)

// kept returns what the daemon has of a terminal in memory.
func (w *world) kept(id term.ID) string {
	h, err := w.pool.As(term.User).Terminal(id)
	if err != nil {
		return "none"
	}
	r := must.Get(h.Reader(output.ReaderOptions{}))(w.t)
	defer r.Close()
	var b strings.Builder
	for buf := make([]byte, 4096); ; {
		ev, ok, err := r.TryNext(buf)
		if _, lagged := err.(*output.LaggedError); lagged {
			continue
		}
		if err != nil || !ok {
			return b.String()
		}
		b.Write(ev.Data)
	}
}

// What is forgotten is gone from the disk and from memory: exited terminals, private ones
// too, and the past of those that run on. The next daemon does not bring it back.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		on, f := w.spawn(term.Spec{})
		over, g := w.spawn(term.Spec{})
		private, p := w.spawn(term.Spec{Private: true})
		prints(f, "forgotten\r\n"+executed+"forgotten too\r\n"+failed)
		prints(g, "forgotten as well\r\n")
		prints(p, "forgotten")
		g.End(0)
		p.End(0)
		settle()
		prints(f, "forgotten at once\r\n")
		got := must.Get(w.runs.Forget(t.Context(), func(history.Run) bool { return true }))(t)
		if got.Runs != 3 || got.Terminals != 2 || got.Pasts != 1 || len(got.InHolders) != 0 {
			t.Errorf("forgotten: %+v", got)
		}
		synctest.Wait()
		prints(f, "x\r\n"+executed+"new\r\n"+failed)
		settle()
		for range 2 {
			id := string(on.ID())
			if a, b, c := read(t, w.person(), id), w.kept(on.ID()), read(t, w.person(), string(over.ID())); a != "x\r\nnew\r\n" || b != "new\r\n" || c != "none" {
				t.Errorf("read from the history %q, in memory %q; the exited one %q", a, b, c)
			}
			if a, b := w.kept(over.ID()), w.kept(private.ID()); a != "none" || b != "none" {
				t.Errorf("exited ones are in memory: %q, %q", a, b)
			}
			if list := w.all(); len(list) != 2 || list[0].ID != id+".2" || list[1].ID != id {
				t.Errorf("the runs are %+v", list)
			}
			if all := must.Get(on.Commands())(t); len(all) != 1 || all[0].N != 2 {
				t.Errorf("commands: %+v", all)
			}
			w.stop(time.Minute)
			w.record(dir, runs.Options{})
			settle()
		}
	})
	if text := everything(t, dir); strings.Contains(text, "forgotten") {
		t.Errorf("on disk is %q", text)
	}
}

// Of a command alone, everything until its end goes from memory, and its text from the
// disk.
func TestForgetACommand(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{})
		prints(f, "before\r\n"+executed+"forgotten\r\n"+failed+"x\r\nafter\r\n")
		settle()
		id := string(h.ID())
		got := must.Get(w.runs.Forget(t.Context(), func(r history.Run) bool { return r.ID == id+".1" }))(t)
		synctest.Wait()
		if a, b := read(t, w.person(), id), w.kept(h.ID()); got.Runs != 1 || a != "before\r\n"+gap("forgotten\r\n")+"x\r\nafter\r\n" || b != "after\r\n" {
			t.Errorf("%+v; the history has %q, memory %q", got, a, b)
		}
		if list := slices.Collect(w.person().List(history.Query{})); len(list) != 1 {
			t.Errorf("the runs are %+v", list)
		}
	})
}
