package attach

import (
	"time"

	"tether/internal/escape"
)

// escapes detects the keys for tether itself: at the start of a line, ~. detaches, ~?
// shows help and ~~ types one ~. Everything else passes; a ~ at the start of a line is
// held back until the next key. Within a bracketed paste everything passes. It is a pure
// state machine: pieces of any size give the same result.
//
// Programs may have switched on other forms of keys (see decode), and releases of keys,
// which do not count.
type escapes struct {
	state escapeState
	held  []byte // the ~ that is held back, in its form, and what does not count behind it

	scan   escape.Scanner
	seq    []byte // of the sequence that has begun
	sent   int    // how many bytes of seq have passed already
	plain  bool   // the last key was plain text, and so will be a ~
	coded  bool   // a program has switched on other forms of keys
	paste  bool   // within a bracketed paste
	ending int    // how many bytes of endOfPaste have come
}

type escapeState uint8

const (
	atLineStart escapeState = iota // nothing was typed yet, or Enter was the last
	afterTilde                     // a ~ at the start of a line is held back
	inLine
)

// escapeAction is the action that the person requested.
type escapeAction uint8

const (
	escapeNone escapeAction = iota
	escapeDetach
	escapeHelp
)

const escapeHelpText = "at the start of a line:\r\n  ~.  detach, the terminal keeps running\r\n  ~~  type one ~\r\n  ~?  show this help\r\n"

const (
	endOfPaste = "\x1b[201~"
	// maxHeldKeys bounds what is held back, in bytes. A key has up to 50.
	maxHeldKeys = 512
)

// feed appends the typed bytes for the terminal to dst. With escapeDetach or escapeHelp,
// rest is the part of typed that was not processed.
func (e *escapes) feed(dst, typed []byte) (send []byte, action escapeAction, rest []byte) {
	for i, c := range typed {
		if e.paste {
			dst = append(dst, c)
			e.pasted(c)
			continue
		}
		kind := e.scan.Next(c)
		if kind == escape.Text && len(e.seq) > 0 { // an ESC before a character that is not ASCII
			dst, _ = e.key(dst, key{kind: keyOther})
		}
		if e.seq = append(e.seq, c); kind != escape.Text && !e.scan.Outside() {
			if len(e.seq)+len(e.held) > maxHeldKeys || !e.holds() {
				dst = e.give(dst)
			}
			continue
		}
		if dst, action = e.key(dst, e.read(kind, c)); action != escapeNone {
			return dst, action, typed[i+1:]
		}
	}
	return dst, escapeNone, nil
}

// read returns the key that ends with the byte c.
func (e *escapes) read(kind escape.Kind, c byte) key {
	switch {
	case kind == escape.Text, c == '\r', c == '\n': // also behind an ESC
		return key{text: rune(c), plain: true}
	case kind == escape.Control:
		return decode(string(e.scan.Params()), c)
	case len(e.seq) > 2: // a string: a terminal's answer
		return key{kind: keyNone}
	}
	return key{kind: keyOther}
}

// holds reports whether the sequence that has begun may be one of tether's keys.
func (e *escapes) holds() bool {
	return e.state == afterTilde || e.state == atLineStart && (e.coded || !e.plain)
}

// give lets the part of seq pass that is held back.
func (e *escapes) give(dst []byte) []byte {
	if e.state == afterTilde {
		dst, e.held, e.state = append(dst, e.held...), e.held[:0], inLine
	}
	dst = append(dst, e.seq[e.sent:]...)
	e.sent = len(e.seq)
	return dst
}

// key takes a key, whose bytes are in seq.
func (e *escapes) key(dst []byte, k key) ([]byte, escapeAction) {
	defer func() { e.seq, e.sent = e.seq[:0], 0 }()
	if k.kind == keyNone {
		if e.state == afterTilde {
			e.held = append(e.held, e.seq[e.sent:]...)
			return dst, escapeNone
		}
		return append(dst, e.seq[e.sent:]...), escapeNone
	}
	e.plain = k.plain
	if e.state == afterTilde {
		e.state = inLine
		switch k.text {
		case '.':
			return dst, escapeDetach
		case '?':
			e.state = atLineStart
			return dst, escapeHelp
		case '~':
			return append(dst, e.seq...), escapeNone
		}
		dst = append(dst, e.held...)
	}
	switch {
	case k.kind == keyPaste:
		e.paste, e.ending, e.state = true, 0, inLine
	case k.text == '\r' || k.text == '\n':
		e.state = atLineStart
	case k.text == '~' && e.state == atLineStart && e.sent == 0:
		e.state, e.held = afterTilde, append(e.held[:0], e.seq...)
		return dst, escapeNone
	default:
		e.state = inLine
	}
	return append(dst, e.seq[e.sent:]...), escapeNone
}

// pasted looks for the end of a paste.
func (e *escapes) pasted(c byte) {
	switch {
	case c == endOfPaste[e.ending]:
		e.ending++
	case c == endOfPaste[0]:
		e.ending = 1
	default:
		e.ending = 0
	}
	if e.ending == len(endOfPaste) {
		e.paste, e.ending = false, 0
	}
}

const (
	// pasteEnds is how long after its last byte a paste without an end counts as ended.
	pasteEnds = 2 * time.Second
	// sequenceEnds is how long after its last byte a sequence without an end is a key and
	// not the beginning of one: Esc, or Alt and a bracket.
	sequenceEnds = 50 * time.Millisecond
)

// patience is how long after the last byte lapse is due; 0 is never.
func (e *escapes) patience() time.Duration {
	switch {
	case e.paste:
		return pasteEnds
	case len(e.seq) > 0:
		return sequenceEnds
	}
	return 0
}

// lapse appends to dst what passes because nothing was typed for a while.
func (e *escapes) lapse(dst []byte) []byte {
	if e.paste {
		e.paste, e.ending = false, 0
		return dst
	}
	dst, _ = e.key(dst, key{kind: keyOther})
	e.scan = escape.Scanner{}
	return dst
}
