package term_test

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// When Unlend has returned, the host has lost its right to later output, even if its link
// does not know yet.
func TestAWithdrawnHostReadsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, pool := start(t, term.Options{}, term.Spec{LendTo: []string{"lab", "other"}})
		find := func(host string) term.Handle {
			return must.Get(pool.As(term.Host(host)).Find(string(h.ID())))(t)
		}
		lab := find("lab")
		r, other := reader(t, lab, output.ReaderOptions{}), reader(t, find("other"), output.ReaderOptions{})
		prints(f, "public ")
		waiting := make(chan error)
		go func() {
			w, err := lab.Reader(output.ReaderOptions{Tail: -1})
			if err != nil {
				t.Error(err)
				return
			}
			_, err = w.Next(t.Context(), make([]byte, 64))
			waiting <- err
		}()
		synctest.Wait()
		must.Do(t, h.Unlend("lab"))
		prints(f, "secret")
		if ev, _, err := r.TryNext(make([]byte, 64)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a reader of before reads %q, %v; want nothing", ev.Data, err)
		}
		if err := <-waiting; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a reader that waited gets %v", err)
		}
		if _, err := lab.Reader(output.ReaderOptions{}); !errors.Is(err, term.ErrNotFound) {
			t.Errorf("a new reader: %v, want ErrNotFound", err)
		}
		if got := events(t, other); len(got) != 1 || got[0].Data != "public secret" {
			t.Errorf("another host reads %v", got)
		}
	})
}

// The end of a pairing, in the pool: no terminal is lent to that host, neither one that
// starts in this moment nor one that somebody lends then, and it is not lent when another
// host gets the name.
func TestNothingIsLentToAHostThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paired atomic.Bool
		paired.Store(true)
		starting := make(chan bool)
		f := testkit.NewChild()
		pool := term.NewPool(term.Options{
			Lendable: func(host string) bool { return host != "lab" || paired.Load() },
			Start:    func(term.ID, pty.Command) (term.PTY, error) { <-starting; return f, nil },
		})
		defer pool.Close(t.Context())
		started := make(chan term.Handle)
		go func() {
			h, err := pool.As(term.User).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/"), LendTo: []string{"lab", "other"}})
			check.OK(t, err)
			started <- h
		}()
		synctest.Wait()
		paired.Store(false)
		for _, h := range pool.As(term.User).List() {
			h.Unlend("lab")
		}
		starting <- true
		h := <-started
		check.OK(t, h.Lend("lab"))
		paired.Store(true)
		if got := h.Info().LentTo; len(got) != 1 || got[0] != "other" {
			t.Errorf("lent to %v, want only the host that was there all the time", got)
		}
		if err := h.Lend("lab"); err != nil || !h.Info().LentToHost("lab") {
			t.Errorf("lent on purpose: %v, %v", err, h.Info().LentTo)
		}
	})
}

// A window that is dragged makes one mark, not hundreds that push the boundaries of
// commands out of the log.
func TestSizesInARowAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{Nonce: nonce})
		early, late := reader(t, h, output.ReaderOptions{View: output.ViewText}), reader(t, h, output.ReaderOptions{View: output.ViewText})
		drag := func() {
			for i := range 300 {
				must.Do(t, h.Resize(term.Size{Cols: uint16(1 + i), Rows: uint16(1 + i)}))
			}
		}
		prints(f, "\x1b]633;E;make;n0\a\x1b]633;C;n0\aa")
		drag()
		first := events(t, early)
		drag() // an unchanged size makes no mark; these make the first
		prints(f, "b")
		sizes := []item{{Mark: output.MarkDetection}, {Mark: output.MarkCommandExecuted}, {Data: "a"}, {Mark: output.MarkResized}}
		if fmt.Sprint(first) != fmt.Sprint(sizes) {
			t.Errorf("after a drag: %v, want %v", first, sizes)
		}
		if got, want := events(t, early), append(sizes[3:], item{Data: "b", Off: 1}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("who had read the first size goes on with %v, want %v", got, want)
		}
		if got, want := events(t, late), append(sizes, item{Data: "b", Off: 1}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("who reads late finds %v, want %v", got, want)
		}
		if got := h.Info().Size; got != (term.Size{Cols: 300, Rows: 300}) {
			t.Errorf("the size is %v", got)
		}
	})
}
