package host

// channel is the root, one terminal, a session or its chat: a log of envelopes and who subscribes to it. Guarded by the host's mutex.
type channel struct {
	host *Host // set once
	uri  string
	term *terminal // nil for the others
	log  chanLog
	subs []*subscription

	session *Session // nil for the others
	ended   bool     // nothing will be added; subscriptions end when they have delivered what there is
}

func (h *Host) newChannel(uri string) *channel {
	return &channel{host: h, uri: uri, log: chanLog{maxBytes: h.opts.LogBytes, maxCount: h.opts.LogCount, lost: h.seq}}
}

// addLocked logs an envelope and lets the subscribers know.
func (ch *channel) addLocked(e entry) {
	ch.log.add(e)
	if t := ch.term; t != nil {
		ch.host.recordLocked(t)
		if t.moved != nil {
			close(t.moved)
			t.moved = nil
		}
	}
	for _, s := range ch.subs {
		s.noticeLocked()
	}
}

// endLocked says that nothing more will come.
func (ch *channel) endLocked() {
	ch.ended = true
	if ch.term != nil {
		ch.host.weighLocked(ch.term)
	}
	for _, s := range ch.subs {
		s.noticeLocked()
	}
}
