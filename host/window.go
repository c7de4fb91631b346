package host

import (
	"encoding/json"
	"strconv"
	"time"

	"tether/ahp"
	"tether/internal/jsonspan"
)

// Bounds of windowed delivery, in the bytes of ahp.FlowLimits: two for each UTF-16 code unit.
const (
	maxWindow     = 16 << 20
	maxFrameUnits = 64 << 10  // of a frame; what waits behind one waits no longer
	minFrame      = 8 << 10   // room for the longest URI
	minMessage    = 512 << 10 // the longest that machines cause who keep to maxDataBytes
)

// maxPartial bounds what has come of messages that are not whole, on all channels of a connection, in bytes of UTF-8.
const maxPartial = 4 << 20

// hostReceive is what the host takes: a message at a time, which it uses at once.
var hostReceive = ahp.FlowLimits{WindowBytes: 1 << 20, MaximumFrameBytes: 512 << 10, MaximumMessageBytes: 1 << 20}

// inexact is the serverSeq from which a client's lastSeenServerSeq says what it has when it has used windows: never. Each of its
// channels is somewhere else.
const inexact = 1<<63 - 1

// window is the windowed delivery of one subscription. Guarded by the host's mutex.
type window struct {
	limits ahp.FlowLimits // of the client

	rest  []byte    // of the message whose frames are being sent
	seq   int64     // its serverSeq
	first bool      // the state at the beginning is to be taken
	ready bool      // when rest is sent, the client is told that the state at the beginning is there
	sent  int64     // bytes of all messages that were begun
	used  int64     // for how much there is credit
	full  time.Time // since when nothing may begin; zero while something may

	inbound []byte // what has come of a message of the client's
	taken   int64  // bytes of all messages that have come
	due     bool   // the client is to be told of taken
}

// newWindow accepts an offer as far as the host can; nil says that delivery is ordinary.
func newWindow(o *ahp.FlowOffer, ch *channel) *window {
	if o == nil || ch.term == nil || o.Receive.MaximumFrameBytes < minFrame || o.Receive.MaximumMessageBytes < minMessage {
		return nil
	}
	return &window{limits: ahp.FlowLimits{
		WindowBytes:         min(o.Receive.WindowBytes, maxWindow),
		MaximumFrameBytes:   min(o.Receive.MaximumFrameBytes, maxFrameUnits),
		MaximumMessageBytes: min(o.Receive.MaximumMessageBytes, maxWindow),
	}}
}

// sending reports whether a message is under way.
func (w *window) sending() bool { return w.first || len(w.rest) > 0 || w.ready }

// open reports whether a message may begin.
func (w *window) open() bool { return w.sent-w.used < w.limits.WindowBytes }

// stuck reports whether no message could begin for longer than d.
func (w *window) stuck(d time.Duration) bool { return !w.full.IsZero() && time.Since(w.full) > d }

// begin lets frames of msg be sent; false if it is longer than the client takes.
func (w *window) begin(msg []byte, seq int64) bool {
	size := flowBytes(msg)
	if size > w.limits.MaximumMessageBytes {
		return false
	}
	w.rest, w.seq = msg, seq
	if w.sent += size; !w.open() {
		w.full = time.Now()
	}
	return true
}

// credit takes the client's word for how much it has used; false if that cannot be.
func (w *window) credit(used int64) bool {
	if used < w.used || used > w.sent {
		return false
	}
	if w.used = used; w.open() {
		w.full = time.Time{}
	}
	return true
}

// next is the next notification of the message under way.
func (w *window) next(channel string) []byte {
	if len(w.rest) == 0 {
		w.ready = false
		return appendOfChannel(nil, ahp.MethodChannelReady, channel, "}")
	}
	head := appendOfChannel(nil, ahp.MethodChannelFrame, channel, `,"data":`)
	const tail = `,"final":true}}`
	n := fragment(w.rest, int(w.limits.MaximumFrameBytes-flowBytes(head))/2-len(tail)-len(`""`))
	out := jsonspan.AppendQuote(head, w.rest[:n])
	if w.rest = w.rest[n:]; len(w.rest) == 0 {
		return append(out, tail...)
	}
	return append(out, "}}"...)
}

// appendOfChannel begins a notification about a channel, whose params go on or end with rest.
func appendOfChannel(dst []byte, method, channel, rest string) []byte {
	dst = append(append(append(dst, `{"jsonrpc":"2.0","method":"`...), method...), `","params":{"channel":`...)
	dst = append(jsonspan.AppendQuoteString(dst, channel), rest...)
	if rest == "}" {
		dst = append(dst, '}')
	}
	return dst
}

// flowBytes is the length of UTF-8 text as flow control counts it.
func flowBytes(text []byte) int64 {
	units := 0
	for _, b := range text {
		switch {
		case b&0xC0 == 0x80: // goes on
		case b >= 0xF0:
			units += 2
		default:
			units++
		}
	}
	return 2 * int64(units)
}

// fragment is how many bytes of JSON text fit, quoted once more, into a number of UTF-16 code units. It cuts no character.
func fragment(text []byte, units int) int {
	for i := 0; i < len(text); {
		width, cost := 1, 1
		switch b := text[i]; {
		case b == '"' || b == '\\':
			cost = 2
		case b < ' ':
			cost = 6
		case b >= 0xF0:
			width, cost = 4, 2
		case b >= 0xE0:
			width, cost = 3, 6 // of which two are quoted as \u2028
		case b >= 0xC0:
			width = 2
		}
		if units -= cost; units < 0 {
			return i
		}
		i = min(i+width, len(text))
	}
	return len(text)
}

