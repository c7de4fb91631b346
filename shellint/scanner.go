package shellint

// Options configures a [Scanner]. The zero value trusts every mark and recognises no CSI and DCS queries.
type Options struct {
	// Nonce is the session's secret that authentic marks carry as a field; "" makes every mark trusted.
	Nonce string
	// LimitPayload is the longest payload of an OSC 133 or 633 that counts, in bytes; a longer one is taken out without a Mark. 0 or less
	// means [DefaultLimitPayload].
	LimitPayload int
	// Queries switches on the recognition of queries that are no OSC. It costs speed, because every ESC must then be looked at.
	Queries bool
}

// Bounds of a [Scanner], in bytes.
const (
	// DefaultLimitPayload is the LimitPayload of zero Options. bash accepts lines of 300 KB.
	DefaultLimitPayload = 1 << 20
	// MaxUndecided is the largest number of bytes at the end of the stream that a Scanner leaves undecided: the introducer of a sequence whose
	// class does not show yet. A longer introducer is judged by its first MaxUndecided bytes: taken out without a Mark if it may yet become an
	// OSC 133 or 633 (no program writes such a number), else plain output.
	MaxUndecided = 64
	// MaxText bounds the kept part of the payload of a title or report; the rest is left out of the Mark.
	MaxText = 16 << 10
	// maxSelection bounds the kept part of an OSC 52: enough to tell reading from writing. Its data is never copied.
	maxSelection = 64
)

// Scanner finds marks and other sequences in the raw output of one terminal. It is a pure state machine: no clock, no I/O, no goroutine,
// and any division of the stream into calls gives the same spans (joined where they touch) and the same marks. It is not safe for
// concurrent use.
type Scanner struct {
	opts Options // set once

	// Between two calls: off bytes were consumed, the last len(held) of them are undecided. Before the undecided bytes the stream is in an
	// open sequence (body.open) or in plain output that left the terminal in ctx.
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

// Scan consumes the next bytes of the raw stream and fills r, whose earlier contents are overwritten. p is not kept. Without marks in p it
// allocates nothing.
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

// Close ends the stream: undecided bytes become plain output or, inside an unfinished OSC 133 or 633, a Span. The Scanner must not be used
// afterwards.
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

// resume goes on with the held bytes and as much of p as their verdict needs. It returns how many bytes of p are dealt with; the others
// follow as if nothing had been held.
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

// report completes a Result: the decided part of an open sequence becomes a span.
func (s *Scanner) report(r *Result) {
	r.Decided = s.off - int64(len(s.held))
	if s.body.open {
		s.body.emit(r, r.Decided)
	}
}
