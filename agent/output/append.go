package output

import (
	"cmp"
	"strings"
	"time"

	"tether/internal/clip"
	"tether/shellint"
	"tether/vocab"
)

// Bounds of the state, besides its output, that a child can make the log remember.
const (
	maxTitle = 4 << 10  // bytes; longer titles are cut at a rune
	maxCwd   = 4 << 10  // bytes; PATH_MAX on Linux; longer reports are cut at a rune
	maxLine  = 32 << 10 // bytes of a command line; half of the smallest frame that a host must accept
	// maxCommands bounds the list behind Log.Commands; older ones are forgotten first.
	maxCommands = 1000
	// maxLines bounds the command lines in that list, in bytes.
	maxLines = 1 << 20
)

// Append adds output of the child. One goroutine at a time may append. Append scans p
// without the lock, and takes it for the rest. If a panic occurs, which is a bug of ours,
// p and all output before it become a gap, see Bug.
func (l *Log) Append(p []byte, now time.Time) {
	appended := false
	defer l.survive(p, &appended)
	l.scanner.Scan(p, &l.found)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.printed = now
	l.leave(l.log.End() + int64(len(p)-l.log.Limit())) // the screen takes what is dropped
	l.log.Append(p)
	l.atRest, appended = l.scanner.AtRest(), true
	l.understand(now, false)
	l.noteIfDue()
	l.storeScreens()
	l.owner.Appended(&l.found, now)
	l.EndRestore()
	l.wake()
}

// Finish records the end of output: bytes that the scanner has not judged yet are
// decided. It takes the lock, and survives a panic as Append does.
func (l *Log) Finish(now time.Time) {
	appended := true
	defer l.survive(nil, &appended)
	l.scanner.Close(&l.found)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = true
	l.understand(now, true)
	l.wake()
}

// Lose records that the output of a raw range, which begins at the log's end, is missing.
// All readers lose their place. It takes the lock. Only the goroutine that appends calls
// it.
func (l *Log) Lose(from, to int64, now time.Time) {
	l.scanner.Close(&l.found)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.understand(now, true)
	l.lost += to - from
	l.begin(to, l.cuts.textAt(from)+to-from)
	l.Note()
	l.EndRestore()
	l.wake()
}

// understand turns what the scanner has found in the newest bytes into cuts, commands and
// marks, which readers may have from then on, redacts the text, and bounds the log. final
// says that no more output follows.
func (l *Log) understand(now time.Time, final bool) {
	l.decide(final)
	events := l.history.tracker.Feed(&l.found)
	l.markFound(events, now)
	l.markSizes(l.texted)
	if l.doubts(events) {
		l.announceLater()
	}
	l.seen = l.texted // no mark is added before it any more
	l.redact(now, final)
	l.bound(l.Needed())
}

// doubts reports whether the last scan saw the start of a command's output that the
// tracker, being unsure of it, did not announce.
func (l *Log) doubts(events []shellint.CommandEvent) bool {
	for _, e := range events {
		if e.Kind == shellint.CommandOpened {
			return false
		}
	}
	for i := range l.found.Marks {
		if l.found.Marks[i].Kind == shellint.KindOutputStart {
			return true
		}
	}
	return false
}

// markFound adds the marks of the last scan in stream order. It merges two ascending
// lists: command events and reports.
func (l *Log) markFound(events []shellint.CommandEvent, now time.Time) {
	if !l.history.detected && l.history.tracker.Detected() && len(l.found.Marks) > 0 {
		l.mark(Mark{Kind: MarkDetection, Off: l.found.Marks[0].Off})
	}
	for i := range l.found.Marks {
		m := &l.found.Marks[i]
		n := 0
		for n < len(events) && events[n].Off <= m.Off {
			n++
		}
		l.markCommands(events[:n], now)
		events = events[n:]
		l.markReport(m)
	}
	l.markCommands(events, now)
}

// markReport records a title, the size of a pane, or a directory that the shell reports
// in a trusted way and that is on this machine.
func (l *Log) markReport(m *shellint.Mark) {
	switch m.Kind {
	case shellint.KindTitle:
		title := clip.Text(strings.ToValidUTF8(m.Text, "\uFFFD"), maxTitle)
		if l.opts.IsName(title) {
			title = l.opts.Name
		}
		if title != cmp.Or(l.title, l.opts.Name) {
			l.mark(Mark{Kind: MarkTitle, Off: m.Off, Text: title})
		}
	case shellint.KindSize:
		cols, rows := m.Size()
		if size := (Size{Cols: uint16(cols), Rows: uint16(rows)}); l.opts.Pane && ValidSize(size) && size != l.size {
			l.mark(Mark{Kind: MarkResized, Off: m.Off, Size: size})
		}
	case shellint.KindCwd:
		// A directory that is cut off or has bytes that are not text still lies in its
		// first part, and a rule may forbid lending there.
		dir := clip.Text(strings.ToValidUTF8(m.Text, "\uFFFD"), maxCwd)
		if m.Trusted && dir != "" && l.opts.IsHere(m.Host) && dir != l.cwd {
			l.mark(Mark{Kind: MarkCwd, Off: m.Off, Text: dir})
		}
	}
}

// mark adds a mark, applies it to the log's state, and tells the owner. See put for its
// offset. A reader that has read a size also reads the one that replaces it.
func (l *Log) mark(m Mark) {
	l.markSizes(m.Off)
	n := l.put(m)
	for r := range l.readers.open {
		r.mark = min(r.mark, n)
	}
	switch m.Kind {
	case MarkDetection:
		l.history.detected = true
	case MarkCommandExecuted:
		l.history.remember(m.Command, l.log.Limit())
	case MarkCommandFinished:
		if c := l.history.find(m.Command.N); c != nil {
			*c = m.Command
		}
	case MarkTitle:
		l.title = m.Text
	case MarkCwd:
		l.cwd = m.Text
	case MarkResized:
		l.size = m.Size
	case MarkExited:
		l.exited = true
	}
	l.owner.Marked(&m)
}

// Resized records a size that the terminal has from now on.
func (l *Log) Resized(s Size) {
	l.mark(Mark{Kind: MarkResized, Off: l.texted, Size: s})
	l.bound(l.Needed())
	l.wake()
}

// Exit records the exit behind all output, and the end of the commands that still run;
// known says that the code is that of the child.
func (l *Log) Exit(exit vocab.Exit, known bool) {
	events := l.history.tracker.Close(l.log.End(), shellint.Exit{Code: int64(exit.Code), Known: known})
	l.markCommands(events, exit.At)
	l.mark(Mark{Kind: MarkExited, Off: l.texted, Exit: exit})
	l.wake()
}

// Clear forgets the output before a text offset, as far as it is decided, the commands
// that had ended there, and screens for the holder. Unless the child has exited, readers
// are told by a mark. It returns the raw offset of the oldest output that is kept, at
// which the holder then has a checkpoint if Noted says so; some is false if there was
// nothing to forget.
func (l *Log) Clear(text int64) (raw int64, some bool) {
	raw = min(max(l.cuts.rawAt(min(text, l.cuts.textAt(l.texted))), l.log.Start()), l.texted)
	if v := l.redaction; v != nil && !v.lazy {
		raw = max(min(raw, v.frontier), l.log.Start())
	}
	if raw == l.log.Start() {
		return raw, false
	}
	l.Note() // the next daemon begins there
	l.trim(raw, l.log.Limit())
	l.oldest.kept, l.screens = nil, nil
	l.history.forget(raw, l.log.Limit())
	if !l.exited {
		l.mark(Mark{Kind: MarkCleared, Off: raw})
	}
	l.wake()
	return raw, true
}
