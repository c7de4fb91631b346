package term

import "tether/agent/redact"

// MarkKind says what happened at a point of the stream.
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
)

// Mark is a point in the stream that is not bytes. What came before it has an
// offset smaller than or equal to Off, what follows a larger or equal one.
type Mark struct {
	Kind    MarkKind
	Off     int64 // raw offset
	Text    string
	Size    Size
	Command Command
	Exit    Exit
}

// mask replaces in its texts what hosts do not see.
func (m *Mark) mask(rules *redact.Rules) {
	m.Text, m.Command.Line = rules.Redact(m.Text), rules.Redact(m.Command.Line)
}

// Bounds of what a child can make the terminal remember beside its output.
const (
	maxTitle = 4 << 10  // bytes; longer titles are cut at a rune
	maxCwd   = 4 << 10  // bytes; PATH_MAX on Linux; longer reports are cut at a rune
	maxLine  = 32 << 10 // bytes of a command line; half of the smallest frame a host must take
	// markCost is the memory of one mark in bytes beside its text, which the
	// log has counted already.
	markCost = 256
	// maxCommands bounds the list behind Handle.Commands; older ones are
	// forgotten first.
	maxCommands = 1000
	// maxLines bounds the command lines in that list, in bytes.
	maxLines = 1 << 20
)

// putMarkLocked appends a mark and folds it into the terminal's state.
// Marks stay in ascending order, whatever offset m claims, and never come
// before text that readers may have seen: one that resumes behind that text
// would miss them. For the same reason a mark whose sequence leaves something in
// its place stands behind that, however the sequence was read.
func (t *Terminal) putMarkLocked(m Mark) {
	t.putSizesLocked(m.Off)
	m.Off = t.stream.markOffset(m.Off)
	if !t.resizedAgainLocked(m) {
		t.stream.marks.push(m)
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

// resizedAgainLocked lets a size take the place of the one right before it.
// A window that is dragged while a reader is away would otherwise push the
// boundaries of commands out of the log. Who has read the old size reads the
// new one.
func (t *Terminal) resizedAgainLocked(m Mark) bool {
	n := t.stream.marks.len()
	if m.Kind != MarkResized || n == 0 {
		return false
	}
	last := t.stream.marks.at(n - 1)
	if last.Kind != MarkResized || last.Off != m.Off {
		return false
	}
	*last = m
	for r := range t.readers.open {
		r.mark = min(r.mark, t.stream.firstMark+int64(n-1))
	}
	return true
}

// slack is how many times its bound a log may take where somebody who may hold
// the child needs it: each byte may have a cut, which takes a little more than
// twice as much. That happens where the next daemon takes up what a holder has.
const slack = 4

// boundLocked keeps what the log holds, with its cuts, marks and masks, within
// its bound: of binary output fewer bytes are retained than of text, for the same
// memory. What is needed from the raw offset on stays: the child is held before
// there is more of it than one read too much.
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

// fitsLocked is the raw offset from which on everything fits the bound.
func (t *Terminal) fitsLocked(limit int) int64 {
	base := t.stream.fits(limit)
	if v := t.lending.redaction; v != nil {
		base = v.fits(base, &t.stream, limit)
	}
	return base
}

// overfullLocked reports whether more bytes have no room beside what lies behind
// a raw offset, with the marks from that number on. It is the measure of
// boundLocked: nobody loses what the child is held for.
func (t *Terminal) overfullLocked(from, mark int64, more, limit int) bool {
	return t.stream.overfull(from, mark, more, limit) || t.lending.redaction.overfull(&t.stream, from, limit)
}
