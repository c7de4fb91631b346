// Package output keeps what one terminal has shown: its text in bounded memory, the
// commands and other marks within it, and the screen behind text that was dropped. A
// machine, another node or a process feeds a [Log], which does not know which; clients,
// nodes and agents read from it. It sends nothing itself: an [Emitter] passes on what is
// appended.
//
// Marks and the screen are those of package record. Text is kept as it came in JSON, and
// processed for the screen without the owner's lock, so both are not shared.
package output

import (
	"cmp"
	"encoding/json"
	"fmt"
	"sync"

	"tether/ahp"
	"tether/internal/jsonspan"
	"tether/record"
)

const (
	// MaxOutput is the most text that an owner may send at once: twice the marker's
	// value.
	MaxOutput = 2 * ahp.DefaultMaxDataBytes // bytes

	// MaxPosition bounds positions in a stream to what every JSON reader holds exactly.
	MaxPosition = 1 << 53 // bytes

	// DefaultCols and DefaultRows are the size of a terminal whose owner has said
	// none, as with VS Code's host.
	DefaultCols, DefaultRows = 80, 24
)

// Emitter passes on what is appended to a [Log], in the order in which it is recorded. It
// is called with the lock of the log's owner, and must not call the log. at is the
// position in the recorded text after what it is given.
type Emitter interface {
	Sender
	// Action sends an action without text.
	Action(a ahp.Action, origin *ahp.Origin, at int64)
	// Note sends a terminal/data, as JSON, that the owner has not sent. past says that it
	// shows earlier output.
	Note(action []byte, at int64, past bool)
}

// Sender passes on text of the owner, which is a JSON string.
type Sender interface {
	// Text sends it. It returns the text as it is between the quotes in the message,
	// which never changes, so that the log need not keep a copy.
	Text(quoted []byte, at int64) (kept []byte)
}

// Log is what one terminal has shown. A position counts the bytes of all text ever
// recorded; an offset, which clients know, counts the owner's text. Guarded by its
// owner's lock.
type Log struct {
	State ahp.TerminalState // without Content; changed by actions, or by the owner

	to       Emitter
	content  content
	marks    marks
	offsets  textOffsets
	backdrop record.Backdrop // its screen never changes: clones do
	dropped  stretch         // text that backdrop has not processed yet
	sized    int64           // number of the first mark whose size backdrop does not have
	shown    int64           // how often backdrop was replaced
	drawing  sync.Mutex      // taken before the owner's lock; held while a screen is drawn
	strip    *stripper       // nil while the owner's text cannot be within a mark
	applied  int64           // length of the owner's text, in bytes of UTF-8, up to which it is here
}

// New returns the log of a terminal in a state. It keeps about limit bytes of text.
func New(limit int, state ahp.TerminalState, to Emitter) *Log {
	l := &Log{State: state, to: to, content: content{limit: limit}}
	l.content.left = l.leave
	l.blank()
	return l
}

// End returns the position of the next text.
func (l *Log) End() int64 { return l.content.end }

// Oldest returns the position of the oldest text that is kept.
func (l *Log) Oldest() int64 { return l.content.oldest() }

// Base returns the position at which the text was last cleared.
func (l *Log) Base() int64 { return l.content.base }

// Applied returns the offset up to which the owner's text is here.
func (l *Log) Applied() int64 { return l.applied }

// Ended returns how many commands have ended.
func (l *Log) Ended() int64 { return l.marks.ended }

// SetEnded says how many commands had ended before the first text.
func (l *Log) SetEnded(n int64) { l.marks.ended, l.marks.base = n, n }

// Blank reports whether nothing was ever recorded.
func (l *Log) Blank() bool { return l.content.end == 0 && l.marks.End() == 0 && l.applied == 0 }

// Fits reports whether n bytes at an offset stay within MaxPosition.
func (l *Log) Fits(off int64, n int) bool { return max(off, l.applied) <= MaxPosition-int64(n) }

// size returns the size of the terminal.
func (l *Log) size() (cols, rows int) {
	return cmp.Or(int(l.State.Cols), DefaultCols), cmp.Or(int(l.State.Rows), DefaultRows)
}

// Text is output as a JSON string that may be passed on unchanged, next to other text, in
// WebSocket text frames.
type Text struct {
	Quoted []byte
	By     Sender // sends it; nil: the log's Emitter
	found  jsonspan.Check
}

// Size returns the length of the text in bytes of UTF-8.
func (t *Text) Size() int { return t.found.Size }

// Place appends output of the owner at its offset, and then the screen behind it unless
// that is nil. It drops text that is here already, and shows a gap if text before the
// offset is missing. A negative offset means that the output follows the last text. It
// returns the offset and the position at which new text began; ok is false if there was
// none.
func (l *Log) Place(off int64, t Text, after *Drawn) (began, pos int64, ok bool) {
	if off < 0 {
		off = l.applied
	}
	if gap := off - l.applied; gap > 0 {
		l.endStrip()
		l.applied = off
		l.missing(gap)
		l.offsets.step(l.content.end, off, gap)
	}
	end := off + int64(t.Size())
	began, pos = l.applied, l.content.end
	if ok = t.skip(l.applied - off); ok {
		t = l.stripped(t)
		from := l.content.end
		l.Text(t)
		l.applied = end
		l.placed(from, end)
	}
	if after != nil && l.applied == end {
		l.draw(after)
	}
	return began, pos, ok
}

