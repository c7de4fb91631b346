package redact

// Kind says what stands in place of a masked range.
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

// Begins reports whether a mask right behind another is of another place.
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

// Mask is a range of text offsets that is shown otherwise.
type Mask struct {
	Start, End int64
	Kind       Kind
}

// Put writes what the mask shows over p, the text at offset off, where they
// meet.
func (m Mask) Put(p []byte, off int64) {
	from, to := max(m.Start-off, 0), min(m.End-off, int64(len(p)))
	for i := from; i < to; i++ {
		p[i] = m.at(off + i)
	}
}

// at is the byte at a text offset inside the mask.
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

// Filter reads one terminal's text. It is not safe for concurrent use. It has
// no clock: who uses it calls Flush when text was held back for too long, and
// Renew now and then.
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

// Feed takes the text that follows, whole characters of valid UTF-8. It keeps
// nothing of p but what it holds back, and allocates nothing where nothing is
// found.
func (f *Filter) Feed(p []byte) {
	off := f.secrets.off
	f.secrets.feed(p)
	f.sequences.feed(p, int(f.secrets.text.plainFrom-off), int(min(f.secrets.text.plainTo-off, int64(len(p)))))
}

// Decided is the offset up to which all masks are known: what is behind is
// held back, at most 4 KiB.
func (f *Filter) Decided() int64 { return min(f.secrets.done, f.sequences.done) }

// Brief says that what is held back is likely to be nothing and need not wait
// long for what follows: a byte or two that some value begins with.
func (f *Filter) Brief() bool {
	return f.sequences.done == f.sequences.off && f.secrets.off-f.secrets.done < openValue
}

// Flush decides everything that is held back.
func (f *Filter) Flush() {
	f.secrets.flush()
	f.sequences.flush()
}

// Renew allows images, notifications and titles anew, as many as a filter
// begins with. What is beyond that is blanked until then.
func (f *Filter) Renew() { f.sequences.renew() }

// AtRest reports whether a filter that begins here does what this one would,
// except for what Renew allows anew.
func (f *Filter) AtRest() bool { return f.secrets.atRest() && f.sequences.atRest() }

// Take returns the masks found since it was called last, in ascending order:
// those of secrets, and those of sequences, which lie over them. They are
// overwritten by the next Feed or Flush.
func (f *Filter) Take() (secrets, sequences []Mask) {
	secrets, sequences = f.secrets.masks, f.sequences.masks
	f.secrets.masks, f.sequences.masks = secrets[:0], sequences[:0]
	return secrets, sequences
}
