package host

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/output"
	"tether/internal/jsonspan"
)

// shortcut handles a terminal/output that has the form of ahp.AppendOutput.
func (c *conn) shortcut(ctx context.Context, msg []byte) (done bool, err error) {
	c.pulse.Note() // every message comes here first
	d := &c.dispatched
	if c.client == nil || c.h.draining.Load() || !d.CutOutput(msg) {
		return false, nil
	}
	text, err := output.Clean(d.Data)
	if err != nil {
		return false, nil
	}
	given, err := c.h.messages.Decode(ctx, c.remote.principal.Name, len(msg))
	if err != nil {
		return true, nil // the connection has ended
	}
	defer given()
	c.place(d, text, nil, nil)
	return true, nil
}

// output handles a terminal/output.
func (c *conn) output(d *ahp.Dispatch) {
	text, err := output.Clean(d.Data)
	var after *ahp.Screen
	if len(d.Screen) <= ahp.MaxOutputScreen {
		after = ahp.DecodeScreen(d.Screen)
	}
	c.place(d, text, output.Draw(after), err)
}

// place appends checked output, or refuses it; err is the error of the check. after is
// the screen behind the output, nil if the owner did not send one. Everything else was
// done before, because the host's lock is held here.
func (c *conn) place(d *ahp.Dispatch, text output.Text, after *output.Drawn, err error) {
	by := &sender{room: room(d.Channel, text.Quoted)}
	text.By = by
	dropped := c.outputLocking(d, text, after, err, by)
	by.wakes.Deliver()
	dropped.settle()
}

// room returns room for the message with text. For long text, append allocates it; make
// would also clear the memory.
func room(uri string, quoted []byte) []byte {
	n := len(uri) + envelopeRoom
	if len(quoted) < output.ShareBytes {
		n += len(quoted)
	}
	return make([]byte, 0, n)
}

// outputLocking is the part of place that takes the host's lock. by takes the work that
// can be done without it. So can the drawing of dropped text, if it returns a terminal.
func (c *conn) outputLocking(d *ahp.Dispatch, text output.Text, after *output.Drawn, err error, by *sender) (dropped *terminal) {
	h, size := c.h, text.Size()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		by.wakes.Begin(h.envelopes, size)
	}
	t := c.terminalLocked(d.Channel)
	by.t = t
	reason := c.forbidsLocked(t, d.Kind)
	switch {
	case reason != "":
	case err != nil:
		reason = "data is not a valid string"
	case size > output.MaxOutput:
		reason = fmt.Sprintf("data has %d bytes, at most %d are allowed", size, output.MaxOutput)
	case !t.out.Fits(d.Offset, size):
		reason = "the offset is out of range"
	default:
		t.placedLocked(t.out.Place(d.Offset, text, after))
		t.bindLocked(c)
		if t.creator.resume {
			t.channel.Ack(t.out.Applied(), &by.wakes)
		}
		if t.out.Pending() {
			dropped = t
		}
		return dropped
	}
	c.refuseLocked(d, reason)
	return nil
}

// placedLocked is called after the owner's text was appended; it began at an offset and a
// position. more says that there was text that the host did not have.
func (t *terminal) placedLocked(began, pos int64, more bool) {
	if more && t.audience.Pending {
		t.passedLocked(began, pos)
	}
	t.addedLocked()
}

// addedLocked is called after something was added to the terminal's output or channel.
func (t *terminal) addedLocked() {
	t.host.recordLocked(t)
	t.moved.Raise()
}

// settleSoonLocked makes the terminal's screen process dropped text, on a goroutine of
// its own. Whoever appends output does that itself, and waits.
func (t *terminal) settleSoonLocked() {
	if h := t.host; t.out.Pending() && !h.closed {
		h.work.Go(t.settle)
	}
}

// settle makes the terminal's screen process dropped text; t may be nil. It is called
// without the host's mutex.
func (t *terminal) settle() {
	if t == nil {
		return
	}
	t.out.Settle(&t.host.mu, func() { t.host.recordLocked(t) })
}

// emitter passes on what is appended to a terminal's output. It implements
// output.Emitter; its methods need the host's mutex.
type emitter struct{ t *terminal }

// Text implements output.Emitter.
func (m emitter) Text(quoted []byte, at int64) (kept []byte) {
	return (&sender{t: m.t, room: room(m.t.uri, quoted)}).Text(quoted, at)
}

// sender passes on one piece of a terminal's text. It implements output.Sender.
type sender struct {
	t     *terminal
	room  []byte // for the message; empty
	wakes channel.Wakes
}

// Text implements output.Sender. The text is not sent back to the machine that has sent
// it.
func (s *sender) Text(quoted []byte, at int64) (kept []byte) {
	t := s.t
	e := channel.Entry{At: at}
	if t.remote() {
		e.From = t.creator.party
	}
	e.Seq = t.host.envelopes.Next()
	e.Msg = ahp.AppendData(s.room, t.uri, e.Seq, nil, quoted)
	t.channel.Add(e, &s.wakes)
	t.host.notePrintedLocked(t, quoted)
	return dataText(e.Msg, quoted)
}

// Action implements output.Emitter.
func (m emitter) Action(a ahp.Action, origin *ahp.Origin, at int64) {
	t := m.t
	e := channel.Entry{Piece: t.host.pieceLocked(t.uri, a, origin), At: at}
	if x, ok := a.(ahp.TerminalExited); ok && x.ExitCode == nil {
		x.ExitCode = &noCode
		e.Old = ahp.AppendEnvelope(nil, t.uri, e.Seq, origin, "", ahp.AppendAction(nil, x))
	}
	t.channel.Add(e, nil)
}

// Note implements output.Emitter. What shows earlier output does not concern the machine.
func (m emitter) Note(action []byte, at int64, past bool) {
	t := m.t
	e := channel.Entry{At: at}
	if past {
		e.From, e.Past = t.creator.party, t.out.Base()+1
	}
	e.Seq = t.host.envelopes.Next()
	e.Msg = ahp.AppendEnvelope(nil, t.uri, e.Seq, nil, "", action)
	t.channel.Add(e, nil)
}

// typeAlone returns an action as others than its sender may see it: its type, which has
// to be one of AHP's. Output and input keep an empty text, without which they would be
// invalid.
func typeAlone(d *ahp.Dispatch) []byte {
	kind := d.Kind
	if !ahp.Known(kind) {
		kind = "unknown"
	}
	return shortened(kind, d.Data != nil)
}

// elided returns an action as its sender gets it back: without text, which could be long,
// and without all parts if they are long or invalid.
func elided(d *ahp.Dispatch) []byte {
	const most = 1 << 10 // bytes; titles, sizes and claims are shorter
	if d.Data == nil && len(d.Action) <= most && utf8.Valid(d.Action) {
		return bytes.Clone(d.Action)
	}
	return shortened(d.Kind, d.Data != nil)
}

func shortened(kind string, text bool) []byte {
	action := append([]byte(`{"type":`), jsonspan.AppendQuoteString(nil, kind)...)
	if text {
		action = append(action, `,"data":""`...)
	}
	return append(action, '}')
}
