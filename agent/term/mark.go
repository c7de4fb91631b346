package term

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

// Bounds of what a child can make the terminal remember beside its output.
const (
	maxTitle = 4 << 10  // bytes; longer titles are cut at a rune
	maxCwd   = 4 << 10  // bytes; PATH_MAX on Linux; longer reports are ignored
	maxLine  = 32 << 10 // bytes of a command line; half of the smallest frame a host must take
	// markCost is the memory of one mark in bytes beside its text, which the
	// log has counted already. See Terminal.boundLocked.
	markCost = 256
	// maxCommands bounds the list behind Terminal.Commands; older ones are
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
	m.Off = max(t.cuts.behindSplice(m.Off), t.seen)
	if n := t.marks.len(); n > 0 {
		m.Off = max(m.Off, t.marks.at(n-1).Off)
	}
	if !t.resizedAgainLocked(m) {
		t.marks.push(m)
	}
	switch m.Kind {
	case MarkDetection:
		t.detected = true
	case MarkCommandExecuted:
		t.rememberLocked(m.Command)
	case MarkCommandFinished:
		if c := t.commandLocked(m.Command.N); c != nil {
			*c = m.Command
		}
	case MarkTitle:
		t.title = m.Text
	case MarkCwd:
		t.cwd = m.Text
	case MarkResized:
		t.size = m.Size
	case MarkExited:
		t.exit = &m.Exit
	}
}

// resizedAgainLocked lets a size take the place of the one right before it.
// A window that is dragged while a reader is away would otherwise push the
// boundaries of commands out of the log. Who has read the old size reads the
// new one.
func (t *Terminal) resizedAgainLocked(m Mark) bool {
	n := t.marks.len()
	if m.Kind != MarkResized || n == 0 {
		return false
	}
	last := t.marks.at(n - 1)
	if last.Kind != MarkResized || last.Off != m.Off {
		return false
	}
	*last = m
	for r := range t.readers {
		r.mark = min(r.mark, t.firstMark+int64(n-1))
	}
	return true
}

// rememberLocked adds c to the list of commands.
func (t *Terminal) rememberLocked(c Command) {
	t.commands.push(c)
	t.lineBytes += len(c.Line)
	t.boundCommandsLocked()
}

// boundCommandsLocked forgets the oldest commands beyond the bounds. The last
// one is kept.
func (t *Terminal) boundCommandsLocked() {
	drop, lines := 0, min(maxLines, t.log.Limit())
	for n := t.commands.len(); n-drop > 1 && (n-drop > maxCommands || t.lineBytes > lines); drop++ {
		t.lineBytes -= len(t.commands.at(drop).Line)
	}
	t.commands.drop(drop)
}

// commandLocked finds a remembered command by its number.
func (t *Terminal) commandLocked(n int) *Command {
	for i := t.commands.len() - 1; i >= 0; i-- {
		if c := t.commands.at(i); c.N == n {
			return c
		}
	}
	return nil
}

// runningLocked is a copy of the command that is open at the raw offset, nil
// if there is none.
func (t *Terminal) runningLocked(raw int64) *Command {
	for i := t.commands.len() - 1; i >= 0; i-- {
		c := *t.commands.at(i)
		switch {
		case c.Start > raw:
		case c.Done && c.End <= raw:
			return nil
		default:
			return &c
		}
	}
	return nil
}

// boundLocked keeps cuts and marks within the bound of the log: a stream of
// nothing but tiny sequences is retained for less bytes, not for more memory.
func (t *Terminal) boundLocked() {
	base := t.log.Start()
	if over := t.cuts.items.len() - t.log.Limit()/cutCost; over > 0 {
		base = max(base, t.cuts.items.at(over-1).end)
	}
	if over := t.marks.len() - t.log.Limit()/markCost; over > 0 {
		base = max(base, t.marks.at(over-1).Off+1)
	}
	base = min(t.boundVeilLocked(base), t.texted)
	t.log.Trim(base)
	t.cuts.trim(base)
	t.trimVeilLocked(base)
	n := 0
	for n < t.marks.len() && (t.marks.at(n).Off < base || t.marks.len()-n > t.log.Limit()/markCost) {
		n++
	}
	t.marks.drop(n)
	t.firstMark += int64(n)
}
