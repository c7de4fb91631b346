package term

import (
	"cmp"
	"strings"
	"time"

	"tether/internal/clip"
	"tether/shellint"
)

// intake is what reads the child's output. It belongs to the pump, and to run
// after it, and needs no lock.
type intake struct {
	scanner  *shellint.Scanner
	result   shellint.Result // of the newest scan
	appended bool            // what is being read is in the log
	moved    int             // bytes since the last look
}

// uncertain reports whether the newest scan began a command that the tracker
// does not dare to announce.
func (in *intake) uncertain(events []shellint.CommandEvent) bool {
	for _, e := range events {
		if e.Kind == shellint.CommandOpened {
			return false
		}
	}
	for i := range in.result.Marks {
		if in.result.Marks[i].Kind == shellint.KindOutputStart {
			return true
		}
	}
	return false
}

// ingest records p, which the child has just written. Only take calls it.
func (t *Terminal) ingest(p []byte) {
	t.intake.scanner.Scan(p, &t.intake.result)
	if t.record(p, time.Now()) {
		t.pool.trim()
	}
}

// record appends p, as the scanner has read it, and reports whether the pool keeps too much.
func (t *Terminal) record(p []byte, now time.Time) (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.activity.printed = now
	t.stream.log.Append(p)
	t.intake.appended = true
	t.stream.atRest = t.intake.scanner.AtRest()
	t.recordLocked(now, false)
	t.noteIfDueLocked()
	t.needLocked()
	t.paceLocked()
	t.caughtLocked()
	return t.chargeLocked()
}

// endOutput records that nothing follows: what was held back is decided.
func (t *Terminal) endOutput() {
	t.intake.scanner.Close(&t.intake.result)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordLocked(time.Now(), true)
}

// recordLocked turns what the scanner found in the newest bytes into cuts and
// marks, moves the frontiers and wakes the readers.
func (t *Terminal) recordLocked(now time.Time, final bool) {
	t.stream.decide(&t.intake.result, t.origin.clipboard, final)
	events := t.commands.tracker.Feed(&t.intake.result)
	t.putScannedLocked(events, now)
	if t.intake.uncertain(events) {
		t.doubtLocked()
	}
	t.stream.seen = t.stream.texted
	t.redactLocked(now, final)
	t.boundLocked(t.heldForLocked())
	t.wakeLocked()
}

// putScannedLocked appends the marks of the newest scan in stream order:
// command events and reports are two ascending lists.
func (t *Terminal) putScannedLocked(events []shellint.CommandEvent, now time.Time) {
	if !t.commands.detected && t.commands.tracker.Detected() && len(t.intake.result.Marks) > 0 {
		t.putMarkLocked(Mark{Kind: MarkDetection, Off: t.intake.result.Marks[0].Off})
	}
	for i := range t.intake.result.Marks {
		m := &t.intake.result.Marks[i]
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

// putReportLocked records a title or a trusted directory of this machine.
func (t *Terminal) putReportLocked(m *shellint.Mark) {
	switch m.Kind {
	case shellint.KindTitle:
		if title := t.origin.titleOf(m.Text); title != cmp.Or(t.display.title, t.origin.name) {
			t.putMarkLocked(Mark{Kind: MarkTitle, Off: m.Off, Text: title})
		}
	case shellint.KindCwd:
		// One that is cut, or has bytes that no text has, still is where it begins: a rule may forbid to lend there.
		dir := clip.Text(strings.ToValidUTF8(m.Text, "\uFFFD"), maxCwd)
		if m.Trusted && dir != "" && t.pool.opts.localHost(m.Host) && dir != t.display.cwd {
			t.putMarkLocked(Mark{Kind: MarkCwd, Off: m.Off, Text: dir})
			t.recheckLendingLocked()
		}
	}
}
