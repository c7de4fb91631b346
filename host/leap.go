package host

import (
	"slices"

	"tether/internal/jsonspan"
)

// leapLeast is the shortest text that is worth a look whether it can be leapt over, in bytes.
const leapLeast = 16 << 10

// leapTails are how many bytes of its end are looked at, as they stand: rows that fill a screen twice, as a rule.
var leapTails = [...]int{8 << 10, 32 << 10}

// leapLocked skips text of a flood: rows that scroll away, of which it decodes only the end. The runs end at a position. ok is false, and
// nothing was done, if the screen depends on more than that. It returns scratch for the next call.
func (t *terminal) leapLocked(scratch []byte, runs []run, end int64) (_ []byte, ok bool) {
	o := &t.oldest
	if end-o.pos < leapLeast || o.gap > 0 && o.pos <= o.gap && o.gap < end || !rowsFrom(runs, end-o.pos) {
		return scratch, false
	}
	styled := slices.ContainsFunc(runs, func(r run) bool { return r.styled })
	for _, x := range t.marks.list {
		if x.resized != nil && x.pos >= o.pos && x.pos < end {
			return scratch, false
		}
	}
	for _, n := range leapTails {
		if scratch = decodeTail(scratch[:0], runs, n); len(scratch) > 0 && int64(len(scratch)) <= end-o.pos && o.begun().Leap(scratch, styled) {
			o.pos = end
			return scratch, true
		}
	}
	return scratch, false
}

// rowsFrom reports whether the last n bytes of text only print rows and style them.
func rowsFrom(runs []run, n int64) bool {
	for i := len(runs) - 1; i >= 0 && n > 0; i-- {
		n -= int64(runs[i].size)
		if !runs[i].rows || i+1 < len(runs) && !jsonspan.Joins(runs[i].esc, runs[i+1].esc) {
			return false
		}
	}
	return n <= 0
}

// decodeTail appends the end of runs, decoded: at most n bytes of them as they stand. It may be nothing.
func decodeTail(dst []byte, runs []run, n int) []byte {
	first := len(runs) - 1
	for first > 0 && len(runs[first].esc) < n {
		n -= len(runs[first].esc)
		first--
	}
	dst, _ = jsonspan.AppendUnescape(dst, jsonspan.Tail(runs[first].esc, n)) // it was checked when it came in
	for _, r := range runs[first+1:] {
		dst, _ = jsonspan.AppendUnescape(dst, r.esc)
	}
	return dst
}
