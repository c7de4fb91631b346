package output_test

import (
	"encoding/json"
	"testing"

	"tether/ahp"
	"tether/host/output"
	"tether/internal/jsonspan"
	"tether/record/recordtest"
)

// contractLog is a log as package recordtest sees it. It is also its log's emitter.
type contractLog struct {
	*output.Log
	clears int
	note   string // the text of the last note
}

// TestContract checks what readers get while text, marks and gaps are added and old text
// is dropped.
func TestContract(t *testing.T) {
	recordtest.Check(t, func(*testing.T) recordtest.Log {
		l := &contractLog{}
		l.Log = output.New(16<<10, ahp.TerminalState{}, l)
		return l
	})
}

func (l *contractLog) Append(text string) { l.place(l.Applied(), text) }

func (l *contractLog) place(off int64, text string) {
	clean, err := output.Clean(jsonspan.AppendQuoteString(nil, text))
	if err != nil {
		panic(err)
	}
	l.Place(off, clean, nil)
}

func (l *contractLog) Mark(n int) { l.Apply(ahp.TerminalResized{Cols: int64(n), Rows: 1}, nil) }

func (l *contractLog) Miss(n int64) (shown string) {
	l.place(l.Applied()+n, "")
	return l.note
}

func (l *contractLog) Shrink() { l.Log.Shrink(l.Held()/2, 0) }

// Clear has the owner clear the text, or the host drop it.
func (l *contractLog) Clear() {
	if l.clears++; l.clears%2 == 0 {
		l.DropText()
		return
	}
	l.Apply(ahp.TerminalCleared{}, nil)
}

func (l *contractLog) Start() int64 { return l.StartOffset() }

func (l *contractLog) End() int64 { return l.EndOffset() }

func (l *contractLog) Open(at int64) recordtest.Reader { return contractReader{l.Reader(at)} }

// Text implements output.Emitter.
func (l *contractLog) Text(quoted []byte, _ int64) (kept []byte) { return quoted[1 : len(quoted)-1] }

// Action implements output.Emitter.
func (l *contractLog) Action(ahp.Action, *ahp.Origin, int64) {}

// Note implements output.Emitter.
func (l *contractLog) Note(action []byte, _ int64, _ bool) {
	var data ahp.TerminalData
	if err := json.Unmarshal(action, &data); err != nil {
		panic(err)
	}
	l.note = data.Data
}

type contractReader struct{ *output.Reader }

func (c contractReader) Next(size int) (e recordtest.Event, ok bool) {
	ev, ok, found, err := c.Find(size, 0)
	switch {
	case err != nil:
		panic(err)
	case found:
		ev = c.Decode(make([]byte, size))
		return recordtest.Event{Text: string(ev.Data), At: ev.Off - int64(len(ev.Data))}, true
	case !ok:
		return e, false
	case ev.Resized != nil:
		return recordtest.Event{Mark: ev.Resized[0]}, true
	}
	return recordtest.Event{Missed: ev.Missing > 0, Moved: ev.Lost > 0, Lost: ev.Lost, At: ev.Off}, true
}

func (c contractReader) Close() {}
