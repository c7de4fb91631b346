package output

import (
	"encoding/json"
	"slices"
	"sync"

	"tether/ahp"
	"tether/internal/jsonspan"
	"tether/record"
	"tether/screen"
)

// Content is the recorded text of a terminal, for tests.
type Content struct{ l *Log }

// NewContent returns a content that is bounded by limit.
func NewContent(limit int) *Content { return &Content{New(limit, ahp.TerminalState{}, nil)} }

// Text appends text, either shared or not.
func (x *Content) Text(text string, shared bool) {
	quoted := jsonspan.AppendQuoteString(nil, text)
	x.l.content.appendText(quoted[1:len(quoted)-1], jsonspan.Check{Size: len(text)}, shared)
}

// Act applies an action that carries no text.
func (x *Content) Act(a ahp.Action) { x.l.reduce(a) }

// View decodes the tail of about max bytes and its position in the stream.
func (x *Content) View(max int) (parts []ahp.ContentPart, from int64, err error) {
	view := x.l.View(max, 0)
	err = json.Unmarshal(view.Append(nil), &parts)
	return parts, view.From, err
}

// Sizes are the cost it keeps count of, the cost that its parts have, and the end of the
// stream.
func (x *Content) Sizes() (kept, real int, end int64) {
	for i := range x.l.content.parts {
		p := &x.l.content.parts[i]
		size := 0
		for _, r := range p.runs {
			size += r.size
		}
		if size != p.size {
			return -1, size, x.l.content.end
		}
		real += p.cost()
	}
	return x.l.content.cost, real, x.l.content.end
}

// TakeUp takes up begin and then text in the form of JSON strings, without their quotes:
// by leaping over it, if leapt says that this can be done, and otherwise. It returns both
// screens.
func TakeUp(cols, rows int, begin []byte, texts [][]byte) (leapt bool, over, through *screen.Screen) {
	var runs []run
	end := int64(len(begin))
	for _, esc := range texts {
		found, err := jsonspan.CheckString(slices.Concat([]byte{'"'}, esc, []byte{'"'}))
		if err != nil {
			return false, nil, nil
		}
		runs = append(runs, run{esc: esc, size: found.Size, rows: found.Rows, styled: found.Styled})
		end += int64(found.Size)
	}
	take := func(how func(*stretch, *record.Backdrop)) *screen.Screen {
		at := int64(len(begin))
		b := record.NewBackdrop(cols, rows, 0, 0)
		b.Leave(begin, at)
		how(&stretch{runs: runs, at: at, end: end}, &b)
		return b.Screen()
	}
	over = take(func(s *stretch, b *record.Backdrop) { leapt = s.leap(b) })
	through = take((*stretch).takeUp)
	return leapt, over, through
}

// NewDropped is a terminal that keeps so many bytes, and the screen in front of them.
func NewDropped(limit int) *Dropped {
	return &Dropped{l: New(limit, ahp.TerminalState{}, nil)}
}

// Dropped is a log.
type Dropped struct {
	l      *Log
	mu     sync.Mutex
	text   string
	quoted []byte
	found  jsonspan.Check
}

// Text prints. The same text is not checked again.
func (d *Dropped) Text(text string) { d.TextLocking(&d.mu, text) }

// TextLocking is Text with the lock of the log's owner.
func (d *Dropped) TextLocking(mu *sync.Mutex, text string) {
	mu.Lock()
	if d.text != text {
		d.text, d.quoted = text, jsonspan.AppendQuoteString(nil, text)
		d.found, _ = jsonspan.CheckString(d.quoted)
	}
	d.l.content.appendText(d.quoted[1:len(d.quoted)-1], d.found, true)
	pending := d.l.Pending()
	mu.Unlock()
	if pending {
		d.l.Settle(mu, func() {})
	}
}

// Drop is DropText.
func (d *Dropped) Drop() { d.l.DropText() }

// Shown is the screen behind the dropped text; after tells whether there is such text.
func (d *Dropped) Shown(mu *sync.Mutex) (text string, after, doubtful bool) {
	mu.Lock()
	b := d.l.Behind(d.l.Oldest())
	mu.Unlock()
	old := b.Show()
	s := screen.New(old.Cols, old.Rows)
	s.Write(old.Replay)
	return s.Text(), b.Pos > 0, !old.Exact
}

// CleanText is Clean.
func CleanText(quoted []byte) ([]byte, int, error) {
	t, err := Clean(quoted)
	return t.Quoted, t.Size(), err
}

// SkipText is skip.
func SkipText(quoted []byte, n int) ([]byte, int) {
	t, _ := Clean(quoted)
	if !t.skip(int64(n)) {
		return []byte(`""`), 0
	}
	return t.Quoted, t.Size()
}
