package local

import (
	"bytes"

	"tether/agent/term"
	"tether/screen"
)

// redraw is what a client that begins with the last tail bytes is sent first instead of them, if they alone would not show the screen as it
// is: the screen as bytes, after a clear. at is the raw offset where the client goes on. nil: those bytes are enough.
func redraw(h term.Handle, tail int64) (first []byte, at int64, err error) {
	if h.IsMasked() {
		return nil, 0, nil // an agent looks at no screen
	}
	end := h.Info().Bytes
	some, err := h.Reader(term.ReaderOptions{View: term.ViewScreen, Tail: tail})
	if err != nil {
		return nil, 0, err
	}
	defer some.Close()
	all, err := h.Reader(term.ReaderOptions{View: term.ViewScreen})
	if err != nil {
		return nil, 0, err
	}
	defer all.Close()
	old, err := all.Oldest()
	from := some.Offset()
	if err != nil || from <= old.Raw && len(old.Replay) == 0 {
		return nil, 0, err
	}
	is := screen.NewState(int(old.Size.Cols), int(old.Size.Rows))
	is.Write(old.Replay)
	show(is, all, from)
	looks := screen.NewState(is.Size())
	at = show(is, all, end)
	show(looks, some, end)
	replay := is.Replay()
	if replay == nil || bytes.Equal(replay, looks.Replay()) {
		return nil, 0, nil
	}
	return append([]byte("\x1b[m\x1b[H\x1b[2J"), replay...), at, nil
}

// show has a screen show what a reader returns up to a raw offset, or a little more, and returns where that ends.
func show(s *screen.Screen, rd *term.Reader, to int64) (at int64) {
	buf := make([]byte, 64<<10)
	for at < to {
		ev, ok, err := rd.TryNext(buf)
		if err != nil || !ok {
			break // it lost its place, or there is no more
		}
		if m := ev.Mark; m != nil && m.Kind == term.MarkResized {
			s.Resize(int(m.Size.Cols), int(m.Size.Rows))
		}
		s.Advance(ev.Data)
		at = ev.Raw
	}
	return at
}
