package term

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"tether/internal/clip"
	"tether/shellint"
)

// ingest records p, which the child has just written. Only take calls it.
func (t *Terminal) ingest(p []byte) {
	t.scanner.Scan(p, &t.result)
	if t.record(p, time.Now()) {
		t.pool.trim()
	}
}

// record appends p, as the scanner has read it, and reports whether the pool keeps too much.
func (t *Terminal) record(p []byte, now time.Time) (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastByte = now
	t.log.Append(p)
	t.appended = true
	t.atRest = t.scanner.AtRest()
	t.recordLocked(now, false)
	t.noteIfDueLocked()
	t.needLocked()
	t.caughtLocked()
	return t.chargeLocked()
}

// endOutput records that nothing follows: what was held back is decided.
func (t *Terminal) endOutput() {
	t.scanner.Close(&t.result)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordLocked(time.Now(), true)
}

// recordLocked turns what the scanner found in the newest bytes into cuts and
// marks, moves the frontiers and wakes the readers.
func (t *Terminal) recordLocked(now time.Time, final bool) {
	for _, s := range t.result.Spans {
		if kind, ok := cutFor(s); ok && !(t.clipboard && s.Class == shellint.ClassClipboard) {
			t.textLocked(s.Start, true)
			t.cuts.add(max(s.Start, t.texted), s.End, kind)
			t.texted = s.End
		}
	}
	t.decided = t.result.Decided
	t.textLocked(t.decided, final)
	events := t.tracker.Feed(&t.result)
	t.putScannedLocked(events, now)
	if t.uncertain(events) {
		t.doubtLocked()
	}
	t.seen = t.texted
	t.veilLocked(now, final)
	t.boundLocked()
	t.wakeLocked()
}

// announceAfter is how long a command whose line is not known may be nothing
// but Enter on an empty line, which shells without line reports write as a
// start and a prompt in one go.
const announceAfter = 20 * time.Millisecond

// uncertain reports whether the newest scan began a command that the tracker
// does not dare to announce.
func (t *Terminal) uncertain(events []shellint.CommandEvent) bool {
	for _, e := range events {
		if e.Kind == shellint.CommandOpened {
			return false
		}
	}
	for i := range t.result.Marks {
		if t.result.Marks[i].Kind == shellint.KindOutputStart {
			return true
		}
	}
	return false
}

// doubtLocked has announce called after announceAfter; a doubt before this
// one is over.
func (t *Terminal) doubtLocked() {
	if t.doubt == nil {
		t.doubt = time.AfterFunc(announceAfter, t.announce)
		return
	}
	t.doubt.Reset(announceAfter)
}

// announce announces a command that is still open after announceAfter.
func (t *Terminal) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exit != nil {
		return
	}
	t.putCommandsLocked(t.tracker.Announce(), time.Now())
	t.wakeLocked()
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

// textLocked decides the text of the raw range [texted, to): it is there as
// it is or, where it is no UTF-8, cut. A character whose bytes may still come
// stays undecided unless final.
func (t *Terminal) textLocked(to int64, final bool) {
	if to <= t.texted {
		return
	}
	t.texted = max(t.texted, t.log.Start())
	seg, rest := t.log.Slices(t.texted, int(to-t.texted))
	if len(rest) > 0 {
		t.joined = append(append(t.joined[:0], seg...), rest...)
		seg = t.joined
	}
	if !final {
		seg = seg[:len(seg)-incomplete(seg)]
	}
	base := t.texted
	t.texted += int64(len(seg))
	if utf8.Valid(seg) {
		return
	}
	for i := 0; i < len(seg); {
		r, size := utf8.DecodeRune(seg[i:])
		if r == utf8.RuneError && size == 1 {
			t.cuts.add(base+int64(i), base+int64(i+1), cutInvalid)
		}
		i += size
	}
}

// incomplete is the number of bytes at the end of p that begin a character
// without finishing it: 0 to 3.
func incomplete(p []byte) int {
	for n := 1; n <= min(3, len(p)); n++ {
		b := p[len(p)-n]
		if utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// putScannedLocked appends the marks of the newest scan in stream order:
// command events and reports are two ascending lists.
func (t *Terminal) putScannedLocked(events []shellint.CommandEvent, now time.Time) {
	if !t.detected && t.tracker.Detected() && len(t.result.Marks) > 0 {
		t.putMarkLocked(Mark{Kind: MarkDetection, Off: t.result.Marks[0].Off})
	}
	for i := range t.result.Marks {
		m := &t.result.Marks[i]
		n := 0
		for n < len(events) && events[n].Off <= m.Off {
			n++
		}
		t.putCommandsLocked(events[:n], now)
		events = events[n:]
		t.putReportLocked(m)
	}
	t.putCommandsLocked(events, now)
}

// putCommandsLocked records command boundaries.
func (t *Terminal) putCommandsLocked(events []shellint.CommandEvent, now time.Time) {
	if len(events) > 0 {
		t.keepLaterLocked()
	}
	for _, e := range events {
		switch e.Kind {
		case shellint.CommandOpened:
			c := Command{N: int(e.ID), Line: lineOf(e), HasLine: e.Source != shellint.SourceNone, Started: now, Start: e.Off}
			t.recallTimesLocked(&c)
			t.putMarkLocked(Mark{Kind: MarkCommandExecuted, Off: e.Off, Command: c})
		case shellint.CommandClosed:
			open := t.commandLocked(int(e.ID))
			if open == nil {
				continue // forgotten: more than maxCommands began since
			}
			c := *open
			c.Done, c.End, c.Duration = true, e.Off, now.Sub(c.Started)
			if e.Exit.Known {
				code := int(e.Exit.Code)
				c.Exit = &code
			}
			t.recallTimesLocked(&c)
			t.putMarkLocked(Mark{Kind: MarkCommandFinished, Off: e.Off, Command: c})
		case shellint.CommandNamed:
			if c := t.commandLocked(int(e.ID)); c != nil && !c.HasLine {
				c.Line, c.HasLine = lineOf(e), true
				t.lineBytes += len(c.Line)
			}
		}
	}
}

// putReportLocked records a title or a trusted directory of this machine.
func (t *Terminal) putReportLocked(m *shellint.Mark) {
	switch m.Kind {
	case shellint.KindTitle:
		if title := t.titleOf(m.Text); title != cmp.Or(t.title, t.name) {
			t.putMarkLocked(Mark{Kind: MarkTitle, Off: m.Off, Text: title})
		}
	case shellint.KindCwd:
		usable := m.Trusted && m.Text != "" && len(m.Text) <= maxCwd && utf8.ValidString(m.Text)
		if usable && t.pool.opts.localHost(m.Host) && m.Text != t.cwd {
			t.putMarkLocked(Mark{Kind: MarkCwd, Off: m.Off, Text: m.Text})
			t.strayLocked()
		}
	}
}

// lineOf is the command line as it is kept: valid UTF-8 of at most maxLine
// bytes, so that no encoder makes it longer than hosts take.
func lineOf(e shellint.CommandEvent) string {
	return clip.Text(strings.ToValidUTF8(e.Line, "\uFFFD"), maxLine)
}
