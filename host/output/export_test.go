package output

import (
	"encoding/json"
	"slices"

	"tether/ahp"
	"tether/internal/jsonspan"
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
	take := func(how func(l *Log)) *screen.Screen {
		l := &Log{oldest: oldest{cols: cols, rows: rows, pos: int64(len(begin))}}
		l.oldest.begun().Write(begin)
		how(l)
		return l.oldest.screen
	}
	over = take(func(l *Log) { leapt = l.leap(runs, end) })
	through = take(func(l *Log) { l.takeUp(runs, int64(len(begin)), end) })
	return leapt, over, through
}

// NewDropped is a terminal that keeps so many bytes, and the screen in front of them.
func NewDropped(limit int) *Dropped {
	return &Dropped{l: New(limit, ahp.TerminalState{}, nil)}
}

// Dropped is a log.
type Dropped struct {
	l      *Log
	text   string
	quoted []byte
	found  jsonspan.Check
}

// Text prints. The same text is not checked again.
func (d *Dropped) Text(text string) {
	if d.text != text {
		d.text, d.quoted = text, jsonspan.AppendQuoteString(nil, text)
		d.found, _ = jsonspan.CheckString(d.quoted)
	}
	d.l.content.appendText(d.quoted[1:len(d.quoted)-1], d.found, true)
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
