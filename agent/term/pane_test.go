package term_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/vocab"
)

func pane(types bool) term.Spec {
	return term.Spec{Nonce: "n", Size: term.Size{Cols: 100, Rows: 30},
		Adopted: &vocab.Adopted{From: "tmux:%3", Program: "tmux", Exact: true, Types: types, Pid: 4711}}
}

// An adopted pane takes no keys, no size, no signal and no promotion, and says why. Its
// process is the pane's.
func TestAdoptedPaneRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := startLooked(t, term.Options{}, pane(false))
		for what, c := range map[string]struct {
			err  error
			says string
		}{
			"a key":        {h.Write(t.Context(), []byte("x")), "tether adopt --type tmux:%3"},
			"a size":       {h.Resize(term.Size{Cols: 10, Rows: 10}), "tmux sets its size"},
			"a signal":     {h.Signal("INT"), "do that where it runs, in tmux:%3"},
			"a promotion":  {h.Promote(), "is yours already"},
			"the same one": {h.Resize(term.Size{Cols: 100, Rows: 30}), "tmux sets its size"},
		} {
			if no, ok := errors.AsType[*term.AdoptedError](c.err); !ok || !strings.Contains(no.Error(), c.says) {
				t.Errorf("%s: %v, want %q", what, c.err, c.says)
			}
		}
		if f.Typed() != "" {
			t.Errorf("the reader got %q", f.Typed())
		}
		if i := h.Info(); i.Pid != 4711 || i.Size != (term.Size{Cols: 100, Rows: 30}) || i.Adopted.Label() != "adopted from tmux:%3" {
			t.Errorf("%+v", i)
		}
	})
}

// With typing allowed, keys go to the reader; what the person's own terminal answers to
// the program's questions does not, because the multiplexer has answered them.
func TestAdoptedPaneTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := startLooked(t, term.Options{}, pane(true))
		f.reads(false, false, keys)
		f.Print("\x1b[c\x1b[6n")
		time.Sleep(time.Minute)
		synctest.Wait()
		if f.Typed() != "" {
			t.Errorf("the daemon has answered %q", f.Typed())
		}
		seat := must.Get(h.Sit())(t)
		defer seat.Leave()
		for _, typed := range []string{"\x1b[?62;22c", "\x1b[1;1R", "ls\r"} {
			must.Do(t, h.Write(t.Context(), seat.Typed([]byte(typed))))
		}
		synctest.Wait()
		if f.Typed() != "ls\r" {
			t.Errorf("the pane gets %q", f.Typed())
		}
	})
}

// The reader's terminal says nothing about the pane's program.
func TestInputOfAnAdoptedPane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := startLooked(t, term.Options{}, pane(false))
		f.reads(true, false, proc.Reading{Waits: proc.WaitsForKeys})
		f.Print("password: ")
		time.Sleep(time.Minute)
		synctest.Wait()
		if in, _ := h.Input(); in.Input != vocab.InputUnknown || f.looks.Load() > 0 || h.TakesLines() {
			t.Errorf("%+v after %d looks", in, f.looks.Load())
		}
	})
}

// Size and directory follow the reader's signed marks, and nothing that the pane prints.
func TestAdoptedPaneFollowsItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := testkit.Abs("/srv/app")
		h, f, _ := start(t, term.Options{}, pane(false))
		prints(f, "\x1b]633;P;Size=120x40;n\aab\x1b]633;P;Size=0x9;n\ac\x1b]633;P;Cwd="+strings.ReplaceAll(dir, `\`, `\\`)+";n\ad")
		if i := h.Info(); i.Size != (term.Size{Cols: 120, Rows: 40}) || i.Cwd != dir || i.StartCwd != testkit.Abs("/") || i.CommandDetection {
			t.Errorf("%+v", i)
		}
		r := reader(t, h, output.ReaderOptions{View: output.ViewScreen})
		got := events(t, r)
		if want := []item{{Mark: output.MarkResized}, {Data: "abc", Off: got[1].Off}, {Mark: output.MarkCwd}, {Data: "d", Off: got[len(got)-1].Off}}; !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		prints(f, "\x1b]133;A\a$ \x1b]133;B\amake\r\n\x1b]133;C\aok\r\n\x1b]133;D;0\a\x1b]633;D;1;n\a")
		if all := must.Get(h.Commands())(t); len(all) != 1 || all[0].Verified || *all[0].Exit != 0 {
			t.Errorf("the commands of the pane's shell are %+v", all)
		}
		prints(f, "\x1b]633;P;Size=9x9;m\a\x1b]633;P;Size=9x9\a\x1b]633;P;Cwd=/;m\a")
		if i := h.Info(); i.Size != (term.Size{Cols: 120, Rows: 40}) || i.Cwd != dir {
			t.Errorf("the pane has forged a mark: %+v", i)
		}
		other, g, _ := start(t, term.Options{}, term.Spec{Nonce: "n"})
		prints(g, "\x1b]633;P;Size=120x40;n\a")
		if size := other.Info().Size; size != pty.DefaultSize {
			t.Errorf("a terminal of tether's own has got the size %v", size)
		}
	})
}

// The next daemon knows what is adopted, and finds the sizes where they were.
func TestAdoptedPaneOutlivesTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, _ := keeping(t, v, term.Options{}, pane(false))
		v.print("one\x1b]633;P;Size=120x40;n\atwo")
		synctest.Wait()
		want := h.Info()
		must.Get(pool.Detach(t.Context()))(t)
		v.print("three\x1b]633;P;Size=50x20;n\afour") // while there is no daemon
		next, h, _ := adopting(t, v, term.Options{})
		i := h.Info()
		if i.Adopted == nil || *i.Adopted != *want.Adopted || i.Pid != 4711 || i.Size != (term.Size{Cols: 50, Rows: 20}) {
			t.Errorf("%+v, adopted %+v", i, i.Adopted)
		}
		if _, refused := errors.AsType[*term.AdoptedError](h.Write(t.Context(), []byte("x"))); !refused {
			t.Error("the next daemon lets the person type")
		}
		r := reader(t, h, output.ReaderOptions{View: output.ViewText})
		data, sizes := "", 0
		for _, e := range events(t, r) {
			data += e.Data
			if e.Mark == output.MarkResized {
				sizes++
				data += "|"
			}
		}
		if data != "one|twothree|four" || sizes != 2 {
			t.Errorf("the output is %q with %d sizes", data, sizes)
		}
		must.Get(next.Detach(t.Context()))(t)
	})
}

// An adopted pane that is killed, disposed of or has lost its audience only loses its
// reader, whose end is told as that of any terminal.
func TestAdoptedPaneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, pane(false))
		must.Do(t, h.Kill(t.Context()))
		if i := h.Info(); !f.Killed() || i.Exit == nil || i.Exit.Reason != vocab.ExitKilled {
			t.Errorf("%+v", i.Exit)
		}
	})
}
