package record

import "tether/screen"

// Backdrop is the screen behind dropped text: what the text that a log does not keep any
// more has left on the screen. It takes no memory until text leaves the log.
//
// It has a position in the log's own counting: the screen is known there, and later text
// is still in the log, or missing.
type Backdrop struct {
	cols, rows int            // while screen is nil
	at         int64          // of the screen with waits behind it
	screen     *screen.Screen // nil: blank, of that size
	unknown    bool           // it was not blank although screen is nil
	gap        int64          // position of the newest text that is missing; 0: none
	waits      []byte         // text that has left and that the screen has not processed
	batch      int            // bound of waits, in bytes
	cost       int            // of screen, in bytes; 0: it is not known
}

// Shown is a screen as bytes.
type Shown struct {
	Cols, Rows int
	Replay     []byte // makes a fresh terminal of that size the same; nil: blank, or too large
	Exact      bool   // everything on it is known
}

// NewBackdrop returns a blank screen at a position. Up to batch bytes of text wait for
// the screen to process them at once: the more do, the cheaper are lines that scroll away
// at once. With 0 none waits.
func NewBackdrop(cols, rows int, at int64, batch int) Backdrop {
	return Backdrop{cols: cols, rows: rows, at: at, batch: batch}
}

// At returns the position.
func (b *Backdrop) At() int64 { return b.at }

// Gap returns the position of the newest text that is missing, or 0.
func (b *Backdrop) Gap() int64 { return b.gap }

// Blank reports whether the screen is known to be blank because nothing has left.
func (b *Backdrop) Blank() bool { return b.screen == nil && len(b.waits) == 0 && !b.unknown }

// Screen returns the screen after it has processed all text that has left. It is valid
// until the next call of another method; the caller does not change it.
func (b *Backdrop) Screen() *screen.Screen {
	if b.cost = 0; b.screen == nil {
		if b.screen = screen.NewState(b.cols, b.rows); b.unknown {
			b.screen.Doubt()
		}
	}
	if len(b.waits) > 0 {
		b.screen.Advance(b.waits)
		b.waits = b.waits[:0]
	}
	return b.screen
}

// leastRoom is the least capacity that Room returns, in bytes.
const leastRoom = 64

// Room returns an empty slice with a capacity of at least 64 bytes, for text that is to
// leave: Leave does not copy text that was appended there. Only a backdrop with a batch
// of that size has room.
func (b *Backdrop) Room() []byte {
	switch n := len(b.waits); {
	case cap(b.waits)-n >= leastRoom:
	case cap(b.waits) >= b.batch:
		b.Screen()
	default:
		b.waits = append(make([]byte, 0, min(max(2*cap(b.waits), 2<<10), b.batch)), b.waits...)
	}
	return b.waits[len(b.waits):]
}

// Leave adds the text from the present position up to another one. The terminal's size
// does not change within it.
func (b *Backdrop) Leave(text []byte, to int64) {
	if b.gap > 0 && b.at <= b.gap && b.gap < to {
		b.Screen().Doubt()
	}
	switch n := len(b.waits); {
	case n+len(text) <= cap(b.waits):
		b.waits = append(b.waits, text...)
	default:
		b.Screen().Advance(text)
	}
	b.at = to
}

// leapLeast is the least length of text, in positions, for which Leap is tried.
const leapLeast = 16 << 10

// Leaps reports whether Leap may advance the screen up to a position.
func (b *Backdrop) Leaps(to int64) bool {
	return to-b.at >= leapLeast && (b.gap == 0 || b.at > b.gap || b.gap >= to)
}

// Leap adds text up to a position of which only the end, tail, is decoded. Leaps has said
// that it may, and all of the text only prints rows, see [screen.Screen.Leap]; styled
// says that it may style them. It returns false, and has changed nothing, if the screen
// depends on more of the text.
func (b *Backdrop) Leap(tail []byte, styled bool, to int64) bool {
	if len(tail) == 0 || int64(len(tail)) > to-b.at || !b.Screen().Leap(tail, styled) {
		return false
	}
	b.at = to
	return true
}

// Resize gives the screen another size.
func (b *Backdrop) Resize(cols, rows int) {
	if b.screen == nil && len(b.waits) == 0 {
		b.cols, b.rows = cols, rows
		return
	}
	b.Screen().Resize(cols, rows)
}

// Missing records that text is missing at a position, which is not before the present
// one. The screen is doubtful from there on.
func (b *Backdrop) Missing(at int64) {
	if b.gap = at; at == 0 {
		b.unknown = true // there may have been text before
	}
}

// Lose drops the screen and moves the position: what text before it has left is unknown.
func (b *Backdrop) Lose(at int64) {
	b.cols, b.rows = b.Size()
	b.screen, b.cost, b.unknown, b.waits, b.at = nil, 0, true, nil, at
}

// Draw replaces the screen by another one, of which the backdrop becomes the owner.
func (b *Backdrop) Draw(is *screen.Screen, at int64) {
	b.screen, b.cost, b.unknown, b.gap, b.waits, b.at = is, 0, false, 0, nil, at
}

// SetBatch changes the bound of the text that waits, in bytes.
func (b *Backdrop) SetBatch(batch int) {
	if b.batch = batch; cap(b.waits) > batch {
		if len(b.waits) > 0 {
			b.Screen()
		}
		b.waits = nil
	}
}

// Size returns the size of the screen.
func (b *Backdrop) Size() (cols, rows int) {
	if b.screen == nil {
		return b.cols, b.rows
	}
	return b.screen.Size()
}

// Show returns the screen at the present position. It processes all text that has left.
func (b *Backdrop) Show() Shown {
	s := Shown{Cols: b.cols, Rows: b.rows, Exact: !b.unknown}
	if b.screen != nil || len(b.waits) > 0 {
		is := b.Screen()
		s.Cols, s.Rows = is.Size()
		s.Replay = is.Replay()
		s.Exact = !is.Doubtful() && s.Replay != nil
	}
	return s
}

// Clone returns a copy that does not depend on b: one may be advanced while the other is
// read.
func (b *Backdrop) Clone() Backdrop {
	c := *b
	if c.waits = nil; len(b.waits) > 0 {
		c.waits = append(make([]byte, 0, cap(b.waits)), b.waits...)
	}
	if b.screen != nil {
		c.screen = b.screen.Clone()
	}
	return c
}

// Follow makes b the same as a clone of it that was advanced meanwhile, but for what was
// found to be missing since then.
func (b *Backdrop) Follow(clone *Backdrop) {
	gap, unknown := b.gap, b.unknown
	*b = *clone
	b.gap, b.unknown = gap, unknown
}

// Cost returns the memory that it takes, in bytes.
func (b *Backdrop) Cost() int {
	if b.screen != nil && b.cost == 0 {
		b.cost = b.screen.Cost()
	}
	return cap(b.waits) + b.cost
}
