package output

import (
	"bytes"
	"sort"

	"tether/agent/redact"
	"tether/record"
	"tether/screen"
)

// outwardScreen is the hosts' view of the screen at the oldest byte. While nothing masked
// was printed on it, both views are the same, and this one costs nothing.
type outwardScreen struct {
	judge    *redaction     // the log's redaction; nil: nobody looks for secrets
	screen   *screen.Screen // nil: it is the same as the person's
	unjudged bool           // the screen may have text that was not examined; then screen is nil
	waits    []byte         // masked text that screen has not processed yet
	apart    int64          // bytes since screen was last compared with the person's
}

// Bytes of text.
const (
	outwardWaits   = 32 << 10 // that screen processes at once
	outwardCompare = 64 << 10 // between two comparisons
)

func (w *outwardScreen) flush() {
	if len(w.waits) > 0 {
		w.screen.Advance(w.waits)
		w.waits = w.waits[:0]
	}
}

// cost is the memory that it takes, in bytes.
func (w *outwardScreen) cost() int {
	if w.screen == nil {
		return 0
	}
	return cap(w.waits) + w.screen.Cost()
}

// leaveOutward processes the output of a raw range in the hosts' view, before the
// person's screen processes it unmasked.
func (l *Log) leaveOutward(from, to int64) {
	o, w := &l.oldest, &l.oldest.outward
	v := w.judge
	at := l.cuts.textAt(from)
	if v == nil || v.lazy || at < v.begun || to > v.frontier {
		w.screen, w.waits, w.unjudged = nil, nil, true
		return
	}
	switch {
	case w.unjudged:
		if o.Screen().Pending() > 0 {
			return // text that is not yet decided was not examined
		}
		w.screen, w.unjudged, w.apart = o.Screen().Clone(), false, 0
		w.screen.Conceal()
	case w.screen == nil && !v.masks(at, l.cuts.textAt(to)):
		return
	case w.screen == nil:
		w.screen, w.apart = o.Screen().Clone(), 0
	case w.apart >= outwardCompare:
		w.apart = 0
		if w.flush(); !w.screen.Doubtful() && bytes.Equal(w.screen.Replay(), o.Screen().Replay()) {
			w.screen, w.waits = nil, nil
			l.leaveOutward(from, to)
			return
		}
	}
	w.apart += to - from
	for pos := from; pos < to; {
		if cap(w.waits)-len(w.waits) < MinBuffer {
			w.flush()
			w.waits = make([]byte, 0, outwardWaits)
		}
		n := len(w.waits)
		end, k := l.fill(w.waits[n:cap(w.waits)], ViewText, pos, to, false)
		if end == pos && k == 0 {
			break // impossible: there is room
		}
		var counted [2]int64
		v.mask(w.waits[n:n+k], at, &counted)
		pos, at, w.waits = end, at+int64(k), w.waits[:n+k]
	}
}

// masks reports whether something is masked in a range of text.
func (v *redaction) masks(from, to int64) bool {
	for _, q := range []*record.Queue[redact.Mask]{&v.secrets, &v.sequences} {
		n := q.Len()
		if i := sort.Search(n, func(i int) bool { return q.At(i).End > from }); i < n && q.At(i).Start < to {
			return true
		}
	}
	return false
}

// shown returns the hosts' view of at, the person's screen; judged reports whether all of
// it was examined.
func (w *outwardScreen) shown(at *Screen) (outward []byte, judged bool) {
	switch {
	case w.unjudged:
		return nil, false
	case w.screen == nil:
		return at.Replay, at.Exact
	}
	outward = w.screen.Replay()
	return outward, outward != nil && at.Exact && !w.screen.Doubtful()
}

// toOutward turns a screen into the hosts' view. If some text was not examined, the view
// leaves it out and is not exact.
func (a *Screen) toOutward() {
	is := screen.NewState(int(a.Size.Cols), int(a.Size.Rows))
	is.Write(a.Replay)
	switch {
	case a.judged && !a.isMasked():
		return
	case a.outward != nil:
		looks := screen.NewState(is.Size())
		looks.Write(a.outward)
		a.Replay, a.Masked = a.outward, max(differences(is.Text(), looks.Text()), 1)
	default:
		if is.Pending() > 0 {
			is.Write([]byte{0x18}) // CAN, which has no effect on a screen
		}
		is.Conceal()
		a.Replay = is.Replay()
	}
	a.Exact = a.judged
}

// differences returns the number of places in which two texts differ.
func differences(a, b string) (n int) {
	one, other := []rune(a), []rune(b)
	differ := false
	for i := range min(len(one), len(other)) {
		if now := one[i] != other[i]; now != differ {
			if differ = now; now {
				n++
			}
		}
	}
	return n
}

// outwardFrom returns the screen as hosts see it at a raw offset, or at the first later
// offset where it is known; nil if there is none.
func (l *Log) outwardFrom(raw int64) *Screen {
	o := &l.oldest
	for _, k := range o.kept {
		if k.Raw >= raw && k.judged {
			k.toOutward()
			return &k
		}
	}
	limit := int64(l.log.Limit())
	far := min(raw+limit-limit/aheadLeft, l.seen)
	for step := int64(restStep); ; step = min(2*step, restMost) {
		l.leaveTo(raw)
		if o.Screen().Pending() == 0 {
			break
		}
		if o.At() >= far {
			return nil // in the middle of an image
		}
		raw = min(o.At()+step, far)
	}
	at := o.shown()
	at.toOutward()
	return &at
}

// restStep is the first step, in bytes, when the oldest output begins within a sequence
// and the end of that sequence is searched. Each step is twice the previous one, up to
// restMost: an image may fill most of the log.
const restStep, restMost = 64, 4 << 10
