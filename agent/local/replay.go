package local

import (
	"bytes"
	"slices"

	"tether/agent/output"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/screen"
)

// wipe resets and clears a used terminal: it ends an incomplete sequence, leaves the
// alternate screen, and resets modes, style, character sets and tab stops. Clients that
// know of Control.Redrawn have undone everything before.
const wipe = "\x18\x1b[?1049l\x1b[!p\x1b[4;20l\x1b[?1;6;9;45;66;1000;1002;1003;1004;1006;1016;2004;2026l\x1b[?7;25h\x1b[0 q\x1b]8;;\x1b\\" +
	"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[?5W\x1b[m\x1b[H\x1b[2J"

// clearScreen clears the screen of a terminal on which nothing is set.
const clearScreen = "\x1b[m\x1b[H\x1b[2J"

// replayImages bounds the images in earlier output, in bytes.
const replayImages = 2 << 20

// past is what a person who attaches is shown of earlier output. Their terminal must not
// act on it again: it passes redact.Safe. A sequence that has begun before they came and
// ends later counts as earlier.
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

// pass appends what the client gets of output that ends at the raw offset to. over
// reports that all later output is to be sent unchanged.
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

// pastFrom returns the past of a client that begins at a raw offset. If draws, the
// client's terminal shows the present screen afterwards, and everything is set on it that
// programs have set: if the history does not show that screen, it is drawn behind the
// history, or, on the alternate screen, instead of it.
func pastFrom(h term.Handle, from int64, draws bool) (*past, error) {
	end := h.Info().Bytes
	p := &past{from: from, live: end, end: end, safe: newSafe()}
	if !draws {
		return p, nil
	}
	some, err := h.Reader(output.ReaderOptions{View: output.ViewScreen, From: from, Linear: true})
	if err != nil {
		return nil, err
	}
	defer some.Close()
	now, err := h.OldestScreen()
	if err != nil {
		return nil, err
	}
	defer now.Close()
	now.Until(from)
	looks := &output.ScreenAt{Is: screen.NewState(now.Is.Size()), Reader: some, At: from, Pass: func(data []byte) []byte { return p.filter(nil, data) }}
	open := slices.Clone(now.Is.Open())
	p.begin(open)
	now.Until(end)
	p.live = max(now.At-int64(now.Is.Pending()), from)
	looks.Until(p.live)
	for _, s := range []*output.ScreenAt{now, looks} {
		s.Is.Settle()
	}
	p.draw(now.Is, looks.Is)
	p.begin(open)
	return p, nil
}

// begin makes the history begin within a sequence, of which open is the part before, or
// in none.
func (p *past) begin(open []byte) {
	p.safe, p.skip = newSafe(), len(open) > 0
	p.safe.Append(nil, open)
}

// draw decides what is drawn for a client whose terminal should show the screen is, and
// shows looks after the history.
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

// redraw returns bytes that clear a terminal and draw the present screen, for a client
// that has lost output, and the raw offset at which the client continues. It returns nil
// if the screen is not known, or the terminal has shown nothing.
func redraw(h term.Handle) (first []byte, at int64, err error) {
	if h.IsMasked() {
		return nil, 0, nil // agents do not see screens
	}
	end := h.Info().Bytes
	now, err := h.OldestScreen()
	if err != nil {
		return nil, 0, err
	}
	defer now.Close()
	now.Until(end)
	if replay := now.Is.Replay(); replay != nil {
		return append([]byte(wipe), replay...), now.At, nil
	}
	return nil, 0, nil
}
