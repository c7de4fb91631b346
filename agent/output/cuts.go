package output

import (
	"math/bits"
	"sort"

	"tether/platform/pty"
	"tether/record"
	"tether/shellint"
)

// Size is a terminal's size in cells, 1 to 1000 each way.
type Size = pty.Size

// MinBuffer is the smallest buffer that a read takes, in bytes; less could not take the
// replacement of one cut.
const MinBuffer = 64

// View is a form of the output.
type View uint8

const (
	// ViewText is for observers: valid UTF-8, without integration marks, terminal queries
	// and clipboard access. Its offsets are text offsets.
	ViewText View = iota
	// ViewScreen is for the person's own screen: every byte as the child wrote it except
	// OSC 633, tether's integration marks. Its offsets are raw offsets.
	ViewScreen
	// ViewOutward is ViewText as it leaves the machine: secrets and unsafe sequences are
	// masked, and text is withheld for a moment while that is undecided. It is for hosts
	// to which the terminal is lent; for others it is ViewText.
	ViewOutward
	// ViewRaw is every byte as the child wrote it, for the person; for others it is
	// ViewScreen. Its offsets are raw offsets.
	ViewRaw
)

// IsText says whether the view counts text offsets.
func (v View) IsText() bool { return v == ViewText || v == ViewOutward }

// cutKind selects the replacement of a cut range in a view.
type cutKind uint8

const (
	cutMark    cutKind = iota // an OSC 633: left out of text and screen
	cutSplice                 // the same, with ESC \ left in its place (shellint rule R7b)
	cutHidden                 // another mark, a query or clipboard access: left out of text only
	cutHiddenS                // the same, with ESC \ left in its place
	cutInvalid                // bytes that are not UTF-8: each is U+FFFD in text
)

const (
	splice      = "\x1b\\"
	replacement = "\uFFFD"
)

// cut is a range of the raw stream that some view does not show unchanged.
type cut struct {
	start, end int64 // raw offsets
	text       int64 // text offset of start
	kind       cutKind
}

// cutFor returns the kind of cut for a span; ok is false if all views show it.
func cutFor(s shellint.Span) (cutKind, bool) {
	switch {
	case s.Class == shellint.ClassMark && s.Others:
	case s.Class == shellint.ClassMark && s.Splice:
		return cutSplice, true
	case s.Class == shellint.ClassMark:
		return cutMark, true
	case s.Class != shellint.ClassQuery && s.Class != shellint.ClassClipboard:
		return 0, false
	}
	if s.Splice {
		return cutHiddenS, true
	}
	return cutHidden, true
}

// textLen is the number of bytes that stand for the cut in ViewText.
func (c cut) textLen() int64 {
	switch c.kind {
	case cutSplice, cutHiddenS:
		return int64(len(splice))
	case cutInvalid:
		return (c.end - c.start) * int64(len(replacement))
	}
	return 0
}

// shown reports whether the view passes the cut's bytes untouched.
func (c cut) shown(v View) bool {
	switch v {
	case ViewText, ViewOutward:
		return false
	case ViewScreen:
		return c.kind > cutSplice
	}
	return true
}

// standIn copies to p what a view that leaves the cut out shows in place of its raw range
// [pos, end). It returns the new pos and the copied length. An indivisible replacement is
// copied whole or not at all; otherwise copying stops at limit.
func (c cut) standIn(p []byte, pos, limit int64) (int64, int) {
	switch c.kind {
	case cutSplice, cutHiddenS:
		if len(p) < len(splice) {
			return pos, 0
		}
		return c.end, copy(p, splice)
	case cutInvalid:
		n, end := 0, min(c.end, limit)
		for ; pos < end && len(p)-n >= len(replacement); pos++ {
			n += copy(p[n:], replacement)
		}
		return pos, n
	}
	return c.end, 0
}

// cutList is the cuts of the retained stream in ascending order, and with them the
// mapping between raw and text offsets. A cut takes two bytes, so that binary output,
// with a cut every few bytes, fits into the bound of the log as text does: see
// Log.Weight.
type cutList struct {
	blocks record.Queue[*cutBlock]
	last   cut  // the newest cut, which may still grow; it is in no block
	some   bool // last is set
	// Raw and text offset of one position before the first cut.
	baseRaw, baseText int64
}

