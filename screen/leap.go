package screen

import (
	"bytes"
	"encoding/binary"
	"slices"

	"tether/internal/escape"
)

// leapBytes is the shortest output, in bytes, that Advance tries to leap over.
const leapBytes = 4 << 10

// leap examines leapProbe bytes first, and at most leapMost bytes per call.
const (
	leapProbe = 256
	leapMost  = 256 << 10
)

// Advance is Write for a screen that nobody reads before Advance returns. It leaps over
// lines that scroll away, plain or coloured: it only follows their style and draws the
// last rows. Output in steps of 128 KiB takes about 0.2 ms of CPU per MB of plain text,
// and 1.5 ms per MB of coloured lines; a longer p takes less per MB.
func (s *Screen) Advance(p []byte) {
	for len(p) > leapBytes && !s.text.kept {
		from, to := s.leap(p)
		s.Write(p[from:to])
		p = p[to:]
	}
	s.Write(p)
}

// leap carries out p[:from] without drawing it. The caller must write p[from:to] next.
// from is 0 if leap cannot leap; it can if p[:to] contains only rows and styles, and the
// rows of p[from:to] scroll everything else away.
func (s *Screen) leap(p []byte) (from, to int) {
	if !s.leaps() {
		return 0, leapBytes
	}
	if n, _ := s.quiet(p[:leapProbe], 0); n < leapProbe/2 {
		return 0, leapBytes // most full-screen output
	}
	p = p[:min(len(p), leapMost)]
	from = s.tail(p, s.leastRow())
	to, pen := s.quiet(p, from)
	if to < leapBytes {
		return 0, leapBytes
	}
	if less := s.tail(p[:to], s.leastRow()); less < from { // not all of p is quiet
		from = less
		_, pen = s.quiet(p[:to], from)
	}
	if from <= 0 {
		return 0, to
	}
	s.leapt(pen)
	return from, to
}

// Leap is Advance for output of which only the end, p, is available. The missing output
// before p must have only printed rows and styled them, as jsonspan.Check.Rows reports;
// styled says that it may have styled them. If the screen after p depends on the missing
// output, Leap returns false and leaves the screen unchanged.
func (s *Screen) Leap(p []byte, styled bool) bool {
	if s.text.kept || !s.leaps() {
		return false
	}
	from := s.tail(p, 0)
	if from <= 0 || styled && lastReset(p[:from]) == 0 {
		return false
	}
	n, pen := s.quiet(p, from)
	if n < from {
		return false
	}
	s.leapt(pen)
	s.Write(p[from:])
	return true
}

// leaps reports whether, in the current modes, printed rows that scroll away leave
// nothing but their style.
func (s *Screen) leaps() bool {
	return s.parser.state == ground && s.parser.held == 0 && s.on == &s.main && s.main.top == 0 && s.main.bottom >= s.rows-1 && s.modes.wrap &&
		!s.modes.insert && !s.modes.origin && !s.modes.reverseWrap
}

// leapt sets the state after skipped output: the pen has the style pen, and the cursor is
// at the beginning of the last row.
func (s *Screen) leapt(pen attrs) {
	s.parser.pending = 0
	s.pen = pen
	s.dip()
	s.last = 0
	s.main.x, s.main.y, s.main.doubt = 0, s.rows-1, doubt{saved: s.main.doubt.saved}
}

// leastRow returns the cursor's row or, after a gap, 0: the cursor is there or below.
func (s *Screen) leastRow() int {
	if s.main.doubt.adrift > 0 {
		return 0
	}
	return s.main.y
}

// tail returns the offset in p after which enough rows follow to scroll everything else
// away, if the cursor begins in row y or below. The offset is behind a line feed that
// leaves the cursor in the first column. tail returns 0 if p has too few rows.
func (s *Screen) tail(p []byte, y int) int {
	tail := len(p)
	for range 2*s.rows - y + 1 { // down to the last row, and all of them away
		if tail = bytes.LastIndexByte(p[:tail], '\n'); tail <= 0 {
			return 0
		}
	}
	for !s.modes.newline && p[tail-1] != '\r' {
		if tail = bytes.LastIndexByte(p[:tail], '\n'); tail <= 0 {
			return 0
		}
	}
	return tail
}

