package shellint

// body is a sequence whose class is known, but not its end. Its bytes are decided as they
// come.
type body struct {
	open   bool
	intro  introducer
	off    int64  // raw offset of the sequence
	from   int64  // raw offset from which on its bytes are not in a Span yet
	splice bool   // for the Span that starts at off
	limit  int    // bytes of text kept
	over   bool   // the payload had more than limit bytes
	text   []byte // payload so far, without C0 bytes
}

// begin opens a sequence at raw offset off; unfinished reports the state in which the
// plain output before it left the terminal.
func (b *body) begin(in introducer, off int64, unfinished bool, limit int) {
	switch in.class {
	case ClassMark:
	case ClassClipboard:
		limit = maxSelection
	default:
		limit = MaxText
	}
	*b = body{open: true, intro: in, off: off, from: off, splice: unfinished, limit: limit, over: in.doomed, text: b.text[:0]}
}

// collect keeps payload bytes up to the limit.
func (b *body) collect(p []byte) {
	if b.over {
		return
	}
	if room := b.limit - len(b.text); len(p) > room {
		p, b.over = p[:room], true
	}
	b.text = append(b.text, p...)
}

// others reports whether the sequence is a mark that tether's scripts do not write.
func (b *body) others() bool { return b.intro.class == ClassMark && b.intro.ps == 133 }

// emit reports the bytes up to raw offset end that are not in a Span yet.
func (b *body) emit(r *Result, end int64) {
	if b.intro.class == 0 || b.from == end {
		return
	}
	r.span(Span{Start: b.from, End: end, Class: b.intro.class, Others: b.others(), Splice: b.splice})
	b.from, b.splice = end, false
}

// inBody consumes the open sequence. It returns false if the end of the sequence is
// undecided.
func (l *pass) inBody() bool {
	b := &l.s.body
	for l.pos < len(l.buf) {
		n := payloadLen(l.buf[l.pos:])
		b.collect(l.buf[l.pos : l.pos+n])
		l.pos += n
		if l.pos == len(l.buf) {
			break
		}
		n, term := terminator(l.buf[l.pos:], b.intro.dcs)
		if term == termUndecided && !l.final {
			return false
		}
		if term != termNone && term != termUndecided {
			l.endBody(n, term)
			break
		}
		if l.buf[l.pos] == c1 {
			b.collect(l.buf[l.pos : l.pos+1])
		}
		l.pos++
	}
	return true
}

// payloadLen returns the number of bytes at the start of p before the first C0 control or
// C2.
func payloadLen(p []byte) int {
	for i, c := range p {
		if c < 0x20 || c == c1 {
			return i
		}
	}
	return len(p)
}

// endBody closes the open sequence; n bytes at pos belong to its terminator.
func (l *pass) endBody(n int, term Terminator) {
	b := &l.s.body
	l.pos += n
	l.synced = l.pos
	end := l.base + int64(l.pos)
	b.emit(l.r, end)
	b.open = false
	l.s.ctx = context{}
	if n == 0 && term != TermFinal && (b.intro.class != ClassMark || b.others()) {
		// Some views keep these bytes, and in those views the string goes on.
		l.s.ctx.state = b.intro.state()
	}
	own := b.intro.class == ClassMark
	if term != termCancel && !(own && (b.over || term == TermEOF)) {
		l.mark(end, term)
	}
	if cap(b.text) > maxArena {
		b.text = nil
	}
}

// Terminator values that no Mark has.
const (
	termNone      Terminator = 0xff - iota // not a terminator
	termUndecided                          // the next byte decides
	termCancel                             // ends the sequence, which then does not count
)

// terminator judges the control or C2 at the start of rest inside an open OSC or DCS. n
// is the number of bytes that belong to the sequence.
func terminator(rest []byte, dcs bool) (n int, term Terminator) {
	switch rest[0] {
	case bel:
		if !dcs {
			return 1, TermBEL
		}
	case can, sub:
		return 0, termCancel
	case esc:
		if len(rest) == 1 {
			return 0, termUndecided
		}
		if rest[1] == '\\' {
			return 2, TermST
		}
		return 0, TermESC
	case c1:
		if len(rest) == 1 {
			return 0, termUndecided
		}
		if rest[1] == st1 {
			return 2, TermC1ST
		}
		if isC1(rest[1]) {
			return 0, termCancel
		}
	}
	return 0, termNone
}
