package local

import (
	"bytes"

	"tether/agent/term"
	"tether/screen"
)

// wipe makes a terminal blank that somebody has used: it ends a sequence that is not complete, leaves the alternate screen, and puts modes,
// style, sets of characters and tab stops back.
const wipe = "\x18\x1b[?1049l\x1b[!p\x1b[4;20l\x1b[?1;6;9;45;66;1000;1002;1003;1004;1006;1016;2004;2026l\x1b[?7;25h\x1b[0 q\x1b]8;;\x1b\\" +
	"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[?5W\x1b[m\x1b[H\x1b[2J"

// redraw is what a client that begins with the last tail bytes is sent first instead of them, if they alone would not show the screen as it
// is: the screen as bytes, after a clear. at is the raw offset where the client goes on. nil: those bytes are enough. lost says that the
// client has missed output: it gets the screen in any case, if it is known, for a terminal that shows anything.
func redraw(h term.Handle, tail int64, lost bool) (first []byte, at int64, err error) {
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
	if err != nil || from <= old.Raw && len(old.Replay) == 0 && !lost {
		return nil, 0, err
	}
	is := screen.NewState(int(old.Size.Cols), int(old.Size.Rows))
	is.Write(old.Replay)
	show(is, all, from)
	looks := screen.NewState(is.Size())
	at = show(is, all, end)
	show(looks, some, end)
	replay := is.Replay()
	switch {
	case replay == nil:
		return nil, 0, nil
	case lost:
		return append([]byte(wipe), replay...), max(at, old.Raw), nil
	case bytes.Equal(replay, looks.Replay()):
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
