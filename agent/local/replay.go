package local

import (
	"bytes"
	"slices"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/screen"
)

// wipe resets and clears a used terminal: it ends an incomplete sequence, leaves the alternate screen, and resets modes, style, character
// sets and tab stops. Clients that know of Control.Redrawn have undone everything before.
const wipe = "\x18\x1b[?1049l\x1b[!p\x1b[4;20l\x1b[?1;6;9;45;66;1000;1002;1003;1004;1006;1016;2004;2026l\x1b[?7;25h\x1b[0 q\x1b]8;;\x1b\\" +
	"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[?5W\x1b[m\x1b[H\x1b[2J"

// clearScreen clears the screen of a terminal on which nothing is set.
const clearScreen = "\x1b[m\x1b[H\x1b[2J"

// replayImages bounds the images in earlier output, in bytes.
const replayImages = 2 << 20

// past is what a person who attaches is shown of earlier output. Their terminal must not act on it again: it passes redact.Safe. A sequence
// that has begun before they came and ends later counts as earlier.
//
//	from ──history──▶ live ──then: what the history does not show──▶ the rest of a sequence ──▶ unchanged
type past struct {
	from  int64  // raw offset at which the output begins
	live  int64  // raw offset of the last boundary between sequences before end
	end   int64  // raw offset of the end of the output when the client came
	first []byte // to be sent before everything
	then  []byte // to be sent at live
	safe  *redact.Safe
	skip  bool // from lies within a sequence, whose rest is left out
}

func newSafe() *redact.Safe {
	return redact.NewSafe(redact.Options{Images: replayImages, FileLinks: true, Silent: true})
}

// pass appends what the client gets of output that ends at the raw offset to. over reports that all later output is to be sent unchanged.
func (p *past) pass(dst, data []byte, to int64) (out []byte, over bool) {
	at := to - int64(len(data))
	next := func(limit int64) {
		n := min(max(limit-at, 0), int64(len(data)))
		dst = p.filter(dst, data[:n])
		data, at = data[n:], at+n
	}
	if next(p.live); at < p.live {
		return dst, false
	}
	if p.then != nil {
		dst = append(p.safe.End(dst), p.then...)
		p.then, p.safe = nil, newSafe()
	}
	for next(p.end); at >= p.end && !p.atRest() && len(data) > 0; {
		next(at + 1)
	}
	if at < p.end || !p.atRest() {
		return dst, false
	}
	return append(dst, data...), true
}

func (p *past) atRest() bool { return !p.skip && p.safe.AtRest() }

// filter appends what the client gets of earlier output.
func (p *past) filter(dst, data []byte) []byte {
	for p.skip && len(data) > 0 {
		p.safe.Append(nil, data[:1])
		if data = data[1:]; p.safe.AtRest() {
			p.skip, p.safe = false, newSafe()
		}
	}
	return p.safe.Append(dst, data)
}

// pastFrom returns the past of a client that begins at a raw offset. If draws, the client's terminal shows the present screen afterwards, and
// everything is set on it that programs have set: if the history does not show that screen, it is drawn behind the history, or, on the
// alternate screen, instead of it.
func pastFrom(h term.Handle, from int64, draws bool) (*past, error) {
	end := h.Info().Bytes
	p := &past{from: from, live: end, end: end, safe: newSafe()}
	if !draws {
		return p, nil
	}
	some, err := h.Reader(term.ReaderOptions{View: term.ViewScreen, From: from, Linear: true})
	if err != nil {
		return nil, err
	}
	defer some.Close()
	now, err := oldest(h)
	if err != nil {
		return nil, err
	}
	defer now.rd.Close()
	now.until(from)
	looks := &screenAt{is: screen.NewState(now.is.Size()), rd: some, at: from, pass: func(data []byte) []byte { return p.filter(nil, data) }}
	open := slices.Clone(now.is.Open())
	p.begin(open)
	now.until(end)
	p.live = max(now.at-int64(now.is.Pending()), from)
	looks.until(p.live)
	for _, s := range []*screenAt{now, looks} {
		s.is.Settle()
	}
	p.draw(now.is, looks.is)
	p.begin(open)
	return p, nil
}

// begin makes the history begin within a sequence, of which open is the part before, or in none.
func (p *past) begin(open []byte) {
	p.safe, p.skip = newSafe(), len(open) > 0
	p.safe.Append(nil, open)
}

// draw decides what is drawn for a client whose terminal should show the screen is, and shows looks after the history.
func (p *past) draw(is, looks *screen.Screen) {
	replay := is.Replay()
	if replay == nil {
		return
	}
	late := looks.Clone()
	catch := is.Catch(late)
	late.Write(catch)
	switch {
	case bytes.Equal(replay, late.Replay()):
		if len(catch) > 0 {
			p.then = catch
		}
	case is.WholeScreen():
		p.from, p.first = p.live, append([]byte(clearScreen), replay...)
	default:
		p.then = append(append(looks.Undo(), clearScreen...), replay...)
	}
}

// redraw returns bytes that clear a terminal and draw the present screen, for a client that has lost output, and the raw offset at which
// the client continues. It returns nil if the screen is not known, or the terminal has shown nothing.
func redraw(h term.Handle) (first []byte, at int64, err error) {
	if h.IsMasked() {
		return nil, 0, nil // agents do not see screens
	}
	end := h.Info().Bytes
	now, err := oldest(h)
	if err != nil {
		return nil, 0, err
	}
	defer now.rd.Close()
	now.until(end)
	if replay := now.is.Replay(); replay != nil {
		return append([]byte(wipe), replay...), now.at, nil
	}
	return nil, 0, nil
}

// screenAt is the screen at a raw offset of what a reader returns.
type screenAt struct {
	is   *screen.Screen
	rd   *term.Reader
	at   int64
	rest []byte                   // output behind at, which was read
	pass func(data []byte) []byte // nil, or changes the output first
}

// oldest returns the oldest screen that is known. The caller closes its reader.
func oldest(h term.Handle) (*screenAt, error) {
	all, err := h.Reader(term.ReaderOptions{View: term.ViewScreen, Linear: true})
	if err != nil {
		return nil, err
	}
	old, err := all.Oldest()
	if err != nil {
		all.Close()
		return nil, err
	}
	is := screen.NewState(int(old.Size.Cols), int(old.Size.Rows))
	is.Write(old.Replay)
	return &screenAt{is: is, rd: all, at: old.Raw}, nil
}

// until advances the screen to a raw offset, or to the last output before it that can be read.
func (s *screenAt) until(to int64) {
	buf := make([]byte, 64<<10)
	for s.at < to {
		if len(s.rest) == 0 {
			ev, ok, err := s.rd.TryNext(buf)
			if err != nil || !ok {
				return // the reader has lost its place, or nothing more can be read
			}
			if m := ev.Mark; m != nil && m.Kind == term.MarkResized {
				s.is.Resize(int(m.Size.Cols), int(m.Size.Rows))
			}
			s.rest, s.at = ev.Data, ev.Raw-int64(len(ev.Data))
			continue
		}
		n := min(int64(len(s.rest)), to-s.at)
		data := s.rest[:n]
		if s.pass != nil {
			data = s.pass(data)
		}
		s.is.Advance(data)
		s.rest, s.at = s.rest[n:], s.at+n
	}
}
