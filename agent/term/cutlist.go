package term

import (
	"math/bits"
	"sort"
)

// cutList is the cuts of the retained stream in ascending order, and with
// them the mapping between raw and text offsets. A cut takes two bytes, so that
// binary output, with a cut every few bytes, fits into the bound of the log as
// text does: see stream.weight.
type cutList struct {
	blocks queue[*cutBlock]
	last   cut  // the newest cut, which may still grow; it is in no block
	some   bool // there is a last
	// A position with the same place in both streams, before the first cut.
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

// A word is, from its highest bit: 3 bits kind, 6 bits gap to the end of the
// cut before, 7 bits length, both in raw bytes. Words that extend the next one
// come before it: 13 more bits of its gap or length each, the highest first.
const (
	wordGap    = 6
	wordLength = 7
	wordExtra  = wordGap + wordLength

	moreGap    = 6 // in place of a kind
	moreLength = 7
)

// maxPacked bounds the words of one cut: its own, and extensions of two numbers
// of at most 63 bits.
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

// add appends a cut. A neighbour of the same kind grows instead where that
// changes nothing for a reader, so that a long clipboard write or a run of
// binary is one cut.
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
	if n := l.blocks.len(); n > 0 {
		b = *l.blocks.at(n - 1)
	}
	if b == nil || b.n > cutWords-maxPacked {
		b = &cutBlock{raw: l.last.start, text: l.last.text, rawEnd: l.last.start}
		l.blocks.push(b)
	}
	words := pack(b.words[:b.n], l.last.start-b.rawEnd, l.last.end-l.last.start, l.last.kind)
	b.n = len(words)
	b.rawEnd, b.textEnd = l.last.end, l.last.text+l.last.textLen()
}

// cutCursor stands at a cut, or behind the last one. It is valid until the list
// changes.
type cutCursor struct {
	cut
	ok   bool // there is a cut
	list *cutList
	at   int // number of the block where the next cut is; behind all blocks is the list's last cut
	next int // word of that block, or 1 behind the last cut
}

// step moves to the next cut.
func (c *cutCursor) step() {
	if c.at == c.list.blocks.len() {
		c.cut, c.ok, c.next = c.list.last, c.list.some && c.next == 0, 1
		return
	}
	b := *c.list.blocks.at(c.at)
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

// find stands at the first cut of which within says true. It must be false for
// all before, and is given the raw and the text offset behind a cut.
func (l *cutList) find(within func(rawEnd, textEnd int64) bool) cutCursor {
	at := sort.Search(l.blocks.len(), func(i int) bool { b := *l.blocks.at(i); return within(b.rawEnd, b.textEnd) })
	c := cutCursor{list: l, at: at}
	for c.step(); c.ok && !within(c.end, c.text+c.textLen()); {
		c.step()
	}
	return c
}

// after stands at the first cut that ends after the raw offset.
func (l *cutList) after(raw int64) cutCursor {
	return l.find(func(end, _ int64) bool { return end > raw })
}

// tail is the position behind the last cut.
func (l *cutList) tail() (raw, text int64) {
	if l.some {
		return l.last.end, l.last.text + l.last.textLen()
	}
	return l.baseRaw, l.baseText
}

// behindSplice is raw, or the end of the cut it lies in if that leaves something
// in its place.
func (l *cutList) behindSplice(raw int64) int64 {
	if c := l.after(raw); c.ok && c.start <= raw && c.kind == cutSplice {
		return c.end
	}
	return raw
}

// textAt maps a raw offset to its text offset. Inside a cut that cannot be
// divided it is the offset of the cut's start.
func (l *cutList) textAt(raw int64) int64 {
	if end, text := l.tail(); raw >= end {
		return text + raw - end
	}
	c := l.after(raw)
	switch {
	case !c.ok: // before all, without any
		return l.baseText + raw - l.baseRaw
	case c.start > raw:
		return c.text - (c.start - raw)
	case c.kind == cutInvalid:
		return c.text + (raw-c.start)*int64(len(replacement))
	}
	return c.text
}

// rawAt maps a text offset to the raw offset it came from, rounded down to
// the start of a stand-in.
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

// trim forgets cuts that end at or before the raw offset, a block at a time.
func (l *cutList) trim(raw int64) {
	n := l.blocksBefore(raw)
	if n > 0 {
		b := *l.blocks.at(n - 1)
		l.baseRaw, l.baseText = b.rawEnd, b.textEnd
		l.blocks.drop(n)
	}
	if l.blocks.len() == 0 && l.some && l.last.end <= raw {
		l.baseRaw, l.baseText = l.tail()
		l.some = false
	}
}

// blocksBefore is the number of blocks whose cuts all end at or before the raw
// offset.
func (l *cutList) blocksBefore(raw int64) int {
	return sort.Search(l.blocks.len(), func(i int) bool { return (*l.blocks.at(i)).rawEnd > raw })
}

// weight is the memory that the cuts behind the raw offset take, in bytes.
func (l *cutList) weight(raw int64) int64 {
	return int64(l.blocks.len()-l.blocksBefore(raw)) * cutBlockCost
}

// cost is the memory that is taken, in bytes.
func (l *cutList) cost() int {
	return l.blocks.len()*(cutBlockCost-8) + l.blocks.cap()*8
}
