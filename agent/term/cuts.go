package term

import "tether/shellint"

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
	// ViewRaw is every byte, for the person; for others it is ViewScreen. Its
	// offsets are raw offsets.
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