// startWindowed begins windowed delivery; false if there is nothing to deliver any more. The state at the beginning is taken when it can
// be sent, so that any number of subscriptions cost no memory.
func (c *conn) startWindowed(s *subscription, w *window) bool {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if s.ch.ended || c.subs[s.ch.uri] != s {
		s.endLocked()
		return false
	}
	w.first, w.seq = true, c.h.seq
	s.window, s.paused = w, false
	s.noticeLocked()
	return true
}

// sendState begins to send the state in frames, and what follows it.
func (c *conn) sendState(s *subscription, w *window) {
	h := c.h
	h.mu.Lock()
	if s.window != w || c.subs[s.ch.uri] != s {
		h.mu.Unlock()
		return
	}
	limit := int(min(maxSnapshots, w.limits.MaximumMessageBytes/4))
	snap := c.snapshotLocked(s.ch, limit)
	s.startLocked()
	c.client.exact = inexact
	h.mu.Unlock()
	msg := snapshotMessage(&snap)
	for flowBytes(msg) > w.limits.MaximumMessageBytes && limit > 0 { // more of it was escaped than not
		limit /= 4
		snap.parts, _ = trimParts(snap.parts, costOf(snap.parts), limit)
		msg = snapshotMessage(&snap)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.first, w.ready = false, true; !w.begin(msg, snap.seq) {
		c.resetLocked(s)
	}
	s.noticeLocked()
}

func snapshotMessage(s *snapshot) []byte {
	msg := appendOfChannel(nil, ahp.MethodChannelSnapshot, s.uri, `,"snapshot":`)
	return append(s.append(msg), "}}"...)
}

func costOf(parts []part) (cost int) {
	for i := range parts {
		cost += parts[i].cost()
	}
	return cost
}

// resetLocked ends a windowed subscription at which something is wrong, and says so.
func (c *conn) resetLocked(s *subscription) {
	s.endLocked()
	c.directLocked(entry{seq: c.h.seq, msg: appendOfChannel(nil, ahp.MethodChannelReset, s.ch.uri, "}")})
}

// takeWindowedLocked is takeLocked for a windowed subscription: the next frame, or nil if it is over or has to be asked again.
func (s *subscription) takeWindowedLocked() []byte {
	w := s.window
	if w.first {
		s.conn.laterLocked(func() { s.conn.sendState(s, w) })
		return nil
	}
	if !w.sending() && !w.begin(s.takeEnvelopeLocked(), s.conn.h.seq) {
		s.conn.resetLocked(s)
		return nil
	}
	return w.next(s.ch.uri)
}

// flow takes what a client says about a windowed channel. What makes no sense ends the subscription.
func (c *conn) flow(method string, params []byte) {
	var frame ahp.FrameParams
	var credit ahp.CreditParams
	var err error
	switch method {
	case ahp.MethodChannelFrame:
		err = ahp.DecodeParams(params, &frame)
	case ahp.MethodChannelCredit:
		err = ahp.DecodeParams(params, &credit)
		frame.Channel = credit.Channel
	default:
		var over ahp.UnsubscribeParams
		err = ahp.DecodeParams(params, &over)
		frame.Channel = over.Channel
	}
	c.h.mu.Lock()
	s := c.subs[frame.Channel]
	if s == nil || s.window == nil {
		c.h.mu.Unlock()
		return
	}
	message, ok := []byte(nil), err == nil
	switch {
	case !ok:
	case method == ahp.MethodChannelReset:
		s.endLocked()
	case method == ahp.MethodChannelCredit:
		ok = s.window.credit(credit.ConsumedBytes)
		s.noticeLocked()
	default:
		message, ok = s.window.receive(frame)
		ok = ok && c.partialLocked() <= maxPartial
	}
	if !ok {
		c.resetLocked(s)
	}
	c.h.mu.Unlock()
	if message != nil {
		c.framed(s, message)
	}
}

// partialLocked is how much has come of messages that are not whole.
func (c *conn) partialLocked() (n int) {
	for _, s := range c.subs {
		if s.window != nil {
			n += len(s.window.inbound)
		}
	}
	return n
}

// receive takes a frame and returns the message that has become whole, if it has; ok is false if it is longer than was agreed.
func (w *window) receive(f ahp.FrameParams) (message []byte, ok bool) {
	w.inbound = append(w.inbound, f.Data...)
	if flowBytes(w.inbound) > hostReceive.MaximumMessageBytes {
		return nil, false
	}
	if f.Final {
		message, w.inbound = w.inbound, nil
	}
	return message, true
}

// framed takes a message that came in frames: a notification about the same channel.
func (c *conn) framed(s *subscription, message []byte) {
	var n struct {
		Method string
		Params json.RawMessage
	}
	var about struct{ Channel string }
	if json.Unmarshal(message, &n) == nil && json.Unmarshal(n.Params, &about) == nil && about.Channel == s.ch.uri {
		switch n.Method {
		case ahp.MethodDispatchAction:
			c.dispatch(n.Params)
		case ahp.MethodUnsubscribe:
			c.unsubscribe(n.Params)
		}
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	s.window.taken += flowBytes(message)
	if !s.window.due {
		s.window.due = true
		c.credits = append(c.credits, s)
		c.wake()
	}
}

// nextCreditLocked is the next credit for what the client has sent, nil if it has had all.
func (c *conn) nextCreditLocked() []byte {
	for len(c.credits) > 0 {
		s := c.credits[0]
		c.credits = c.credits[1:]
		if c.subs[s.ch.uri] != s || s.window == nil {
			continue
		}
		s.window.due = false
		msg := appendOfChannel(nil, ahp.MethodChannelCredit, s.ch.uri, `,"consumedBytes":`)
		return append(strconv.AppendInt(msg, s.window.taken, 10), "}}"...)
	}
	return nil
}
