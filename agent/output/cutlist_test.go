package output

import (
	"math/rand/v2"
	"testing"
)

// plainCuts is the model of a cutList: every cut in full.
type plainCuts []cut

func (p plainCuts) textAt(raw int64) int64 {
	shift := int64(0)
	for _, c := range p {
		switch {
		case raw < c.start:
			return raw + shift
		case raw < c.end && c.kind == cutInvalid:
			return c.text + 3*(raw-c.start)
		case raw < c.end:
			return c.text
		}
		shift = c.text + c.textLen() - c.end
	}
	return raw + shift
}

// A list of packed cuts returns the same as the cuts themselves would, with any lengths
// and distances, also after its beginning was trimmed.
func TestPackedCuts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	sizes := []int64{1, 2, 63, 64, 127, 128, 500, 8 << 10, 1<<20 - 1, 1 << 20, 3 << 20, 1 << 33}
	size := func() int64 {
		if rnd.IntN(20) > 0 {
			return sizes[rnd.IntN(4)]
		}
		return sizes[rnd.IntN(len(sizes))]
	}
	var l cutList
	var p plainCuts
	raw := int64(0)
	for range 1200 {
		if gap := size(); rnd.IntN(3) > 0 {
			raw += gap
		}
		c := cut{start: raw, end: raw + size(), text: p.textAt(raw), kind: cutKind(rnd.IntN(5))}
		raw = c.end
		l.add(c.start, c.end, c.kind)
		last := len(p) - 1
		if joins := c.kind != cutSplice && c.kind != cutHiddenS; joins && last >= 0 && p[last].end == c.start && p[last].kind == c.kind {
			p[last].end = c.end
			continue
		}
		p = append(p, c)
	}
	check := func(from int64) {
		t.Helper()
		for at := int64(-1); at <= raw+2; {
			if at >= from {
				if got, want := l.textAt(at), p.textAt(at); got != want {
					t.Fatalf("raw offset %d is text offset %d, want %d", at, got, want)
				}
				if back := l.rawAt(p.textAt(at)); p.textAt(back) != p.textAt(at) {
					t.Fatalf("text offset %d is raw offset %d, which is text offset %d", p.textAt(at), back, p.textAt(back))
				}
			}
			at += 1 + rnd.Int64N(max(raw/1000, 1))
		}
		c := l.after(from)
		for _, want := range p {
			if want.end <= from {
				continue
			}
			if !c.ok || c.cut != want {
				t.Fatalf("the cut is %+v %v, want %+v", c.cut, c.ok, want)
			}
			c.step()
		}
		if c.ok {
			t.Fatalf("there is one more cut: %+v", c.cut)
		}
	}
	check(0)
	for _, n := range []int{1, len(p) / 4, len(p) / 2, len(p) - 2, len(p) - 1} {
		l.trim(p[n].end - 1)
		check(p[n].end - 1)
	}
	l.trim(raw)
	if got, want := l.textAt(raw+5), p.textAt(raw+5); got != want || l.some || l.cost() > 1<<10 {
		t.Errorf("behind all cuts the text offset is %d, want %d; there is a cut: %v, %d bytes", got, want, l.some, l.cost())
	}
}
