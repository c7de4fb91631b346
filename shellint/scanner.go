package shellint

// Options configures a [Scanner]. The zero value trusts every mark and recognises no CSI and DCS queries.
type Options struct {
	// Nonce is the session's secret that authentic marks carry as a field; "" makes every mark trusted.
	Nonce string
	// LimitPayload is the longest payload of an OSC 133 or 633 that counts, in bytes; a longer one is taken out without
	// a Mark. 0 means [DefaultLimitPayload].
	LimitPayload int
	// Queries switches on the recognition of queries that are no OSC. It costs speed, because every ESC must then be
	// looked at.
	Queries bool
}

// Bounds of a [Scanner], in bytes.
const (
	// DefaultLimitPayload is the LimitPayload of zero Options. bash accepts lines of 300 KB.
	DefaultLimitPayload = 1 << 20
	// MaxUndecided is the largest number of bytes at the end of the stream that a Scanner leaves undecided: the introducer
	// of a sequence whose class does not show yet.
	MaxUndecided = 64
	// MaxText is what is kept of the payload of a title or report; the rest of it is left out of the Mark.
	MaxText = 16 << 10
)

// Scanner finds marks and other sequences in the raw output of one terminal. It is a pure state machine: no clock, no
// I/O, no goroutine, and any division of the stream into calls gives the same spans (joined where they touch) and the same
// marks. It is not safe for concurrent use.
type Scanner struct {
	opts Options
	off  int64
}

// NewScanner returns a Scanner at offset 0.
func NewScanner(o Options) *Scanner {
	if o.LimitPayload == 0 {
		o.LimitPayload = DefaultLimitPayload
	}
	return &Scanner{opts: o}
}

// Offset is the number of raw bytes consumed.
func (s *Scanner) Offset() int64 { return s.off }

// Scan consumes the next bytes of the raw stream and fills r, whose earlier contents are overwritten. p is not kept.
// Without marks in p it allocates nothing.
func (s *Scanner) Scan(p []byte, r *Result) {
	s.off += int64(len(p))
	r.reset(s.off)
}

// Close ends the stream: what was undecided becomes plain output or, inside an unfinished OSC 133 or 633, a Span. The
// Scanner must not be used afterwards.
func (s *Scanner) Close(r *Result) {
	r.reset(s.off)
}
