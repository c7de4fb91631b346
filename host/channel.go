package host

import "math"

// channel is one AHP channel: the root, a terminal, a session or a session's chat.
// Subscribers pull from its log: a slow subscriber costs no memory, and one whose
// position was dropped from the log gets the present state. Guarded by the host's mutex.
type channel struct {
	host *Host // set once
	uri  string
	term *terminal // nil for the others
	log  chanLog
	subs []*subscription

	session *Session // nil for the others
	ended   bool     // no entry will be added; a subscription ends when it has delivered the rest
}

func (h *Host) newChannel(uri string) *channel {
	return &channel{host: h, uri: uri, log: chanLog{maxBytes: h.opts.LogBytes, maxCount: h.opts.LogCount, lost: h.seq, need: math.MaxInt64}}
}

// addLocked appends an envelope to the log and wakes the subscribers.
func (ch *channel) addLocked(e entry) {
	ch.log.need = ch.neededLocked(len(e.msg))
	ch.log.add(e)
	if t := ch.term; t != nil {
		ch.host.recordLocked(t)
		t.moved.Raise()
	}
	for _, s := range ch.subs {
		s.noticeLocked()
	}
}

// neededLocked returns the index of the oldest entry that is still needed by a subscriber
// or node for which the child waits. It returns math.MaxInt64 if there is none, or if n
// more bytes fit.
func (ch *channel) neededLocked(n int) int64 {
	need := int64(math.MaxInt64)
	if l := &ch.log; ch.term == nil || !ch.term.holds || l.behind(l.first)+int64(n) <= int64(l.maxBytes) && l.next-l.first < int64(l.maxCount) {
		return need
	}
	for _, s := range ch.subs {
		if !s.paused && !s.holding.skipped && !ch.term.ownedBy(s.conn) {
			need = min(need, s.next)
		}
	}
	for _, f := range ch.term.feeds {
		if f.healthy() {
			need = min(need, f.next)
		}
	}
	return need
}

// endLocked ends the channel: no entry will be added.
func (ch *channel) endLocked() {
	ch.ended = true
	if ch.term != nil {
		ch.host.weighLocked(ch.term)
	}
	for _, s := range ch.subs {
		s.noticeLocked()
	}
}
