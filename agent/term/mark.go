package term

import (
	"tether/agent/redact"
	"tether/vocab"
)

// MarkKind is the kind of event at a point of the stream.
type MarkKind uint8

// The marks of a terminal, in the words of the protocol's actions.
const (
	MarkDetection       MarkKind = iota + 1 // terminal/commandDetectionAvailable
	MarkCommandExecuted                     // Command is set
	MarkCommandFinished                     // Command is set, with its exit code and duration
	MarkTitle                               // Text is the new title
	MarkCwd                                 // Text is the new directory, an absolute path
	MarkResized                             // Size is set
	MarkExited                              // Exit is set; the last event of a terminal
	MarkCleared                             // the output before it was forgotten: terminal/cleared
)

// Mark is an event between bytes of the stream. Earlier items have offsets smaller than
// or equal to Off, later ones larger or equal.
type Mark struct {
	Kind    MarkKind
	Off     int64 // raw offset
	Text    string
	Size    Size
	Command vocab.Command
	Exit    vocab.Exit
}

// Offset returns Off.
func (m Mark) Offset() int64 { return m.Off }

// mask masks the texts in m for hosts.
func (m *Mark) mask(rules *redact.Rules) {
	m.Text = rules.Redact(m.Text)
	m.Command.Show(rules.Redact)
}

// Bounds of the state, besides its output, that a child can make the terminal remember.
const (
	maxTitle = 4 << 10  // bytes; longer titles are cut at a rune
	maxCwd   = 4 << 10  // bytes; PATH_MAX on Linux; longer reports are cut at a rune
	maxLine  = 32 << 10 // bytes of a command line; half of the smallest frame that a host must accept
	// markCost is the memory of one mark in bytes, without its text, which is counted
	// with the log.
	markCost = 256
	// maxCommands bounds the list behind Handle.Commands; older ones are forgotten first.
	maxCommands = 1000
	// maxLines bounds the command lines in that list, in bytes.
	maxLines = 1 << 20
)

// putMarkLocked appends a mark and applies it to the terminal's state. Whatever the
// offset in m, marks stay in ascending order and never come before text that readers may
// have seen: a reader that resumes behind that text would miss them. For the same reason,
// a mark whose sequence has a replacement comes behind the replacement, however the
// sequence was split.
func (t *Terminal) putMarkLocked(m Mark) {
	t.putSizesLocked(m.Off)
	m.Off = t.stream.markOffset(m.Off)
	if !t.resizedAgainLocked(m) {
		t.stream.marks.Add(m)
	}
	switch m.Kind {
	case MarkDetection:
		t.commands.detected = true
	case MarkCommandExecuted:
		t.commands.remember(m.Command, t.stream.log.Limit())
	case MarkCommandFinished:
		if c := t.commands.find(m.Command.N); c != nil {
			*c = m.Command
		}
	case MarkTitle:
		t.display.title = m.Text
	case MarkCwd:
		t.display.cwd = m.Text
	case MarkResized:
		t.display.size = m.Size
	case MarkExited:
		t.ending.exit = &m.Exit
	}
}

// resizedAgainLocked replaces the last mark if that is a size, with no output after it.
// Otherwise a window that is dragged while a reader is away would push the boundaries of
// commands out of the log. A reader that has read the old size also reads the new one.
func (t *Terminal) resizedAgainLocked(m Mark) bool {
	marks := &t.stream.marks
	if m.Kind != MarkResized || marks.Len() == 0 {
		return false
	}
	last := marks.At(marks.End() - 1)
	if last.Kind != MarkResized || last.Off != m.Off {
		return false
	}
	*last = m
	for r := range t.readers.open {
		r.mark = min(r.mark, marks.End()-1)
	}
	return true
}

// slack is the factor by which a log may exceed its bound if a reader that may hold the
// child needs it. Each byte may have a cut, which takes a little more than two bytes.
// That happens when the next daemon adopts a holder's output.
const slack = 4

// boundLocked trims the log, with its cuts, marks and masks, to its bound. Since cuts
// count, fewer bytes of binary output are kept than of text. Output from the raw offset
// needed on stays: the child is held before that exceeds the bound by more than one read.
func (t *Terminal) boundLocked(needed int64) {
	limit := t.stream.log.Limit()
	base := t.fitsLocked(limit)
	if needed < base {
		limit *= slack
		base = max(needed, t.fitsLocked(limit))
	}
	base = min(base, t.stream.texted)
	t.stream.trim(base, limit)
	if v := t.lending.redaction; v != nil {
		v.trim(t.stream.cuts.textAt(base))
	}
}

// fitsLocked returns the raw offset from which on everything fits the bound.
func (t *Terminal) fitsLocked(limit int) int64 {
	base := t.stream.fits(limit)
	if v := t.lending.redaction; v != nil {
		base = v.fits(base, &t.stream, limit)
	}
	return base
}

// overfullLocked reports whether more bytes would exceed the bound together with the
// output from a raw offset on and the marks from that number on. boundLocked uses the
// same measure, so that no reader loses output for which the child is held.
func (t *Terminal) overfullLocked(from, mark int64, more, limit int) bool {
	return t.stream.overfull(from, mark, more, limit) || t.lending.redaction.overfull(&t.stream, from, limit)
}
