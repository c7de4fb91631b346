package redact

// Kind says which text replaces a masked range.
type Kind uint8

// The kinds of masks.
const (
	Secret Kind = iota + 1 // each byte is a star
	Blank                  // each byte is a filler, inside of a string that terminals ignore
	Open                   // ESC _, or _ alone: such a string begins
	Close                  // ESC \: it ends
	Cancel                 // each byte is CAN, which ends a sequence without effect
	Null                   // each byte is NUL, which terminals ignore
)

// Begins reports whether a mask of this kind that directly follows another mask belongs
// to another secret or sequence.
func (k Kind) Begins() bool { return k == Secret || k == Open || k == Cancel }

const (
	star   = '*'
	filler = '-'
	esc    = 0x1b
	bel    = 0x07
	can    = 0x18
	sub    = 0x1a
	del    = 0x7f
)

// Mask is a range of text offsets whose bytes are replaced.
type Mask struct {
	Start, End int64
	Kind       Kind
}

// Put writes the mask's replacement over p, the text at offset off, where they overlap.
func (m Mask) Put(p []byte, off int64) {
	from, to := max(m.Start-off, 0), min(m.End-off, int64(len(p)))
	for i := from; i < to; i++ {
		p[i] = m.at(off + i)
	}
}

// at returns the replacement of the byte at a text offset inside the mask.
func (m Mask) at(off int64) byte {
	last := off == m.End-1
	switch m.Kind {
	case Secret:
		return star
	case Open:
		if last {
			return '_'
		}
		return esc
	case Close:
		if last {
			return '\\'
		}
		return esc
	case Cancel:
		return can
	case Null:
		return 0
	}
	return filler
}

// Filter reads one terminal's text. It is not safe for concurrent use. It has no clock:
// its owner calls Flush when text was held back for too long, and Renew from time to
// time.
type Filter struct {
	secrets   redactor
	sequences sanitizer
}

// NewFilter returns a filter for the text from an offset on.
func NewFilter(r *Rules, off int64) *Filter {
	f := &Filter{secrets: newRedactor(r, off), sequences: sanitizer{opts: &r.opts, off: off, done: off}}
	f.Renew()
	return f
}

// Feed takes the next text: whole characters of valid UTF-8. It keeps only the part of p
// that it holds back, and allocates only if it finds something.
func (f *Filter) Feed(p []byte) {
	off := f.secrets.off
	f.secrets.feed(p)
	f.sequences.feed(p, int(f.secrets.text.plainFrom-off), int(min(f.secrets.text.plainTo-off, int64(len(p)))))
}

// Decided is the offset up to which all masks are known. At most 4 KiB behind it are held
// back.
func (f *Filter) Decided() int64 { return min(f.secrets.done, f.sequences.done) }

// Brief reports that only a byte or two are held back, with which some value begins. They
// are probably no secret and need not wait long for more.
func (f *Filter) Brief() bool {
	return f.sequences.done == f.sequences.off && f.secrets.off-f.secrets.done < openValue
}

// Flush decides everything that is held back.
func (f *Filter) Flush() {
	f.secrets.flush()
	f.sequences.flush()
}

// Renew allows images, notifications and titles again, as many as for a new filter. Until
// then any beyond that number are blanked.
func (f *Filter) Renew() { f.sequences.renew() }

// AtRest reports whether a filter that begins here does the same as this one would,
// except for the allowance that Renew resets.
func (f *Filter) AtRest() bool { return f.secrets.atRest() && f.sequences.atRest() }

// Take returns the masks found since the last call, in ascending order: those of secrets,
// and those of sequences, which overlay them. The next Feed or Flush overwrites them.
func (f *Filter) Take() (secrets, sequences []Mask) {
	secrets, sequences = f.secrets.take(), f.sequences.masks
	f.sequences.masks = sequences[:0]
	return secrets, sequences
}
