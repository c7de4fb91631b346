package shellint

// Control bytes that matter to the scanner. C1 controls are U+0080 to U+009F, in UTF-8
// the byte C2 and one of 80 to 9F.
const (
	enq  = 0x05
	bel  = 0x07
	can  = 0x18
	sub  = 0x1a
	esc  = 0x1b
	del  = 0x7f
	c1   = 0xc2 // first byte of a C1 control, and of U+00A0 to U+00BF
	dcs1 = 0x90 // second bytes of C1 controls
	sos1 = 0x98
	csi1 = 0x9b
	st1  = 0x9c
	osc1 = 0x9d
	pm1  = 0x9e
	apc1 = 0x9f
)

// isC1 reports whether b is the second byte of a C1 control.
func isC1(b byte) bool { return b >= 0x80 && b <= 0x9f }

// inert reports whether b is a control that a terminal handles, or ignores, without
// ending the sequence that contains it.
func inert(b byte) bool {
	return b < 0x20 && b != esc && b != can && b != sub || b == del
}

// pass scans one buffer. Its states are those of the Scanner:
//
//	plain output --introducer of a class--> body --terminator, ESC, CAN, SUB, C1--> plain output
//
// pass moves pos over the buffer. Bytes before pos are decided. If it stops early, pos is
// at the start of an incomplete introducer, or of the incomplete terminator of an open
// sequence.
type pass struct {
	s    *Scanner
	r    *Result
	buf  []byte
	base int64 // raw offset of buf[0]

	pos    int
	synced int  // Scanner.ctx describes the stream before buf[synced]
	final  bool // nothing follows buf

	find finder
}

func newPass(s *Scanner, r *Result, buf []byte, base int64) pass {
	return pass{s: s, r: r, buf: buf, base: base, find: newFinder(s, buf)}
}

// run scans until pos reaches limit or the rest is undecided. Afterwards Scanner.ctx
// describes the stream before pos.
func (l *pass) run(limit int) {
	for l.pos < limit {
		if l.s.body.open {
			if !l.inBody() {
				break
			}
		} else if !l.inPlain() {
			break
		}
	}
	if !l.s.body.open {
		l.sync(l.pos)
	}
}

// sync advances Scanner.ctx from buf[synced] to buf[to]. The bytes between must be plain
// output without C1 controls.
func (l *pass) sync(to int) {
	if l.synced < to {
		l.s.ctx.advance(l.buf[l.synced:to], l.find.lastESC(l.buf, l.synced, to)-l.synced)
		l.synced = to
	}
}

// inPlain passes over plain output and the next introducer. It returns false if the
// introducer is undecided.
func (l *pass) inPlain() bool {
	l.pos = l.find.next(l.buf, l.pos)
	if l.pos == len(l.buf) {
		return true
	}
	in := parseIntroducer(l.buf[l.pos:])
	if in.verdict == undecided {
		if !l.final {
			return false
		}
		in = in.atEOF(len(l.buf) - l.pos)
	}
	if in.verdict == foreign {
		l.passOver(in.n)
		return true
	}
	l.sync(l.pos)
	if in.verdict == answerback {
		l.answerback()
		return true
	}
	l.s.body.begin(in, l.base+int64(l.pos), l.s.ctx.unfinished(), l.s.opts.LimitPayload)
	l.pos += in.n
	l.synced = l.pos
	if in.whole {
		l.endBody(0, TermFinal)
	}
	return true
}

// passOver passes over n bytes of a foreign introducer, which stay plain output.
func (l *pass) passOver(n int) {
	if l.buf[l.pos] == c1 && n == 2 {
		l.sync(l.pos)
		l.s.ctx = afterC1(l.buf[l.pos+1])
		l.synced = l.pos + n
	}
	l.pos += n
}

// answerback handles an ENQ. It is a query only in plain output: a terminal ignores it in
// a string. In an unfinished sequence it stays, so that no span lies inside that
// sequence.
func (l *pass) answerback() {
	at := l.base + int64(l.pos)
	if l.s.ctx.state == ground {
		l.r.span(Span{Start: at, End: at + 1, Class: ClassQuery, Splice: l.s.ctx.unfinished()})
		m := l.r.newMark()
		m.Off, m.End, m.PS, m.Term, m.Query = at, at+1, -1, TermFinal, QueryAnswerback
		m.decode(l.s)
	}
	l.pos++
}