// quiet returns the length of the beginning of p that only prints rows, sets styles and
// erases within a row. pen is the style at the offset at, if at lies in that beginning.
func (s *Screen) quiet(p []byte, at int) (n int, pen attrs) {
	was := s.pen
	var seen styles
	from := lastReset(p[:at])
	end := s.printed(p)
	for {
		i := bytes.IndexByte(p[n:end], 0x1b)
		if i < 0 {
			n = end
			break
		}
		n += i
		size := quietSequence(p[n:end])
		if size == 0 {
			break
		}
		if n >= from && n < at && p[n+size-1] == 'm' {
			seen.add(s, p[n+2:n+size-1], n+1)
		}
		n += size
	}
	seen.do(s)
	pen, s.pen = s.pen, was
	return n, pen
}

// lastReset returns the offset of the last sequence that resets the style, searched in
// the last 1 KiB of p. It returns 0 if there is none.
func lastReset(p []byte) int {
	near := max(len(p)-1<<10, 0)
	if i := max(bytes.LastIndex(p[near:], []byte("\x1b[m")), bytes.LastIndex(p[near:], []byte("\x1b[0m"))); i >= 0 {
		return near + i
	}
	return 0
}

// styles collects the parameters of SGR sequences. A sequence sets parts of the pen to
// fixed values, regardless of the previous values: of equal sequences only the last
// counts. Most output has few different ones.
type styles struct {
	seen [64]struct {
		params uint64 // at most eight bytes, the first lowest
		at     int    // position of the last sequence with these parameters; positions grow
	}
	done int // sequences at or before this position are applied to the pen, or a reset has undone them
}

// add records parameters at a position, which is above 0.
func (t *styles) add(s *Screen, params []byte, at int) {
	if len(params) > 8 {
		t.do(s)
		s.stylePen(params)
		t.done = at
		return
	}
	var v uint64
	for i, c := range params {
		v |= uint64(c) << (8 * i)
	}
	slot := v * 0x9e3779b97f4a7c15 >> 58
	for range 4 {
		e := &t.seen[slot]
		if e.params == v || e.at <= t.done {
			e.params, e.at = v, at
			return
		}
		slot = (slot + 1) % uint64(len(t.seen))
	}
	t.do(s)
	t.seen[slot].params, t.seen[slot].at = v, at
}

// do applies the recorded sequences to the pen, in the order of their positions.
func (t *styles) do(s *Screen) {
	var order []int
	for i := range t.seen {
		if t.seen[i].at > t.done {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return t.seen[a].at - t.seen[b].at })
	for _, i := range order {
		params := binary.LittleEndian.AppendUint64(nil, t.seen[i].params)
		s.stylePen(bytes.TrimRight(params, "\x00"))
		t.done = t.seen[i].at
	}
}

// quietSequence returns the length of the sequence at the beginning of p if it is
// complete and only sets styles or erases in its row, else 0.
func quietSequence(p []byte) int {
	n := escape.Complete(p)
	if n == 0 || p[n-1] != 'm' && p[n-1] != 'K' || p[2] >= '<' && p[2] <= '?' {
		return 0
	}
	return n
}

// stylePen carries out SGR with the parameters as written in the sequence. It changes the
// pen but not the ink.
func (s *Screen) stylePen(params []byte) {
	v := 0
	for i, c := range params {
		switch {
		case c == ';':
			s.styleOne(v)
			v = 0
			continue
		case c != ':':
			v = v*10 + int(c-'0')
		}
		if c == ':' || v == 38 || v == 48 || v == 58 || v > 200 || i > maxParams {
			k := &s.parser // styleAll applies all parameters; applying the first ones again is harmless
			k.begin(ground)
			for _, c := range params {
				k.parameter(c)
			}
			s.styleAll()
			return
		}
	}
	s.styleOne(v)
}

// printed returns the length of p up to the first byte that shifts the set of characters,
// or that may begin an 8-bit control character.
func (s *Screen) printed(p []byte) int {
	n := len(p)
	for _, c := range [...]byte{0x0e, 0x0f} {
		if i := bytes.IndexByte(p[:n], c); i >= 0 {
			n = i
		}
	}
	if at := escape.NextC1(p[:n], 0); at < n || n == 0 || p[n-1] != 0xc2 {
		return at
	}
	return n - 1
}
