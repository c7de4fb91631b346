package term_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"tether/agent/term"
)

// A terminal keeps more for a reader that reads on, and gives it back; one that does not read gets no more than is configured.
func TestMoreIsKeptForAReaderThatReads(t *testing.T) {
	const limit = 64 << 10
	synctest.Test(t, func(t *testing.T) {
		pool, h, v, _ := paced(t, limit)
		defer func() { pool.Close(t.Context()); v.kill() }()
		print := func(kib int) {
			v.print(strings.Repeat(line, kib))
			synctest.Wait()
		}
		frozen := reader(t, h, term.ReaderOptions{View: term.ViewText, Hold: true})
		print(100)
		if got := h.Info().Retained; got > limit {
			t.Errorf("%d bytes are kept for a reader that does not read, want %d at most", got, limit)
		}
		frozen.Close()

		r := reader(t, h, term.ReaderOptions{View: term.ViewText, Hold: true, Tail: -1})
		lost := int64(0)
		for range 8 {
			print(24)
			lost += readTo(t, r, r.Offset()+1)
		}
		if lost += readTo(t, r, 292<<10); lost > 0 {
			t.Errorf("%d bytes were lost to a reader that was 160 KiB behind", lost)
		}
		if got := h.Info().Retained; got > limit {
			t.Errorf("%d bytes are kept for a reader that has caught up, want %d at most", got, limit)
		}
	})
}
