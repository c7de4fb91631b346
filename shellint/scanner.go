package shellint

// Options configures a [Scanner]. The zero value trusts every mark.
type Options struct {
	// Nonce is the terminal's secret. Marks that carry it as a field are trusted. If
	// Nonce is "", every mark is trusted.
	Nonce string
	// LimitPayload bounds the payload of an OSC 133 or 633, in bytes; one with a longer
	// payload has a Span but no Mark. 0 or less means [DefaultLimitPayload].
	LimitPayload int
}

// Bounds of a [Scanner], in bytes.
const (
	// DefaultLimitPayload is the LimitPayload of zero Options. bash accepts lines of 300
	// KB.
	DefaultLimitPayload = 1 << 20
	// MaxUndecided bounds the bytes at the end of the stream that a Scanner leaves
	// undecided: the introducer of a sequence whose class is not known yet. A longer
	// introducer is judged by its first MaxUndecided bytes. If it may still become an OSC
	// 133 or 633 (no program writes such a number), it has a Span and no Mark; otherwise
	// it is plain output.
	MaxUndecided = 64
	// MaxText bounds the kept part of a payload that is no OSC 133, 633 or 52, in bytes;
	// the Mark is without the rest, see Mark.Truncated.
	MaxText = 16 << 10
	// maxSelection bounds the kept part of an OSC 52: enough to distinguish reading from
	// writing. The rest of its data is not copied.
	maxSelection = 64
)

// Scanner finds marks and other sequences in the raw output of one terminal. It is a pure
// state machine without clock, I/O or goroutines: any division of the stream into calls
// gives the same spans (joined where they touch) and the same marks. It is not safe for
// concurrent use.
type Scanner struct {
	opts Options // set once

	// Between two calls, off bytes are consumed, and the last len(held) of them are
	// undecided. Before the undecided bytes, the stream is in an open sequence
	// (body.open) or in plain output that left the terminal in ctx.
	off  int64
	held []byte
	ctx  context
	body body
	cwd  string // the last reported directory

	heldBytes [MaxUndecided]byte     // memory of held
	joint     [2 * MaxUndecided]byte // held bytes and the bytes after them; payloads of this call's Marks may lie here
}

// NewScanner returns a Scanner at offset 0.
func NewScanner(o Options) *Scanner {
	if o.LimitPayload <= 0 {
		o.LimitPayload = DefaultLimitPayload
	}
	return &Scanner{opts: o}
}

// Offset returns the number of raw bytes consumed.
func (s *Scanner) Offset() int64 { return s.off }

// Scan consumes the next bytes of the raw stream and overwrites r with the findings. The
// Scanner does not keep p, but the methods of r's Marks may read p. Without marks in p,
// Scan allocates nothing.
func (s *Scanner) Scan(p []byte, r *Result) {
	r.reset()
	base := s.off
	s.off += int64(len(p))
	if len(s.held) > 0 {
		n := s.resume(p, base, r)
		p, base = p[n:], base+int64(n)
	}
	if len(p) > 0 {
		l := newPass(s, r, p, base)
		l.run(len(p))
		s.hold(p[l.pos:])
	}
	s.report(r)
}

// Close ends the stream: undecided bytes become plain output or, in an open sequence or
// an unfinished OSC 133 or 633, a Span. The Scanner must not be used afterwards.
func (s *Scanner) Close(r *Result) {
	r.reset()
	n := copy(s.joint[:], s.held)
	s.held = nil
	l := newPass(s, r, s.joint[:n], s.off-int64(n))
	l.final = true
	l.run(n)
	if s.body.open {
		l.pos = n
		l.endBody(0, TermEOF)
	}
	s.report(r)
}

// resume decides the held bytes with the help of the first bytes of p. It returns the
// number of bytes of p that it consumed.
func (s *Scanner) resume(p []byte, base int64, r *Result) int {
	held := copy(s.joint[:], s.held)
	n := held + copy(s.joint[held:], p[:min(len(p), MaxUndecided)])
	l := newPass(s, r, s.joint[:n], base-int64(held))
	l.run(held)
	if l.pos < held {
		// A verdict needs at most MaxUndecided bytes: all of p is in joint.
		s.hold(s.joint[l.pos:n])
		return len(p)
	}
	s.held = nil
	return l.pos - held
}

func (s *Scanner) hold(undecided []byte) {
	s.held = s.heldBytes[:copy(s.heldBytes[:], undecided)]
}

// report completes r: it sets Decided, and makes the decided part of an open sequence a
// Span.
func (s *Scanner) report(r *Result) {
	r.Decided = s.off - int64(len(s.held))
	if s.body.open {
		s.body.emit(r, r.Decided)
	}
}