// cutBlock is a run of cuts. They are packed into words, see pack.
type cutBlock struct {
	raw, text       int64 // offsets where the first cut starts
	rawEnd, textEnd int64 // offsets where the last cut ends
	n               int   // words that are used
	words           [cutWords]uint16
}

const (
	cutWords     = 236
	cutBlockCost = 512 + 8 // bytes of memory of a block and of the pointer to it
)

// A word is, from its highest bit: 3 bits kind, 6 bits gap to the end of the cut before,
// 7 bits length, both in raw bytes. Words that extend the next one come before it: 13
// more bits of its gap or length each, the highest first.
const (
	wordGap    = 6
	wordLength = 7
	wordExtra  = wordGap + wordLength

	moreGap    = 6 // in place of a kind
	moreLength = 7
)

// maxPacked bounds the words of one cut: its own, and extensions of two numbers of at
// most 63 bits.
const maxPacked = 1 + 2*5

// pack encodes a cut that begins gap bytes behind the one before.
func pack(dst []uint16, gap, length int64, kind cutKind) []uint16 {
	dst = packMore(dst, moreGap, uint64(gap)>>wordGap)
	dst = packMore(dst, moreLength, uint64(length)>>wordLength)
	return append(dst, uint16(kind)<<wordExtra|uint16(gap&(1<<wordGap-1))<<wordLength|uint16(length&(1<<wordLength-1)))
}

func packMore(dst []uint16, which uint16, v uint64) []uint16 {
	for n := (bits.Len64(v) + wordExtra - 1) / wordExtra; n > 0; n-- {
		dst = append(dst, which<<wordExtra|uint16(v>>((n-1)*wordExtra))&(1<<wordExtra-1))
	}
	return dst
}

// unpack decodes the cut at words[i] and returns where the next one is.
func (b *cutBlock) unpack(i int) (gap, length int64, kind cutKind, next int) {
	for ; ; i++ {
		w := b.words[i]
		switch extra := int64(w & (1<<wordExtra - 1)); w >> wordExtra {
		case moreGap:
			gap = gap<<wordExtra | extra
		case moreLength:
			length = length<<wordExtra | extra
		default:
			return gap<<wordGap | extra>>wordLength, length<<wordLength | extra&(1<<wordLength-1), cutKind(w >> wordExtra), i + 1
		}
	}
}

// add appends a cut. Where that makes no difference to a reader, it extends an adjacent
// cut of the same kind instead, so that a long clipboard write or a run of binary output
// is one cut.
func (l *cutList) add(start, end int64, kind cutKind) {
	if l.some && l.last.end == start && l.last.kind == kind && kind != cutSplice && kind != cutHiddenS {
		l.last.end = end
		return
	}
	text := l.textAt(start)
	l.seal()
	l.last, l.some = cut{start: start, end: end, text: text, kind: kind}, true
}

// seal moves the newest cut into a block.
func (l *cutList) seal() {
	if !l.some {
		return
	}
	var b *cutBlock
	if n := l.blocks.Len(); n > 0 {
		b = *l.blocks.At(n - 1)
	}
	if b == nil || b.n > cutWords-maxPacked {
		b = &cutBlock{raw: l.last.start, text: l.last.text, rawEnd: l.last.start}
		l.blocks.Push(b)
	}
	words := pack(b.words[:b.n], l.last.start-b.rawEnd, l.last.end-l.last.start, l.last.kind)
	b.n = len(words)
	b.rawEnd, b.textEnd = l.last.end, l.last.text+l.last.textLen()
}

// cutCursor is a position in the list: at a cut, or behind the last one. It is valid
// until the list changes.
type cutCursor struct {
	cut
	ok   bool // there is a cut
	list *cutList
	at   int // index of the block with the next cut; the number of blocks means the list's last cut
	next int // index of the next cut's first word in that block; 1 if the last cut was passed
}

