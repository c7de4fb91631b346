package term

import (
	"sort"

	"tether/shellint"
)

// View is the form in which a Reader hands out the stream.
type View uint8

const (
	// ViewText is for observers: valid UTF-8, without integration marks,
	// terminal queries and clipboard access. Its offsets are text offsets.
	ViewText View = iota
	// ViewScreen is for the person's own screen: every byte as the child
	// wrote it except integration marks. Its offsets are raw offsets.
	ViewScreen
	// ViewOutward is ViewText as it leaves the machine: some bytes are others, and
	// text is held back for a moment where that is not known. It is for hosts
	// that the terminal is lent to; for others it is ViewText.
	ViewOutward
	// ViewRaw is every byte. Its offsets are raw offsets.
	ViewRaw
)

// isText says whether the view counts text offsets.
func (v View) isText() bool { return v == ViewText || v == ViewOutward }

// cutKind says what stands in a view in place of a cut range.
type cutKind uint8

const (
	cutMark    cutKind = iota // an integration mark: left out of text and screen
	cutSplice                 // the same, with ESC \ left in its place (shellint rule R7b)
	cutHidden                 // a query or clipboard access: left out of text only
	cutHiddenS                // the same, with ESC \ left in its place
	cutInvalid                // bytes that are no UTF-8: each is U+FFFD in text
)

const (
	splice      = "\x1b\\"
	replacement = "\uFFFD"
	// cutCost is the memory of one cut in bytes, counted against a
	// terminal's log so that a stream of nothing but marks stays bounded.
	cutCost = 32
)

// cut is a range of the raw stream that some view does not show as it is.
type cut struct {
	start, end int64 // raw offsets
	text       int64 // text offset of start
	kind       cutKind
}

// cutFor says which view leaves the span out.
func cutFor(s shellint.Span) (cutKind, bool) {
	switch {
	case s.Class == shellint.ClassMark && s.Splice:
		return cutSplice, true
	case s.Class == shellint.ClassMark:
		return cutMark, true
	case s.Class != shellint.ClassQuery && s.Class != shellint.ClassClipboard:
		return 0, false
	case s.Splice:
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

// standIn copies to p what a view that leaves the cut out shows for its raw
// range [pos, end), and returns the new pos and the length. What cannot be
// divided is copied whole or not at all; the rest goes no further than limit.
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

// cutList is the cuts of the retained stream in ascending order, and with
// them the mapping between raw and text offsets.
type cutList struct {
	items queue[cut]
	// A position with the same place in both streams, before the first item.
	baseRaw, baseText int64
}

// add appends a cut. A neighbour of the same kind grows instead where that
// changes nothing for a reader, so that a long clipboard write or a run of
// binary is one item.
func (l *cutList) add(start, end int64, kind cutKind) {
	if n := l.items.len(); n > 0 {
		last := l.items.at(n - 1)
		divisible := kind != cutSplice && kind != cutHiddenS
		if last.end == start && last.kind == kind && divisible {
			last.end = end
			return
		}
	}
	l.items.push(cut{start: start, end: end, text: l.textAt(start), kind: kind})
}

// after returns the index of the first cut that ends after the raw offset.
func (l *cutList) after(raw int64) int {
	return sort.Search(l.items.len(), func(i int) bool { return l.items.at(i).end > raw })
}

// behindSplice is raw, or the end of the cut it lies in if that leaves something
// in its place.
func (l *cutList) behindSplice(raw int64) int64 {
	if i := l.after(raw); i < l.items.len() {
		if c := l.items.at(i); c.start <= raw && c.kind == cutSplice {
			return c.end
		}
	}
	return raw
}

// textAt maps a raw offset to its text offset. Inside a cut that cannot be
// divided it is the offset of the cut's start.
func (l *cutList) textAt(raw int64) int64 {
	i := l.after(raw)
	if i < l.items.len() && l.items.at(i).start <= raw {
		c := l.items.at(i)
		if c.kind == cutInvalid {
			return c.text + (raw-c.start)*int64(len(replacement))
		}
		return c.text
	}
	if i == 0 {
		return l.baseText + raw - l.baseRaw
	}
	c := l.items.at(i - 1)
	return c.text + c.textLen() + raw - c.end
}

// rawAt maps a text offset to the raw offset it came from, rounded down to
// the start of a stand-in.
func (l *cutList) rawAt(text int64) int64 {
	n := l.items.len()
	i := sort.Search(n, func(i int) bool { c := l.items.at(i); return c.text+c.textLen() > text })
	if i < n && l.items.at(i).text <= text {
		c := l.items.at(i)
		if c.kind == cutInvalid {
			return c.start + (text-c.text)/int64(len(replacement))
		}
		return c.start
	}
	if i == 0 {
		return l.baseRaw + text - l.baseText
	}
	c := l.items.at(i - 1)
	return c.end + text - (c.text + c.textLen())
}

// trim forgets the cuts that end at or before the raw offset.
func (l *cutList) trim(raw int64) {
	n := l.after(raw)
	if n == 0 {
		return
	}
	last := l.items.at(n - 1)
	l.baseRaw, l.baseText = last.end, last.text+last.textLen()
	l.items.drop(n)
}
