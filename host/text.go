package host

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"tether/ahp"
	"tether/host/output"
	"tether/host/terminals"
	"tether/internal/jsonspan"
)

// shortcut handles a terminal/output that has the form of ahp.AppendOutput.
func (c *conn) shortcut(ctx context.Context, msg []byte) (done bool, err error) {
	c.pulse.Note() // every message comes here first
	d := &c.dispatched
	if c.link.Client == nil || c.h.draining.Load() || !d.CutOutput(msg) {
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
	by := terminals.NewSender(d.Channel, text.Quoted)
	dropped := c.outputLocking(d, text, after, err, by)
	by.Wakes.Deliver()
	dropped.Settle()
}

// outputLocking is the part of place that takes the host's lock. by takes the work that
// can be done without it. So can the drawing of dropped text, if it returns a terminal.
func (c *conn) outputLocking(d *ahp.Dispatch, text output.Text, after *output.Drawn, err error, by *terminals.Sender) (dropped *terminals.Terminal) {
	h, size := c.h, text.Size()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		by.Wakes.Begin(h.envelopes, size)
	}
	t := c.terminalLocked(d.Channel)
	reason := c.forbidsLocked(t, d.Kind)
	switch {
	case reason != "":
	case err != nil:
		reason = "data is not a valid string"
	case size > output.MaxOutput:
		reason = fmt.Sprintf("data has %d bytes, at most %d are allowed", size, output.MaxOutput)
	case !t.Out.Fits(d.Offset, size):
		reason = "the offset is out of range"
	default:
		if t.Place(&c.link, d.Offset, text, after, by); t.Out.Pending() {
			dropped = t
		}
		return dropped
	}
	c.refuseLocked(d, reason)
	return nil
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
