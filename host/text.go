package host

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"tether/ahp"
	"tether/host/channel"
	"tether/internal/jsonspan"
)

const (
	// maxOutput is the most text accepted in one terminal/output: twice the marker's
	// value.
	maxOutput = 2 * ahp.DefaultMaxDataBytes // bytes
	// maxPosition bounds positions in a stream to what every JSON reader holds exactly.
	maxPosition = 1 << 53 // bytes
)

// cleanText checks a client's JSON string and returns it in a form that can be passed on
// unchanged, next to other text, in WebSocket text frames, with its properties. It is
// decoded and encoded again only if it contains half characters or bytes that are not
// UTF-8.
func cleanText(quoted []byte) (clean []byte, found jsonspan.Check, err error) {
	if found, err = jsonspan.CheckString(quoted); err != nil || found.UTF8 && joinable(quoted[1:len(quoted)-1]) {
		return quoted, found, err
	}
	text, err := jsonspan.AppendUnquote(nil, quoted)
	if err != nil {
		return nil, found, err
	}
	osc := found.OSC
	clean, found = requote(text)
	found.OSC = osc
	return clean, found, nil
}

// requote is text that was decoded, as a string.
func requote(text []byte) (quoted []byte, found jsonspan.Check) {
	return jsonspan.AppendQuote(nil, text), jsonspan.Check{Size: len(text), UTF8: true}
}

// shortcut handles a terminal/output that has the form of ahp.AppendOutput.
func (c *conn) shortcut(ctx context.Context, msg []byte) (done bool, err error) {
	c.pulse.note() // every message comes here first
	d := &c.dispatched
	if c.client == nil || c.h.draining.Load() || !d.CutOutput(msg) {
		return false, nil
	}
	quoted, found, err := cleanText(d.Data)
	if err != nil {
		return false, nil
	}
	given, err := c.taking(ctx, len(msg))
	if err != nil {
		return true, nil // the connection has ended
	}
	defer given()
	c.place(d, quoted, found, nil, nil)
	return true, nil
}

// output handles a terminal/output.
func (c *conn) output(d *ahp.Dispatch) {
	quoted, found, err := cleanText(d.Data)
	var after *ahp.Screen
	if len(d.Screen) <= ahp.MaxOutputScreen {
		after = ahp.DecodeScreen(d.Screen)
	}
	c.place(d, quoted, found, newDrawn(after), err)
}

// place appends checked output, or refuses it; err is the error of the check. after is
// the screen behind the output, nil if the owner did not send one. Everything else was
// done before, because the host's lock is held here.
func (c *conn) place(d *ahp.Dispatch, quoted []byte, found jsonspan.Check, after *drawn, err error) {
	n := len(d.Channel) + envelopeRoom
	if len(quoted) < shareBytes {
		n += len(quoted)
	} // otherwise append allocates; make would also clear the memory
	var w channel.Wakes
	c.outputLocking(d, make([]byte, 0, n), quoted, found, after, err, &w)
	w.Deliver()
}

// outputLocking is the part of place that takes the host's lock. w takes the work that
// can be done without it.
func (c *conn) outputLocking(d *ahp.Dispatch, buf, quoted []byte, found jsonspan.Check, after *drawn, err error, w *channel.Wakes) {
	h, size := c.h, found.Size
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		w.Begin(h.envelopes, size)
	}
	t := c.terminalLocked(d.Channel)
	reason := c.forbidsLocked(t, d.Kind)
	switch {
	case reason != "":
	case err != nil:
		reason = "data is not a valid string"
	case size > maxOutput:
		reason = fmt.Sprintf("data has %d bytes, at most %d are allowed", size, maxOutput)
	case max(d.Offset, t.applied) > maxPosition-int64(size):
		reason = "the offset is out of range"
	default:
		h.placeLocked(t, buf, d.Offset, quoted, found, w)
		if after != nil && t.applied == d.Offset+int64(size) {
			h.drawLocked(t, after)
		}
		t.bindLocked(c)
		if t.creator.resume {
			t.channel.Ack(t.applied, w)
		}
		return
	}
	c.refuseLocked(d, reason)
}

// placeLocked appends output of the owner at its offset. It drops text that the host has
// already, and shows a gap if text before the offset is missing. A negative offset means
// that the output follows the last text.
func (h *Host) placeLocked(t *terminal, buf []byte, offset int64, quoted []byte, found jsonspan.Check, w *channel.Wakes) {
	if offset < 0 {
		offset = t.applied
	}
	if gap := offset - t.applied; gap > 0 {
		h.endStripLocked(t)
		t.applied = offset
		h.missingLocked(t, gap)
		t.offsets.lost += gap
	}
	end, overlap := offset+int64(found.Size), t.applied-offset
	if overlap >= int64(found.Size) {
		return
	}
	if overlap > 0 {
		osc := found.OSC
		quoted, found = dropText(quoted, int(overlap))
		found.OSC = osc
	}
	applied, before := t.applied, t.content.end
	quoted, found = t.stripLocked(quoted, found)
	from := t.content.end
	h.textLocked(t, buf, quoted, found, t.creator.party, w)
	t.applied = end
	if t.audience.pending {
		t.passedLocked(applied, before)
	}
	t.placedLocked(from, end)
}

// dropText cuts n bytes of decoded text, or a few more up to the next character, from the
// front of a checked string.
func dropText(quoted []byte, n int) (rest []byte, found jsonspan.Check) {
	text, _ := jsonspan.AppendUnquote(nil, quoted)
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	return requote(text[n:])
}

// textLocked appends clean text to the terminal and to the log of its channel, in one
// copy. The text is not sent back to from, its sender. The caller must not use buf any
// more.
func (h *Host) textLocked(t *terminal, buf, quoted []byte, found jsonspan.Check, from channel.Party, w *channel.Wakes) {
	if found.Size == 0 {
		return
	}
	e := channel.Entry{From: from}
	e.Seq = h.envelopes.Next()
	e.Msg = ahp.AppendData(buf, t.uri, e.Seq, nil, quoted)
	t.content.appendText(dataText(e.Msg, quoted), found, true)
	e.At = t.content.end
	t.addLocked(e, w)
	h.notePrintedLocked(t, quoted)
}

// missingLocked shows in the terminal's output that n bytes are missing there, and counts
// them in its state.
func (h *Host) missingLocked(t *terminal, n int64) {
	t.state.Meta.Missing += n
	if t.oldest.gap = t.content.end; t.content.end == 0 {
		t.oldest.unknown = true // the screen may not have been blank before
	}
	line := fmt.Sprintf("\r\n[tether: %d bytes of output are missing here]\r\n", n)
	quoted := jsonspan.AppendQuoteString(nil, line)
	seq := h.envelopes.Next()
	msg := appendNote(t.uri, seq, line, noteMeta{Missing: n})
	t.content.appendText(quoted[1:len(quoted)-1], jsonspan.Check{Size: len(line)}, false)
	t.addLocked(channel.Entry{Piece: channel.Piece{Seq: seq, Msg: msg}, At: t.content.end}, nil)
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
