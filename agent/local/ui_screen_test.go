package local_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/internal/xterm"
)

// stream is what an interface shows that was sent a pty:attached.
func (m said) stream() xterm.Stream {
	before, text := m.drawn()
	cols, rows, off := int64(m.at("cols")), int64(m.at("rows")), int64(m.at("offset"))
	var sizes [][3]int64
	all, _ := m["sizes"].([]any)
	for _, z := range all {
		z := z.([]any)
		sizes = append(sizes, [3]int64{int64(z[0].(float64)) - off, int64(z[1].(float64)), int64(z[2].(float64))})
	}
	if len(sizes) > 0 {
		cols, rows, sizes = sizes[0][1], sizes[0][2], sizes[1:]
	}
	return xterm.Joined(cols, rows, before, text, 0, sizes)
}

// An interface that joins at any moment shows what one shows that was there from the
// start, by the history alone.
func TestInterfacesJoinAtTheScreen(t *testing.T) {
	for round := range testkit.Rounds(t, 4, 1000) {
		rng := rand.New(rand.NewPCG(uint64(round), 21))
		s := xterm.Long(rng, 100<<10, round%2 == 1, xterm.Wider)
		w := serve(t, local.Options{}, term.Options{LogBytes: 64 << 10})
		tm, child := w.spawn("random")
		h := must.Get(w.pool.As(term.User).Terminal(term.ID(tm.ID)))(t)
		resize := func(cols, rows int) {
			must.Do(t, h.Resize(term.Size{Cols: uint16(cols), Rows: uint16(rows)}))
		}
		resize(s.Cols, s.Rows)
		printed := 0
		var waits strings.Builder
		flush := func() {
			if waits.Len() == 0 {
				return
			}
			child.Print(waits.String())
			printed += waits.Len()
			waits.Reset()
			testkit.Eventually(t, patience, "it is recorded", func() bool { return h.Info().Bytes == int64(printed) })
		}
		var late, whole []xterm.Stream
		for i, p := range s.Parts {
			if p.Data == nil {
				flush()
				resize(p.Cols, p.Rows)
			}
			waits.Write(p.Data)
			if i < len(s.Parts)-1 && (printed+waits.Len() < 70<<10 || rng.IntN(4) > 0) {
				continue
			}
			flush()
			u := w.ui()
			u.ask("pty:attach", tm.ID)
			m := u.nextOf("pty:attached")
			if m["screenTruncated"] != nil || m["truncated"] != true || m.at("end")-m.at("offset") < local.HistorySize/2 {
				t.Errorf("round %d: at %d: screenTruncated %v, truncated %v", round, m.at("offset"), m["screenTruncated"], m["truncated"])
			}
			late = append(late, m.stream())
			whole = append(whole, xterm.Stream{Cols: s.Cols, Rows: s.Rows, Parts: s.Parts[:i+1]})
			u.conn.CloseNow()
		}
		child.End(0)
		n := len(late)
		shown := xterm.Show(t, xterm.Widths, append(late, whole...))
		known := 0
		for i, got := range shown[:n] {
			want := shown[n+i]
			if got == nil || want == nil {
				continue
			}
			known++
			if d := xterm.Differ(got, want); d != "" {
				t.Fatalf("round %d, join %d of %d\n%s", round, i+1, n, d)
			}
		}
		if known < n/2 {
			t.Errorf("round %d: xterm.js showed %d of %d", round, known, n)
		}
	}
}
