package shellint

// Tracker makes commands of the marks of one terminal. It is pure: no clock, no I/O. The zero value is ready. It is not
// safe for concurrent use; the slices it returns are valid until its next method call.
//
// A command opens at a C and closes at the next D; a prompt or another C closes it without an exit code. It is announced only
// when it is certain that it is a command: at C if its line is known and not empty, else at the first byte of output, at D,
// or at the end of the stream. So Enter on an empty line, which some shells report as C and prompt, is never seen.
//
// Only trusted marks of OSC 133 and 633 count, and those of 133 only until the first command mark of 633. While a command
// is open whose C had an aid, marks of 133 with another aid are those of a shell inside it and do not count.
type Tracker struct {
	// Eager announces every command at its C.
	Eager bool

	detected bool
	use633   bool  // a command mark of OSC 633 was seen
	seen     int64 // raw offset up to which Feed has looked
	ids      int64

	pending line    // the last E that no C and no prompt followed
	cur     command // the open command
	last    command // the command that closed last, until the next prompt
	input   typed   // what was written to the terminal
	events  []CommandEvent
}

// line is a command line from one source.
type line struct {
	text   string
	source LineSource
}

// command is one command between its C and its D.
type command struct {
	open      bool
	announced bool
	id        int64
	start     int64
	line      line
	aid       string
}

// Feed handles a whole Result in stream order: its marks, and the plain output between them. Bytes in a Span of any
// class are no output.
func (t *Tracker) Feed(r *Result) []CommandEvent {
	t.events = t.events[:0]
	spans := r.Spans
	for i := range r.Marks {
		m := &r.Marks[i]
		spans = t.plainUntil(m.Off, spans)
		t.mark(m)
	}
	t.plainUntil(r.Decided, spans)
	return t.events
}

// plainUntil looks for plain output before raw offset end. It returns the spans that it did not need.
func (t *Tracker) plainUntil(end int64, spans []Span) []Span {
	for len(spans) > 0 && t.seen < end {
		next := spans[0]
		if next.Start >= end {
			break
		}
		if t.seen < next.Start {
			t.announce()
		}
		t.seen = max(t.seen, next.End)
		spans = spans[1:]
	}
	if t.seen < end {
		t.announce()
		t.seen = end
	}
	return spans
}

// Announce opens the pending command, if any, although nothing proves it yet. A caller uses it some milliseconds after a
// C that has no line and no output, as "sleep 100" under a shell that reports no lines.
func (t *Tracker) Announce() []CommandEvent {
	t.events = t.events[:0]
	t.announce()
	return t.events
}

// Input tells what is written to the terminal, the source of last resort for a command line. No byte of it is kept once
// a command opens.
func (t *Tracker) Input(p []byte) { t.input.write(p) }

// Close closes an open command at the end of the stream, off, with the exit status of the process.
func (t *Tracker) Close(off int64, exit Exit) []CommandEvent {
	t.events = t.events[:0]
	t.announce()
	t.close(off, exit, ClosedByEOF)
	return t.events
}

// Detected says whether a trusted OSC 133 or 633 was seen, so that commands can be expected.
func (t *Tracker) Detected() bool { return t.detected }

func (t *Tracker) mark(m *Mark) {
	if !m.integration() || !m.Trusted {
		return
	}
	t.detected = true
	if t.superseded(m) || t.inner(m) {
		return
	}
	switch m.Kind {
	case KindPromptStart:
		t.close(m.Off, Exit{}, ClosedByPrompt)
		t.forget()
		t.input.prompt()
	case KindPromptEnd:
		t.forget()
		t.input.ready()
	case KindLine:
		t.lineMark(m)
	case KindOutputStart:
		t.outputStart(m)
	case KindCommandEnd:
		if t.cur.open {
			t.announce()
			t.close(m.Off, m.Exit, ClosedByEnd)
		}
		t.input.prompt()
	}
}

// superseded notes that OSC 633 is in use and says whether m is an OSC 133 beside it.
func (t *Tracker) superseded(m *Mark) bool {
	if m.PS == 133 {
		return t.use633
	}
	switch m.Kind {
	case KindPromptStart, KindPromptEnd, KindLine, KindOutputStart, KindCommandEnd:
		t.use633 = true
	}
	return false
}

// inner says whether m comes from a shell inside the open command.
func (t *Tracker) inner(m *Mark) bool {
	if !t.cur.open || t.cur.aid == "" || m.PS != 133 {
		return false
	}
	aid, ok := m.Opt("aid")
	return ok && aid != t.cur.aid
}

// forget drops what a prompt makes stale.
func (t *Tracker) forget() {
	t.pending = line{}
	t.last = command{}
}

// lineMark keeps the line for the next C, and gives it to the command that just closed without one.
func (t *Tracker) lineMark(m *Mark) {
	t.pending = line{text: m.Text, source: SourceLine}
	if t.last.announced && t.last.line.source == SourceNone && m.Text != "" {
		t.last.line = line{text: m.Text, source: SourceLate}
		t.events = append(t.events, CommandEvent{
			Kind: CommandNamed, ID: t.last.id, Off: m.Off, Line: m.Text, Source: SourceLate,
		})
	}
}

func (t *Tracker) outputStart(m *Mark) {
	t.close(m.Off, Exit{}, ClosedByOutput)
	l := t.pending
	typed, ok := t.input.take()
	switch {
	case l.source != SourceNone:
	case m.HasText:
		l = line{text: m.Text, source: SourceOption}
	case ok:
		l = line{text: typed, source: SourceInput}
	}
	t.forget()
	if l.source == SourceLine && l.text == "" {
		return // Enter on an empty line
	}
	aid, _ := m.Opt("aid")
	t.cur = command{open: true, start: m.End, line: l, aid: aid}
	if t.Eager || l.text != "" {
		t.announce()
	}
}

// announce reports the open command if that was not done.
func (t *Tracker) announce() {
	if !t.cur.open || t.cur.announced {
		return
	}
	t.ids++
	t.cur.announced, t.cur.id = true, t.ids
	t.events = append(t.events, t.cur.event(CommandOpened, t.cur.start))
}

// close ends the open command, if any; one that was never announced goes without a word.
func (t *Tracker) close(off int64, exit Exit, why CloseReason) {
	if !t.cur.open {
		return
	}
	t.last, t.cur = t.cur, command{}
	if !t.last.announced {
		return
	}
	e := t.last.event(CommandClosed, off)
	e.Exit, e.Reason = exit, why
	t.events = append(t.events, e)
}

func (c *command) event(kind EventKind, off int64) CommandEvent {
	return CommandEvent{Kind: kind, ID: c.id, Off: off, Line: c.line.text, Source: c.line.source}
}
