package term

import (
	"cmp"
	"strings"
	"time"

	"tether/agent/output"
	"tether/internal/clip"
	"tether/shellint"
)

// intake is the state of reading the child's output. It needs no lock: it belongs to the
// pump, to takeNow while the pump waits for output, and to run after the pump has ended.
type intake struct {
	scanner  *shellint.Scanner
	result   shellint.Result // of the last scan
	appended bool            // the bytes of the current read are in the log
	unpolled int             // bytes appended since letOthersRun last started a goroutine
}

// uncertain reports whether the last scan saw the start of a command's output that the
// tracker, being unsure of it, did not announce.
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

// ingest records p, new output of the child. Only take calls it.
func (t *Terminal) ingest(p []byte) {
	t.intake.scanner.Scan(p, &t.intake.result)
	if t.record(p, time.Now()) {
		t.pool.trim()
	}
}

// record appends p with the result of the scan. It reports whether the pool exceeds its
// memory bound.
func (t *Terminal) record(p []byte, now time.Time) (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.activity.printed = now
	t.stirLocked()
	t.log.Append(p, t.intake.scanner.AtRest())
	t.intake.appended = true
	t.recordLocked(now, false)
	t.askedLocked(now)
	t.noteIfDueLocked()
	t.handScreensLocked()
	t.needLocked()
	t.paceLocked()
	t.caughtLocked()
	return t.chargeLocked()
}

// endOutput records the end of output. Bytes that the scanner held back are decided now.
func (t *Terminal) endOutput() {
	t.intake.scanner.Close(&t.intake.result)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordLocked(time.Now(), true)
}

// recordLocked turns the scanner's findings into cuts and marks, advances the frontiers
// and wakes the readers.
func (t *Terminal) recordLocked(now time.Time, final bool) {
	t.log.Decide(&t.intake.result, t.origin.clipboard, final)
	events := t.commands.tracker.Feed(&t.intake.result)
	t.putScannedLocked(events, now)
	t.putSizesLocked(t.log.Texted())
	if t.intake.uncertain(events) {
		t.doubtLocked()
	}
	t.log.LetRead()
	t.redactLocked(now, final)
	t.log.Bound(t.heldForLocked())
	t.wakeLocked()
}

// putScannedLocked appends the marks of the last scan in stream order. It merges two
// ascending lists: command events and reports.
func (t *Terminal) putScannedLocked(events []shellint.CommandEvent, now time.Time) {
	if !t.commands.detected && t.commands.tracker.Detected() && len(t.intake.result.Marks) > 0 {
		t.putMarkLocked(output.Mark{Kind: output.MarkDetection, Off: t.intake.result.Marks[0].Off})
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

// putReportLocked records a title, or a directory that the shell reports in a trusted way
// and that is on this machine.
func (t *Terminal) putReportLocked(m *shellint.Mark) {
	switch m.Kind {
	case shellint.KindTitle:
		if title := t.origin.titleOf(m.Text); title != cmp.Or(t.display.title, t.origin.name) {
			t.putMarkLocked(output.Mark{Kind: output.MarkTitle, Off: m.Off, Text: title})
		}
	case shellint.KindSize:
		t.putSizeLocked(m)
	case shellint.KindCwd:
		// A directory that is cut off or has bytes that are not text still lies in its
		// first part, and a rule may forbid lending there.
		dir := clip.Text(strings.ToValidUTF8(m.Text, "\uFFFD"), maxCwd)
		if m.Trusted && dir != "" && t.pool.opts.localHost(m.Host) && dir != t.display.cwd {
			t.putMarkLocked(output.Mark{Kind: output.MarkCwd, Off: m.Off, Text: dir})
			t.foreseeLocked()
			t.recheckLendingLocked()
		}
	}
}