// Text appends text.
func (l *Log) Text(t Text) {
	if t.Size() > 0 {
		by := t.By
		if by == nil {
			by = l.to
		}
		kept := by.Text(t.Quoted, l.content.end+int64(t.Size()))
		l.content.appendText(kept, t.found, true)
	}
}

// Note is the _meta of a terminal/data that comes from the host itself.
type Note struct {
	Missing int64       `json:"tether/missingBytes,omitempty"` // ahp.MissingKey
	Skipped int64       `json:"tether/skippedBytes,omitempty"` // ahp.SkippedKey
	Screen  *ahp.Screen `json:"tether/screen,omitempty"`       // ahp.ScreenKey: behind the text
}

// Action returns a terminal/data with a line, which may be empty, and n.
func (n Note) Action(line string) []byte {
	dst := jsonspan.AppendQuoteString([]byte(`{"type":"`+ahp.ActionTerminalData+`","data":`), line)
	meta, _ := json.Marshal(n) // numbers and a string
	return append(append(append(dst, `,"_meta":`...), meta...), '}')
}

// missing shows in the text that n bytes are missing there, and counts them in the state.
func (l *Log) missing(n int64) {
	l.State.Meta.Missing += n
	l.backdrop.Missing(l.content.end)
	line := fmt.Sprintf("\r\n[tether: %d bytes of output are missing here]\r\n", n)
	quoted := jsonspan.AppendQuoteString(nil, line)
	l.content.appendText(quoted[1:len(quoted)-1], jsonspan.Check{Size: len(line)}, false)
	l.to.Note(Note{Missing: n}.Action(line), l.content.end, false)
}

// Apply applies an action without text, and sends it.
func (l *Log) Apply(a ahp.Action, origin *ahp.Origin) {
	if _, ok := a.(ahp.TerminalExited); ok {
		l.endStrip()
	}
	l.reduce(a)
	l.to.Action(a, origin, l.content.end)
}

// Abandon records an exit, of which only readers are told: the owner does not come back.
func (l *Log) Abandon(a ahp.TerminalExited) {
	l.strip = nil
	l.reduce(a)
}

// reduce changes the state, and adds a mark for an action of which readers are told.
func (l *Log) reduce(a ahp.Action) {
	switch a := a.(type) {
	case ahp.TerminalCleared:
		l.content.clear()
		l.blank()
	case ahp.TerminalCommandExecuted:
		l.marks.began(commandNumber(a.CommandID), l.content.open+1, l.content.end)
		l.content.start(command{id: a.CommandID, line: a.CommandLine, timestamp: a.Timestamp, verified: !a.Meta.IsUnverified(), ended: l.marks.ended})
	case ahp.TerminalCommandFinished:
		l.content.finish(a.CommandID, a.ExitCode, a.DurationMs, l.marks.ended)
		if c, ok := l.Command(a.CommandID); ok {
			l.marks.ended++
			l.mark(mark{finished: &c})
		}
	case ahp.TerminalResized:
		l.mark(mark{resized: &[2]int{int(a.Cols), int(a.Rows)}})
	case ahp.TerminalExited:
		l.mark(mark{exited: true})
	}
	l.State = ahp.ReduceTerminal(l.State, a)
	l.State.Content = nil
}

// mark adds a mark at the end of the text.
func (l *Log) mark(x mark) {
	x.pos = l.content.end
	l.marks.trim(l.content.oldest())
	l.marks.add(x)
}

// ToldExit reports whether readers are told of an exit.
func (l *Log) ToldExit() bool { return l.marks.exited() }

// DropText drops all text without telling subscribers. Positions continue.
func (l *Log) DropText() {
	l.marks.drop(l.marks.Search(l.content.end))
	l.content.clear()
	l.blank()
	l.backdrop.Lose(l.content.end)
}

// Held returns the memory that the log takes, in bytes.
func (l *Log) Held() int64 {
	return int64(l.content.held() + l.backdrop.Cost() + l.marks.bytes)
}

// screenPart: the screen behind dropped text may take one part in this many of a
// terminal's bound if memory is short.
const screenPart = 8

// Shrink drops the oldest text and marks until the log takes, together with beside bytes
// elsewhere, about level bytes.
func (l *Log) Shrink(level, beside int64) {
	l.marks.shrink(int(level / 3))
	l.content.shrink(int(level - beside - int64(l.marks.bytes)))
	if int64(l.backdrop.Cost()) > level/screenPart {
		l.backdrop.Lose(l.backdrop.At())
		l.shown++
	}
}
