package shellint

import "bytes"

// finder finds in one buffer the next byte at which an introducer may begin. There are several ways to look, all with the same result;
// their speed depends on the frequent bytes, so it chooses one per buffer.
//
// Every OSC has a "]" after an ESC. Coloured output has an ESC every dozen bytes, where a search that stops at each costs more than a
// search for "]"; plain text and JSON may have many "]" and no ESC.
type finder struct {
	way     way
	queries bool

	// Next stops at or after the pass's position, or the length of the buffer; values below it are stale.
	seq int // an escape sequence
	c1  int // a C1 control
	enq int // an ENQ

	seen int // index of the last ESC that was looked at, -1 if none; not maintained by byBracket
}

type way uint8

const (
	byEscape  way = iota // stop at every ESC
	byBracket            // stop at every "]"
	byQuery              // stop at every ESC, for CSI and DCS too
)

const (
	// rareEscape is the distance of ESCs, in bytes, from which on a search stops at each without asking how many "]" there are.
	rareEscape = 512
	// sampleLen is how much of a buffer is looked at to choose a way, in bytes from its first ESC: to count takes longer than to find.
	sampleLen = 4 << 10
)

func newFinder(s *Scanner, buf []byte) finder {
	f := finder{queries: s.opts.Queries, seq: -1, c1: -1, enq: len(buf), seen: -1}
	if f.queries {
		f.enq = -1
	}
	switch first := indexFrom(buf, 0, esc); {
	case first == len(buf):
		f.seq = len(buf)
	case f.queries:
		f.way = byQuery
	default:
		sample := buf[first:min(len(buf), first+sampleLen)]
		if escapes := bytes.Count(sample, []byte{esc}); escapes > len(sample)/rareEscape && escapes > bytes.Count(sample, []byte{']'}) {
			f.way = byBracket
		}
	}
	if s.ctx.state == inEscape && !s.body.open {
		if i := skipInert(buf, 0); i < len(buf) && f.opens(buf[i]) {
			f.seq = i
		}
	}
	return f
}

// opens reports whether b after an ESC opens a sequence that is to be judged.
func (f *finder) opens(b byte) bool {
	return b == ']' || f.queries && (b == '[' || b == 'P' || b == 'Z')
}

func skipInert(buf []byte, i int) int {
	for i < len(buf) && inert(buf[i]) {
		i++
	}
	return i
}

// next returns the first stop at or after pos, or the length of buf.
func (f *finder) next(buf []byte, pos int) int {
	if f.seq < pos {
		f.seq = f.sequence(buf, pos)
	}
	if f.c1 < pos {
		f.c1 = nextC1(buf, pos)
	}
	if f.enq < pos {
		f.enq = indexFrom(buf, pos, enq)
	}
	return min(f.seq, f.c1, f.enq)
}

func (f *finder) sequence(buf []byte, pos int) int {
	switch f.way {
	case byBracket:
		return bracket(buf, pos)
	case byQuery:
		return f.anyEscape(buf, pos)
	}
	return f.escape(buf, pos)
}

// escape looks for ESC and "]", also with inert bytes between them, or an ESC at the end of buf, stopping at every ESC.
func (f *finder) escape(buf []byte, i int) int {
	for {
		near := min(len(buf), i+32)
		if i = nextESC(buf[:near], i); i == near {
			i = indexFrom(buf, i, esc)
		}
		if i == len(buf) {
			return i
		}
		f.seen = i
		j := skipInert(buf, i+1)
		switch {
		case i+1 == len(buf), j == i+1 && buf[j] == ']':
			return i
		case j < len(buf) && buf[j] == ']':
			return j
		}
		i = j
	}
}

// bracket looks for the same as escape, but stops at every "]".
func bracket(buf []byte, from int) int {
	for i := from; ; i++ {
		i = indexFrom(buf, i, ']')
		if i == len(buf) {
			if i > from && buf[i-1] == esc {
				return i - 1
			}
			return i
		}
		if i == from {
			continue
		}
		if buf[i-1] == esc {
			return i - 1
		}
		if inert(buf[i-1]) && afterEsc(buf[from:i]) {
			return i
		}
	}
}

// afterEsc reports whether p ends with an ESC and inert bytes.
func afterEsc(p []byte) bool {
	i := len(p) - 1
	for i >= 0 && inert(p[i]) {
		i--
	}
	return i >= 0 && p[i] == esc
}

// nextC1 looks for a C1 control, or a C2 at the end of buf.
func nextC1(buf []byte, i int) int {
	for {
		i = indexFrom(buf, i, c1)
		if i+1 >= len(buf) || isC1(buf[i+1]) {
			return i
		}
		i++
	}
}

// indexFrom returns the index of the first c at or after i, or the length of buf.
func indexFrom(buf []byte, i int, c byte) int {
	n := bytes.IndexByte(buf[i:], c)
	if n < 0 {
		return len(buf)
	}
	return i + n
}

// lastESC returns the index of the last ESC in buf[from:to], or a smaller one if there is none.
func (f *finder) lastESC(buf []byte, from, to int) int {
	if f.way != byBracket && f.seen < to {
		return f.seen
	}
	return lastESC(buf, from, to)
}