// step moves to the next cut.
func (c *cutCursor) step() {
	if c.at == c.list.blocks.Len() {
		c.cut, c.ok, c.next = c.list.last, c.list.some && c.next == 0, 1
		return
	}
	b := *c.list.blocks.At(c.at)
	gap, length, kind, next := b.unpack(c.next)
	start, text := b.raw, b.text
	if c.next > 0 {
		start, text = c.end+gap, c.text+c.textLen()+gap
	}
	c.cut, c.ok = cut{start: start, end: start + length, text: text, kind: kind}, true
	if c.next = next; next == b.n {
		c.at, c.next = c.at+1, 0
	}
}

// find returns a cursor at the first cut for which within is true. within gets the raw
// and the text offset of a cut's end, and must be false for all cuts before the first one
// for which it is true.
func (l *cutList) find(within func(rawEnd, textEnd int64) bool) cutCursor {
	at := sort.Search(l.blocks.Len(), func(i int) bool { b := *l.blocks.At(i); return within(b.rawEnd, b.textEnd) })
	c := cutCursor{list: l, at: at}
	for c.step(); c.ok && !within(c.end, c.text+c.textLen()); {
		c.step()
	}
	return c
}

// after returns a cursor at the first cut that ends after the raw offset.
func (l *cutList) after(raw int64) cutCursor {
	return l.find(func(end, _ int64) bool { return end > raw })
}

// tail returns the raw and the text offset of the last cut's end.
func (l *cutList) tail() (raw, text int64) {
	if l.some {
		return l.last.end, l.last.text + l.last.textLen()
	}
	return l.baseRaw, l.baseText
}

// behindSplice returns raw or, if raw lies in a cut that has a replacement, the end of
// that cut.
func (l *cutList) behindSplice(raw int64) int64 {
	if c := l.after(raw); c.ok && c.start <= raw && c.kind == cutSplice {
		return c.end
	}
	return raw
}

// textAt maps a raw offset to its text offset. Inside a cut that cannot be divided it is
// the offset of the cut's start.
func (l *cutList) textAt(raw int64) int64 {
	if end, text := l.tail(); raw >= end {
		return text + raw - end
	}
	c := l.after(raw)
	switch {
	case !c.ok: // before the first cut, or there is none
		return l.baseText + raw - l.baseRaw
	case c.start > raw:
		return c.text - (c.start - raw)
	case c.kind == cutInvalid:
		return c.text + (raw-c.start)*int64(len(replacement))
	}
	return c.text
}

// rawAt maps a text offset to the raw offset it came from, rounded down to the start of a
// stand-in.
func (l *cutList) rawAt(text int64) int64 {
	c := l.find(func(_, end int64) bool { return end > text })
	switch {
	case !c.ok:
		end, at := l.tail()
		return end + text - at
	case c.text > text:
		return c.start - (c.text - text)
	case c.kind == cutInvalid:
		return c.start + (text-c.text)/int64(len(replacement))
	}
	return c.start
}

// trim drops cuts that end at or before the raw offset, in whole blocks.
func (l *cutList) trim(raw int64) {
	n := l.blocksBefore(raw)
	if n > 0 {
		b := *l.blocks.At(n - 1)
		l.baseRaw, l.baseText = b.rawEnd, b.textEnd
		l.blocks.Drop(n)
	}
	if l.blocks.Len() == 0 && l.some && l.last.end <= raw {
		l.baseRaw, l.baseText = l.tail()
		l.some = false
	}
}

// blocksBefore returns the number of blocks whose cuts all end at or before the raw
// offset.
func (l *cutList) blocksBefore(raw int64) int {
	return sort.Search(l.blocks.Len(), func(i int) bool { return (*l.blocks.At(i)).rawEnd > raw })
}

// weight returns the memory that the cuts behind the raw offset take, in bytes.
func (l *cutList) weight(raw int64) int64 {
	return int64(l.blocks.Len()-l.blocksBefore(raw)) * cutBlockCost
}

// cost returns the memory that the list takes, in bytes.
func (l *cutList) cost() int {
	return l.blocks.Len()*(cutBlockCost-8) + l.blocks.Cap()*8
}
