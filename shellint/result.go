package shellint

// Result holds the findings of one call of [Scanner.Scan]. The zero value is ready. A
// Result that is passed again keeps its memory; its slices are then overwritten.
type Result struct {
	// Decided is a raw offset: every byte before it is plain output or inside a reported
	// Span, which is final. Decided never decreases. The bytes from Decided to
	// Scanner.Offset are an incomplete introducer or terminator, at most [MaxUndecided]
	// bytes.
	Decided int64

	// Spans are ranges of the raw stream in ascending order that do not overlap, all
	// before Decided. Of a sequence whose class is known but whose end has not come, the
	// bytes so far are a Span; in the next Result, a Span starts where this one ended. So
	// a consumer that leaves a class out sees none of its bytes, and other consumers get
	// all bytes without delay, however long the sequence. A Span may begin in bytes of an
	// earlier Scan, but not before that Scan's Decided.
	Spans []Span

	// Marks are complete sequences in ascending order. A Mark is reported when its end is
	// seen, so its Off may be before the Decided of an earlier Result. Except for a
	// KindNotice, all its bytes are in Spans: no plain output lies between its Off and
	// its End.
	Marks []Mark

	arena []byte // payloads the Marks point into
}

// maxArena is the memory in bytes that a Result, and a Scanner, keeps for later payloads.
// It releases a larger buffer.
const maxArena = 64 << 10

func (r *Result) reset() {
	r.Spans = r.Spans[:0]
	r.Marks = r.Marks[:0]
	r.arena = r.arena[:0]
	if cap(r.arena) > maxArena {
		r.arena = nil
	}
}

// Class is the class of a Span. A view chooses by class which spans to leave out. A
// cancelled sequence has a class and a Span, too, but no Mark; nor has an OSC 133 or 633
// that is too long or that the end of the stream cuts off.
type Class uint8

// The classes of sequences. Everything else is plain output.
const (
	// ClassMark is OSC 133 and OSC 633, well-formed or not, trusted or not. No observer
	// may see it: a client's terminal would act on it.
	ClassMark Class = iota + 1
	// ClassReport is state that a host gets in other ways: OSC 7, 9;9, 9;12, 3008, and
	// 1337 with CurrentDir, RemoteHost, ShellIntegrationVersion or SetMark.
	ClassReport
	// ClassTitle is OSC 0, 1 and 2.
	ClassTitle
	// ClassClipboard is OSC 52, reading or writing.
	ClassClipboard
	// ClassQuery makes a terminal answer: OSC 4, 5, 10 to 19 with a "?", OSC 21, 22, 99
	// and 5522, DSR, DA, XTVERSION, DECRQM, window reports, DECRQSS, XTGETTCAP, ENQ and
	// the like.
	ClassQuery
)

// Span is a range of the raw stream, Start included, End not.
type Span struct {
	Start, End int64
	Class      Class

	// Others says that the span is a mark of another integration, such as that of a
	// terminal program: OSC 133, while tether's scripts write OSC 633. The person's
	// terminal may get it.
	Others bool

	// Splice tells a consumer that leaves this span out to put [Splice] in its place. The
	// bytes before the span are an unfinished sequence or character: the span's
	// introducer ended it, and without the span it would continue with the bytes after
	// the span. This is so whether or not the consumer leaves out earlier spans, too; at
	// worst the terminal gets a string terminator where no string is open, and ignores
	// it.
	Splice bool
}

// Splice is the string terminator ESC \ that replaces a Span with Splice set: it ends an
// open sequence and has no other effect.
const Splice = "\x1b\\"

// Len returns the number of bytes in the span.
func (s Span) Len() int64 { return s.End - s.Start }

// span adds a Span. It extends the last Span instead if that ends where s starts, has the
// same class and origin, and s needs no Splice.
func (r *Result) span(s Span) {
	if n := len(r.Spans); n > 0 && !s.Splice && r.Spans[n-1].End == s.Start && r.Spans[n-1].Class == s.Class && r.Spans[n-1].Others == s.Others {
		r.Spans[n-1].End = s.End
		return
	}
	r.Spans = append(r.Spans, s)
}
