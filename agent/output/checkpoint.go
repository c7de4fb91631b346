package output

import (
	"encoding/json"

	"tether/internal/clip"
	"tether/shellint"
)

// Note is a text about the state at a raw offset, which a holder keeps for the next
// daemon.
type Note struct {
	Off  int64
	Text []byte
}

// checkpoint is the state after the output before a raw offset, so that later output can
// be scanned without it. The holder keeps it as JSON, as the text of a Note. A newer or
// older daemon reads it, so a field never changes its meaning.
type checkpoint struct {
	Version int                   `json:"v"`
	Text    int64                 `json:"text"` // text offset
	Title   string                `json:"title,omitempty"`
	Cwd     string                `json:"cwd,omitempty"`
	Tracker shellint.TrackerState `json:"tracker"`
	Open    []PastCommand         `json:"running,omitempty"` // commands that run at the offset
	Lost    int64                 `json:"lost,omitempty"`    // raw bytes before it that nobody could record
}

const checkpointVersion = 1

// noteIfDue makes a checkpoint if the last one is far enough behind and the scanner is at
// rest.
func (l *Log) noteIfDue() {
	if l.log.End()-l.noted >= l.opts.NoteEvery {
		l.Note()
	}
}

// Note makes a checkpoint for the holder, if there is one and the scanner is at rest.
func (l *Log) Note() {
	off := l.log.End()
	if l.opts.NoteEvery == 0 || !l.isAtRest() {
		return
	}
	n := checkpoint{Version: checkpointVersion, Text: l.cuts.textAt(off), Title: l.title, Cwd: l.cwd, Tracker: l.history.tracker.State(), Lost: l.lost}
	for _, c := range l.history.openAt(off) {
		n.Open = append(n.Open, PastOf(&c))
	}
	data, err := json.Marshal(n)
	if err != nil {
		return // impossible: the checkpoint has only strings and numbers
	}
	l.note, l.noted = Note{off, data}, off
	l.stopAt(off)
	l.owner.Keep()
}

// Noted returns the raw offset of the last checkpoint.
func (l *Log) Noted() int64 { return l.noted }

// maxStoredScreen bounds a screen for the holder, in bytes.
const maxStoredScreen = 1 << 20

// storeScreens takes the screens that the holder does not have.
func (l *Log) storeScreens() {
	if !l.oldest.ahead {
		return
	}
	for _, k := range l.oldest.kept {
		if !k.Exact || k.Raw <= l.screened {
			continue
		}
		text, err := k.Marshal()
		if err == nil && len(text) <= maxStoredScreen {
			l.screened = k.Raw
			l.screens = append(l.screens, Note{k.Raw, text})
			l.owner.Keep()
		}
	}
}

// Screened returns the raw offset of the newest screen that the holder was given.
func (l *Log) Screened() int64 { return l.screened }

// TakeNotes returns what the holder does not have: the newest checkpoint, whose text is
// nil if the holder has it, and screens, the oldest first.
func (l *Log) TakeNotes() (checkpoint Note, screens []Note) {
	checkpoint, screens = l.note, l.screens
	l.note, l.screens = Note{}, nil
	return checkpoint, screens
}

// parseCheckpoint reads a checkpoint; ok is false for one that cannot be used.
func parseCheckpoint(p []byte) (n checkpoint, ok bool) {
	return n, json.Unmarshal(p, &n) == nil && n.Version == checkpointVersion && n.Text >= 0
}

// resume puts a new log into the state of a checkpoint.
func (l *Log) resume(raw, text int64, n *checkpoint) {
	l.begin(raw, text)
	l.history.tracker.Restore(n.Tracker)
	l.history.detected, l.title = l.history.tracker.Detected(), clip.Text(n.Title, maxTitle)
	l.lost += n.Lost
	if n.Cwd != "" {
		l.cwd = clip.Text(n.Cwd, maxCwd)
		l.dir = l.cwd
	}
	l.noted = raw
}
