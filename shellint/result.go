package shellint

// Result holds the findings of one call of [Scanner.Scan]. The zero value is ready. A Result that is passed again keeps its memory; its
// slices are then overwritten.
type Result struct {
	// Decided is a raw offset: every byte before it is plain output or inside a Span that was reported, and will not be judged again. It never
	// decreases. The bytes from Decided to Scanner.Offset are an introducer that is not yet complete, at most [MaxUndecided] of them.
	Decided int64

	// Spans are ranges of the raw stream in ascending order that do not overlap, all before Decided. A sequence that is still open when its
	// class is known is reported as far as it came; the next Result goes on with a Span that starts where this one ended. So a consumer that
	// leaves a class out sees none of its bytes, and others see all of them at once, however long the sequence. A Span may begin in bytes of
	// an earlier Scan, never before the earlier Decided.
	Spans []Span

	// Marks are complete sequences in ascending order. A Mark is reported when its end is seen: its Off may be before the Decided of an
	// earlier Result, but from there to its End all is span, so that no plain byte is passed over.
	Marks []Mark

	arena []byte // payloads the Marks point into
}

// maxArena is the memory in bytes that a Result, and a Scanner, keeps for later payloads; larger memory for one longer payload is released.
const maxArena = 64 << 10

func (r *Result) reset() {
	r.Spans = r.Spans[:0]
	r.Marks = r.Marks[:0]
	r.arena = r.arena[:0]
	if cap(r.arena) > maxArena {
		r.arena = nil
	}
}

// Class is the class of a Span, by which a view chooses the spans to leave out. A sequence that is cancelled or cut off has a class and a
// Span too, but no Mark.
type Class uint8

// The classes of sequences. Everything else is plain output.
const (
	// ClassMark is OSC 133 and OSC 633, well-formed or not, authentic or not. No observer may see it: a client's terminal would act on it.
	ClassMark Class = iota + 1
	// ClassReport is state that a host keeps itself: OSC 7, 9;9, 9;12, 1337 with CurrentDir, RemoteHost, ShellIntegrationVersion or SetMark,
	// and 3008.
	ClassReport
	// ClassTitle is OSC 0, 1 and 2.
	ClassTitle
	// ClassClipboard is OSC 52, reading or writing.
	ClassClipboard
	// ClassQuery makes a terminal answer: OSC 4, 5, 10 to 19 with a "?", and with Options.Queries also DSR, DA, XTVERSION, DECRQM, window
	// reports, DECRQSS, XTGETTCAP, ENQ and the like.
	ClassQuery
)

// Span is a range of the raw stream, Start included, End not.
type Span struct {
	Start, End int64
	Class      Class

	// Splice tells a consumer that leaves this span out to put [Splice] in its place: the bytes before it are an unfinished sequence or
	// character, which the span's own introducer ended and which would else go on with the bytes after it. It holds whether or not the spans
	// before this one are left out too; at worst the terminal gets a string terminator where none was open, which it ignores.
	Splice bool
}

// Splice is the string terminator ESC \ that replaces a Span with Splice set: it ends an open sequence and has no other effect.
const Splice = "\x1b\\"

// Len returns the number of bytes in the span.
func (s Span) Len() int64 { return s.End - s.Start }

// span adds a Span. A span that begins where the last one ended is joined to it.
func (r *Result) span(s Span) {
	if n := len(r.Spans); n > 0 && !s.Splice && r.Spans[n-1].End == s.Start && r.Spans[n-1].Class == s.Class {
		r.Spans[n-1].End = s.End
		return
	}
	r.Spans = append(r.Spans, s)
}
