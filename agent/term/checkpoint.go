package term

import (
	"encoding/json"

	"tether/internal/clip"
	"tether/shellint"
)

// note is a checkpoint: the state after the output before a raw offset, so that later
// output can be scanned without it. The holder keeps it as JSON; the rules are those of
// record.
type note struct {
	Version int                   `json:"v"`
	Text    int64                 `json:"text"` // text offset
	Title   string                `json:"title,omitempty"`
	Cwd     string                `json:"cwd,omitempty"`
	Tracker shellint.TrackerState `json:"tracker"`
	Open    []recordedOutput      `json:"running,omitempty"` // commands that run at the offset
	Lost    int64                 `json:"lost,omitempty"`    // raw bytes before it that nobody could record
}

const noteVersion = 1

// notesPerLog is how many checkpoints are made while the holder's log fills once. The
// next daemon cannot use the part of a trimmed log before the first checkpoint in it, and
// so loses at most the distance between two.
const notesPerLog = 16

// noteIfDueLocked makes a checkpoint if the last one is far enough behind and the scanner
// is at rest.
func (t *Terminal) noteIfDueLocked() {
	if t.holder != nil && t.log.End()-t.keeper.noted >= int64(HolderLogBytes(t.pool.opts.LogBytes)/notesPerLog) {
		t.noteLocked()
	}
}

// noteLocked makes a checkpoint if the scanner is at rest.
func (t *Terminal) noteLocked() {
	off := t.log.End()
	if t.holder == nil || !t.log.AtRest() {
		return
	}
	n := note{Version: noteVersion, Text: t.log.TextAt(off), Title: t.display.title, Cwd: t.display.cwd, Tracker: t.commands.tracker.State(), Lost: t.log.Lost()}
	for _, c := range t.commands.openAt(off) {
		n.Open = append(n.Open, outputOf(&c))
	}
	data, err := json.Marshal(n)
	if err != nil {
		return // impossible: the note has only strings and numbers
	}
	t.keeper.note, t.keeper.noteOff, t.keeper.noted = data, off, off
	t.log.StopAt(off)
	t.saveLocked()
}

// parseNote reads a checkpoint; ok is false for one that cannot be used.
func parseNote(p []byte) (n note, ok bool) {
	return n, json.Unmarshal(p, &n) == nil && n.Version == noteVersion && n.Text >= 0
}

// restore puts a new terminal into the state of a checkpoint.
func (t *Terminal) restore(raw, text int64, n *note) {
	t.beginLocked(raw, text)
	t.commands.tracker.Restore(n.Tracker)
	t.commands.detected, t.display.title = t.commands.tracker.Detected(), clip.Text(n.Title, maxTitle)
	t.log.AddLost(n.Lost)
	if n.Cwd != "" {
		t.display.cwd = clip.Text(n.Cwd, maxCwd)
		t.log.SetDir(t.display.cwd)
	}
	t.keeper.noted = raw
}
