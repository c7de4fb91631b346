package local

import (
	"errors"
	"math"
	"slices"
	"unicode/utf8"

	"tether/agent/output"
	"tether/agent/term"
	"tether/screen"
)

// maxSizes bounds the number of sizes in one pty:attached. If the terminal had more, only
// the newest are sent, and the screen counts as truncated.
const maxSizes = 1024

// sizeAt is the size that a terminal has from a text offset on.
type sizeAt struct {
	off  int64
	size term.Size
}

// historyStart is the screen at the beginning of a history, with the text offset and the
// size there.
type historyStart struct {
	is *screen.Screen
	at sizeAt
}

// history opens a new reader and returns the newest text of the terminal, at most
// historySize bytes, with the screen before it. It reads up to about the raw offset
// until, where it leaves the stream's reader.
func (st *stream) history(c *client, until int64) (attached, error) {
	if err := st.open(c, output.ReaderOptions{Tail: historySize}); err != nil {
		return attached{}, err
	}
	from, err := st.startAt(c)
	if err != nil {
		return attached{}, err
	}
	t := collect(st.reader, c.buf.text, until, math.MaxInt)
	c.buf.text = t.Data
	if t.lagged {
		from.is.Doubt()
	}
	t.sizes = from.cut(&t, historySize)
	said := st.said(t, t.Off > 0)
	if t.Off == 0 {
		return said, nil
	}
	if said.screen = from.is.Replay(); !utf8.Valid(said.screen) { // would need text that ends within a character, which does not occur
		said.screen = nil
	}
	said.unknown = said.screen == nil || from.is.Doubtful()
	return said, nil
}

// startAt returns the screen at the position of the stream's reader. If the oldest known
// screen is after that position, startAt moves the reader to that screen.
func (st *stream) startAt(c *client) (historyStart, error) {
	old, err := st.terminal.Reader(output.ReaderOptions{View: output.ViewText, Wake: c.wake})
	if err != nil {
		return historyStart{}, err
	}
	at, err := old.Oldest()
	if err != nil {
		old.Close()
		return historyStart{}, err
	}
	from := historyStart{is: screen.NewState(int(at.Size.Cols), int(at.Size.Rows)), at: sizeAt{old.Offset(), at.Size}}
	from.is.Write(at.Replay)
	if !at.Exact {
		from.is.Doubt()
	}
	if from.at.off > st.reader.Offset() {
		st.reader.Close()
		st.reader = old
		return from, nil
	}
	defer old.Close()
	from.advance(old, st.reader.Offset(), c.buf.text)
	from.resize(st.reader.Size())
	return from, nil
}

// advance moves the screen forward to a text offset with the output that the reader
// returns. buf is scratch memory.
func (s *historyStart) advance(rd *output.Reader, to int64, buf []byte) {
	buf = slices.Grow(buf[:0], chunk)[:chunk]
	for s.at.off < to {
		ev, ok, err := rd.TryNext(buf)
		var lost *output.LaggedError
		switch {
		case errors.As(err, &lost):
			s.is.Doubt()
			s.at.off = lost.At
		case err != nil || !ok:
			s.is.Doubt() // does not occur: there is text up to that offset
			return
		case ev.Mark == nil:
			s.is.Advance(ev.Data[:min(int64(len(ev.Data)), to-ev.Off)])
			s.at.off = ev.Off + int64(len(ev.Data))
		case ev.Mark.Kind == output.MarkResized:
			s.resize(ev.Mark.Size)
		}
	}
	s.at.off = to
}

func (s *historyStart) resize(size term.Size) {
	s.is.Resize(int(size.Cols), int(size.Rows))
	s.at.size = size
}

// cut shortens t to its newest n bytes and advances the screen to the beginning of these.
// It returns the sizes that the terminal had in them; the first is the size at their
// beginning.
func (s *historyStart) cut(t *taken, n int) []sizeAt {
	whole, sizes := t.piece, t.sizes
	t.piece = whole.newest(n)
	s.at.off = whole.Off
	for len(sizes) > 0 && sizes[0].off <= t.Off {
		s.text(&whole, sizes[0].off)
		s.resize(sizes[0].size)
		sizes = sizes[1:]
	}
	s.text(&whole, t.Off)
	if len(sizes) > maxSizes {
		s.is.Doubt()
		sizes = sizes[len(sizes)-maxSizes:]
	}
	return append([]sizeAt{s.at}, sizes...)
}

// text advances the screen over p, up to the offset to.
func (s *historyStart) text(p *piece, to int64) {
	s.is.Advance(p.Data[s.at.off-p.Off : to-p.Off])
	s.at.off = to
}
