package shellint

import (
	"bytes"

	"tether/internal/escape"
)

// finder finds in one buffer the next byte at which an introducer may begin.
type finder struct {
	// Next stops at or after the pass's position, or the length of the buffer; values
	// below it are stale.
	seq int // an escape sequence
	c1  int // a C1 control
	enq int // an ENQ

	seen int // index of the last ESC that was looked at, -1 if none
}

func newFinder(s *Scanner, buf []byte) finder {
	f := finder{seq: -1, c1: -1, enq: -1, seen: -1}
	if s.ctx.state == inEscape && !s.body.open {
		if i := skipInert(buf, 0); i < len(buf) && opens(buf[i]) {
			f.seq = i
		}
	}
	return f
}

// opens reports whether b after an ESC opens a sequence that is to be judged.
func opens(b byte) bool { return b == ']' || b == '[' || b == 'P' || b == 'Z' }

func skipInert(buf []byte, i int) int {
	for i < len(buf) && inert(buf[i]) {
		i++
	}
	return i
}

// next returns the first stop at or after pos, or the length of buf.
func (f *finder) next(buf []byte, pos int) int {
	if f.seq < pos {
		f.seq = f.escape(buf, pos)
	}
	if f.c1 < pos {
		if f.c1 = escape.NextC1(buf, pos); f.c1 == len(buf) && buf[f.c1-1] == c1 && f.c1 > pos {
			f.c1-- // the next byte decides
		}
	}
	if f.enq < pos {
		f.enq = indexFrom(buf, pos, enq)
	}
	return min(f.seq, f.c1, f.enq)
}

// escape returns the first index at or after i at which an OSC, a DCS, a DECID or a CSI
// query may begin, or an incomplete sequence. With inert bytes after the ESC, it returns
// the index after those.
func (f *finder) escape(buf []byte, i int) int {
	for {
		i = indexFrom(buf, i, esc)
		if i == len(buf) {
			return i
		}
		f.seen = i
		if n := escape.Complete(buf[i:]); n > 0 && !asks(buf[i+2], buf[i+n-1]) {
			i += n
			continue
		}
		j := skipInert(buf, i+1)
		switch {
		case j == i+1 && (j == len(buf) || opens(buf[j])):
			return i
		case j == len(buf) || opens(buf[j]):
			return j
		}
		i = j
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

// lastESC returns the index of the last ESC in buf[from:to], or a smaller one if there is
// none.
func (f *finder) lastESC(buf []byte, from, to int) int {
	if f.seen < to {
		return f.seen
	}
	return from + bytes.LastIndexByte(buf[from:to], esc)
}
