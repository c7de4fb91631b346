package agenttools

import (
	"context"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/vocab"
)

// printedText is a terminal with an output, which counts the bytes that are read.
type printedText struct {
	text string
	read int
}

func (p *printedText) Info() Info {
	return Info{ID: "pty-1", Cols: 80, Rows: 24, End: int64(len(p.text))}
}
func (p *printedText) Commands() []vocab.Command       { return nil }
func (p *printedText) Read(from int64) (Reader, error) { return &printedReader{p, int(from)}, nil }

type printedReader struct {
	of *printedText
	at int
}

func (r *printedReader) TryNext(buf []byte) (Event, bool, error) {
	n := copy(buf, r.of.text[r.at:])
	r.at += n
	r.of.read += n
	return Event{Data: buf[:n], Off: int64(r.at)}, n > 0, nil
}

func (r *printedReader) Next(_ context.Context, buf []byte) (Event, error) {
	ev, _, err := r.TryNext(buf)
	return ev, err
}

func (r *printedReader) Close() {}

// What a terminal printed after an offset is its newest part, all of it if that is short,
// and nothing older than the offset. Of a flood, little is read.
func TestNewestAfter(t *testing.T) {
	const before, line = "before\r\n", "0123456789\r\n"
	for name, c := range map[string]struct {
		after string
		want  string // all of it, but for empty lines
		most  int    // bytes to read
	}{
		"short":           {"in\r\na\r\nstack\r\n", "in\na\nstack\n", 14},
		"within a line":   {"rest of a line\r\nnext\r\n", "rest of a line\nnext\n", 22},
		"much":            {strings.Repeat(line, 50_000), strings.Repeat("0123456789\n", maxPrinted/11), 16 << 10},
		"much of nothing": {strings.Repeat("\x1b[0m", 50_000) + "\r\nstack\r\n", "stack\n", 1 << 20},
	} {
		p := &printedText{text: before + c.after}
		got := must.Get(newestAfter(t.Context(), p, int64(len(before))))(t)
		if strings.TrimLeft(got.Text, "\n") != c.want || got.Cursor != int64(len(p.text)) || p.read > c.most {
			t.Errorf("%s: %d bytes to %d, after reading %d: %q", name, len(got.Text), got.Cursor, p.read, got.Text[:min(len(got.Text), 100)])
		}
		if cut := name == "much"; got.LeftOut > 0 != cut || cut && got.LeftOut != int64(len(c.after)-len(got.Text)) {
			t.Errorf("%s: %d left out", name, got.LeftOut)
		}
	}
}
