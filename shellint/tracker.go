package shellint

// Tracker derives commands from the marks of one terminal. It is pure: no clock, no I/O.
// The zero value is ready. It is not safe for concurrent use. The slices that its methods
// return are valid until the next method call.
//
// A command opens at a C and closes at the next D; a prompt or another C closes it
// without an exit code. It is announced as soon as it is certainly a command: at C if its
// line is known and not empty, else at the first byte of output, at D, or at the end of
// the stream. So Enter on an empty line, which some shells report as C and prompt, makes
// no command.
//
// Only marks of OSC 133 and 633 count, and those of 133 only until the first command mark
// of 633. If the C of the open command had an aid, marks of 133 with another aid come
// from a shell inside that command and do not count.
//
// Trusted marks always count. Unsigned marks, those that are not trusted, never change a
// command of trusted marks. They count only with Unsigned, and then in two cases: before
// the first trusted mark, and while a trusted command is open in which an unsigned prompt
// was seen, such as the prompt of a shell in ssh or a container. Without that prompt they
// are a second report of the same shell, as fish 4 makes. A trusted prompt, C or D closes
// the command of unsigned marks.
type Tracker struct {
	// Eager announces every command at its C, unless the line is known to be empty.
	Eager bool
	// Unsigned derives commands from unsigned marks, too. They are not Verified.
	Unsigned bool
	// Reader says that trusted marks are those of the reader of an adopted pane, which
	// say nothing of commands: only unsigned ones do.
	Reader bool

	trusted  bool  // a trusted mark was seen
	detected bool  // a mark that counts was seen
	inside   bool  // an unsigned prompt was seen since the trusted command opened
	seen     int64 // raw offset up to which Feed has looked
	ids      int64

	signed, unsigned lane
	events           []CommandEvent
}

// lane is the state that follows from either the trusted marks or the unsigned ones.
type lane struct {
	use633  bool    // a command mark of OSC 633 was seen
	pending line    // the line of the last E, if neither a C nor a prompt has followed
	cur     command // the open command
	last    command // the command that closed last, until the next prompt
	input   typed   // the bytes written to the terminal, divided by its prompts
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
	verified  bool
	within    int64 // id of the trusted command in which it runs, 0 for none
	id        int64
	start     int64
	line      line
	aid       string
}

// Feed handles a whole Result in stream order: its marks, and the plain output between
// them. Bytes in Spans are no output.
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

// plainUntil announces the open commands if there is plain output between t.seen and the
// raw offset end. It returns the spans at or after end.
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

// Announce announces the open commands, although nothing proves them yet. A caller calls
// it some milliseconds after a C without a line and without output, such as "sleep 100"
// under a shell that reports no lines.
func (t *Tracker) Announce() []CommandEvent {
	t.events = t.events[:0]
	t.announce()
	return t.events
}

// Input takes bytes written to the terminal, from which Tracker derives a command line if
// it has no other source. It drops them when a command opens.
func (t *Tracker) Input(p []byte) {
	t.signed.input.write(p)
	if t.Unsigned {
		t.unsigned.input.write(p)
	}
}

// Close closes the open commands at off, the end of the stream, with the exit code of the
// process. A command inside another one gets no exit code, because the code belongs to
// the outer one.
func (t *Tracker) Close(off int64, exit Exit) []CommandEvent {
	t.events = t.events[:0]
	t.announce()
	if t.signed.cur.open {
		t.close(&t.unsigned, off, Exit{}, ClosedByEOF)
	}
	t.close(&t.unsigned, off, exit, ClosedByEOF)
	t.close(&t.signed, off, exit, ClosedByEOF)
	return t.events
}

// Detected reports whether an OSC 133 or 633 that counts was seen, so commands can be
// expected.
func (t *Tracker) Detected() bool { return t.detected }

func (t *Tracker) mark(m *Mark) {
	if !m.integration() || !t.counts(m) {
		return
	}
	t.detected = true
	l := &t.unsigned
	if m.Trusted {
		l, t.trusted = &t.signed, true
	}
	if l.superseded(m) || l.inner(m) {
		return
	}
	if m.Trusted {
		t.endInside(m)
	}
	switch m.Kind {
	case KindPromptStart:
		t.close(l, m.Off, Exit{}, ClosedByPrompt)
		l.forget()
		l.input.prompt()
	case KindPromptEnd:
		l.forget()
		l.input.ready()
	case KindLine:
		t.lineMark(l, m)
	case KindOutputStart:
		t.outputStart(l, m)
	case KindCommandEnd:
		t.announceIn(l)
		t.close(l, m.Off, m.Exit, ClosedByEnd)
		l.input.prompt()
	}
}

