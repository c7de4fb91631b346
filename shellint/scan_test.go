package shellint_test

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tether/shellint"
)

// result is a Scanner's result for a whole stream.
type result struct {
	raw   []byte
	spans []shellint.Span
	marks []shellint.Mark
}

// pieces cuts raw; no sizes mean one piece.
func pieces(raw []byte, sizes []int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if sizes == nil {
			yield(raw)
			return
		}
		for _, n := range sizes {
			if !yield(raw[:n]) {
				return
			}
			raw = raw[n:]
		}
	}
}

func bytePieces(n int) []int { return slices.Repeat([]int{1}, n) }

func randomPieces(rng *rand.Rand, n int) []int {
	var sizes []int
	for n > 0 {
		k := min(n, 1+rng.IntN(1+rng.IntN(200)))
		sizes = append(sizes, k)
		n -= k
	}
	return sizes
}

// scanPieces scans a stream in pieces, each in separate memory that is overwritten
// afterwards. After each piece it checks the invariants: order, no overlap, nothing
// decided twice, and no more undecided bytes than promised.
func scanPieces(t testing.TB, raw []byte, o shellint.Options, sizes []int) *result {
	t.Helper()
	s := shellint.NewScanner(o)
	res := &result{raw: raw}
	var r shellint.Result
	decided, consumed := int64(0), int64(0)
	take := func() {
		t.Helper()
		if s.Offset() != consumed || r.Decided < decided || r.Decided > consumed || consumed-r.Decided > shellint.MaxUndecided {
			t.Fatalf("offset %d after %d bytes, decided %d after %d", s.Offset(), consumed, r.Decided, decided)
		}
		at := decided
		for _, sp := range r.Spans {
			if sp.Start < at || sp.End <= sp.Start || sp.End > r.Decided || sp.Class == 0 {
				t.Fatalf("span %+v after %d, decided %d", sp, at, r.Decided)
			}
			at = sp.End
			res.addSpan(sp)
		}
		for i := range r.Marks {
			res.addMark(t, &r.Marks[i], r.Decided)
		}
		decided = r.Decided
	}
	for p := range pieces(raw, sizes) {
		p = bytes.Clone(p)
		consumed += int64(len(p))
		s.Scan(p, &r)
		take()
		for i := range p {
			p[i] = 'X'
		}
	}
	s.Close(&r)
	take()
	if r.Decided != int64(len(raw)) {
		t.Fatalf("decided %d of %d at the end", r.Decided, len(raw))
	}
	return res
}

// addSpan joins spans that touch, as the pieces of one sequence do.
func (res *result) addSpan(sp shellint.Span) {
	if n := len(res.spans); n > 0 && !sp.Splice && res.spans[n-1].End == sp.Start && res.spans[n-1].Class == sp.Class {
		res.spans[n-1].End = sp.End
		return
	}
	res.spans = append(res.spans, sp)
}

func (res *result) addMark(t testing.TB, m *shellint.Mark, decided int64) {
	t.Helper()
	if n := len(res.marks); n > 0 && m.Off < res.marks[n-1].End || m.End > decided || m.Off >= m.End {
		t.Fatalf("mark %+v out of order; decided %d", m, decided)
	}
	res.marks = append(res.marks, m.Clone())
}

// same says whether two results of one stream are equal.
func (res *result) same(other *result) bool {
	return slices.Equal(res.spans, other.spans) && slices.EqualFunc(res.marks, other.marks, sameMark)
}

func sameMark(a, b shellint.Mark) bool {
	return a.Off == b.Off && a.End == b.End && a.Text == b.Text && a.HasText == b.HasText && a.Key == b.Key &&
		a.Host == b.Host && a.Exit == b.Exit && a.PS == b.PS && a.Kind == b.Kind && a.Term == b.Term && a.Query == b.Query &&
		a.Trusted == b.Trusted && a.Truncated == b.Truncated && a.Read == b.Read && bytes.Equal(a.Payload(), b.Payload())
}

// without is the stream without the spans of some classes.
func (res *result) without(classes ...shellint.Class) []byte {
	return res.cut(int64(len(res.raw)), classes...)
}

// cleanOff is the length of the stream without marks before raw offset off; the
// replacement of a mark at off counts.
func (res *result) cleanOff(off int64) int64 {
	n := off
	for _, sp := range res.spans {
		if sp.Class == shellint.ClassMark && sp.Start <= off {
			n -= min(sp.End, off) - sp.Start
			if sp.Splice {
				n += int64(len(shellint.Splice))
			}
		}
	}
	return n
}

func (res *result) cut(end int64, classes ...shellint.Class) []byte {
	var out []byte
	at := int64(0)
	for _, sp := range res.spans {
		if sp.Start >= end || !slices.Contains(classes, sp.Class) {
			continue
		}
		out = append(out, res.raw[at:sp.Start]...)
		if sp.Splice {
			out = append(out, shellint.Splice...)
		}
		at = sp.End
	}
	return append(out, res.raw[at:end]...)
}

// String is everything about the result, to show how two of the same stream differ.
func (res *result) String() string {
	var b strings.Builder
	for _, sp := range res.spans {
		fmt.Fprintf(&b, "span %+v\n", sp)
	}
	for _, m := range res.marks {
		fmt.Fprintf(&b, "mark %d-%d ps %d kind %d verb %q term %d query %d text %q %v key %q host %q exit %+v trusted %v truncated %v read %v payload %.200q %d\n",
			m.Off, m.End, m.PS, m.Kind, m.Verb(), m.Term, m.Query, m.Text, m.HasText, m.Key, m.Host, m.Exit, m.Trusted, m.Truncated, m.Read, m.Payload(), len(m.Payload()))
	}
	return b.String()
}