// counts reports whether m may make commands.
func (t *Tracker) counts(m *Mark) bool {
	switch {
	case m.Trusted:
		return !t.Reader
	case !t.Unsigned || t.trusted && !t.signed.cur.open:
		return false
	case !t.trusted:
		return true
	}
	t.inside = t.inside || m.Kind == KindPromptStart || m.Kind == KindPromptEnd
	return t.inside
}

// endInside closes the command of unsigned marks if m shows that the outer shell, which
// writes trusted marks, runs again.
func (t *Tracker) endInside(m *Mark) {
	switch m.Kind {
	case KindPromptStart, KindOutputStart, KindCommandEnd:
		t.close(&t.unsigned, m.Off, Exit{}, ClosedByOutside)
		t.unsigned.input.restart()
		t.unsigned, t.inside = lane{input: t.unsigned.input}, false
	}
}

// superseded records that OSC 633 is in use, and reports whether m is an OSC 133 although
// it is.
func (l *lane) superseded(m *Mark) bool {
	if m.PS == 133 {
		return l.use633
	}
	switch m.Kind {
	case KindPromptStart, KindPromptEnd, KindLine, KindOutputStart, KindCommandEnd:
		l.use633 = true
	}
	return false
}

// inner reports whether m comes from a shell inside the open command.
func (l *lane) inner(m *Mark) bool {
	if !l.cur.open || l.cur.aid == "" || m.PS != 133 {
		return false
	}
	aid, ok := m.Opt("aid")
	return ok && aid != l.cur.aid
}

// forget drops state that a prompt makes stale.
func (l *lane) forget() {
	l.pending = line{}
	l.last = command{}
}

// lineMark keeps the line for the next C. If the last command closed without a line, the
// line names it.
func (t *Tracker) lineMark(l *lane, m *Mark) {
	l.pending = line{text: m.Text, source: SourceLine}
	if l.last.announced && l.last.line.source == SourceNone && m.Text != "" {
		l.last.line = line{text: m.Text, source: SourceLate}
		t.events = append(t.events, l.last.event(CommandNamed, m.Off))
	}
}

func (t *Tracker) outputStart(l *lane, m *Mark) {
	t.close(l, m.Off, Exit{}, ClosedByOutput)
	text := l.pending
	typed, ok := l.input.take()
	switch {
	case text.source != SourceNone:
	case m.HasText:
		text = line{text: m.Text, source: SourceOption}
	case ok:
		text = line{text: typed, source: SourceInput}
	}
	l.forget()
	if text.source == SourceLine && text.text == "" {
		return // Enter on an empty line
	}
	aid, _ := m.Opt("aid")
	l.cur = command{open: true, verified: m.Trusted, start: m.End, line: text, aid: aid}
	if t.Eager || text.text != "" {
		t.announceIn(l)
	}
}

// announce reports the open commands that were not announced yet.
func (t *Tracker) announce() {
	t.announceIn(&t.signed)
	t.announceIn(&t.unsigned)
}

// announceIn reports the open command of l if it was not announced yet. A command inside
// an outer command that was not announced has to wait.
func (t *Tracker) announceIn(l *lane) {
	c, outer := &l.cur, &t.signed.cur
	if !c.open || c.announced || c != outer && outer.open && !outer.announced {
		return
	}
	t.ids++
	c.announced, c.id = true, t.ids
	if c != outer && outer.open {
		c.within = outer.id
	}
	t.events = append(t.events, c.event(CommandOpened, c.start))
}

// close ends the open command of l, if any. A command that was never announced ends
// without an event.
func (t *Tracker) close(l *lane, off int64, exit Exit, why CloseReason) {
	if !l.cur.open {
		return
	}
	l.last, l.cur = l.cur, command{}
	if !l.last.announced {
		return
	}
	e := l.last.event(CommandClosed, off)
	e.Exit, e.Reason = exit, why
	t.events = append(t.events, e)
}

func (c *command) event(kind EventKind, off int64) CommandEvent {
	return CommandEvent{Kind: kind, ID: c.id, Off: off, Line: c.line.text, Source: c.line.source, Verified: c.verified, Within: c.within}
}
