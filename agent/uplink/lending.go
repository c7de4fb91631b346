package uplink

import (
	"tether/agent/term"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
	"tether/vocab"
)

// lending is the state of one lent terminal that the link keeps across connections.
// Link.mu guards it, except h, which never changes, and the channels.
type lending struct {
	h    term.Handle
	acks chan struct{} // 1 slot: acked has grown, or the audience has changed

	again chan struct{} // 1 slot: the audience has changed, so that a terminal which was held back from the host may be announced now

	uri      string
	former   string // the earlier URI of a terminal that was lost at the host, else ""
	before   bool   // an earlier connection announced uri: the host still has the terminal, or has ended it
	created  bool   // an announcement was sent, so the host may have the terminal
	shown    bool   // the host has confirmed that it has the terminal under uri
	there    bool   // the host has confirmed it on this connection
	acked    int64  // text offset up to which the host has the output
	ackSeen  bool   // an acknowledgement came since the last announcement
	sent     int64  // text offset up to which the output was sent on this connection
	lost     int64  // text bytes that no connection will send
	finished bool   // nothing is left to send on this connection
	exited   bool   // the exit has arrived at the host
	problem  string // why the terminal is not published, for Status; "" if it is

	version     uint64                 // of the loan's audience, as of the last noteAudience
	sentVersion uint64                 // of the audience that the host was told on this connection
	shares      map[string]shareAnswer // the host's answers about shares on this connection, by id; nil before
	ports       []ahp.LentPort         // as the host was told on this connection

	watchers  *vocab.Watchers // as the host said on this connection, nil if it did not; replaced, never changed
	observers *int            // as the host said on this connection, nil if it did not; replaced, never changed
}

// lend returns the lending of h, and makes it at the first call. A terminal that the
// former daemon has lent keeps its URI. A terminal that this link has withdrawn gets
// another URI, although its holder still has the old one: it may have been withdrawn
// because the connection to its holder was lost for a moment, and the host is told of the
// end of the old URI, which must not concern the terminal.
func (l *Link) lend(h term.Handle) *lending {
	l.mu.Lock()
	defer l.mu.Unlock()
	le := l.lendings[h.ID()]
	if le == nil {
		le = &lending{h: h, uri: h.LinkState(), acks: make(chan struct{}, 1), again: make(chan struct{}, 1)}
		if le.uri == l.withdrawn[h.ID()] {
			le.uri = ""
		}
		if le.uri != "" && le.uri == l.replaced[h.ID()] {
			le.former, le.uri = le.uri, ""
		}
		if le.created = le.uri != ""; !le.created {
			le.uri = ahp.NewTerminalURI(client.NewID())
		}
		le.before, le.exited = le.created, le.created && h.HasHeard()
		l.lendings[h.ID()] = le
	}
	if le.h != h { // the connection to its holder was lost and made again while the link did not look
		next := *le
		next.h, le = h, &next
		l.lendings[h.ID()] = le
	}
	return le
}

// lent returns the terminals for the host: none after Withdraw.
func (l *Link) lent() []term.Handle {
	select {
	case <-l.part:
		return nil
	default:
		return l.opts.Terminals.List()
	}
}

// renewLocked gives the terminal another URI, under which the host gets all output from
// the start, and sets former.
func (le *lending) renewLocked(former string) {
	le.former, le.uri, le.before, le.created, le.shown, le.there = former, ahp.NewTerminalURI(client.NewID()), false, false, false, false
	le.acked, le.sent = 0, 0
	le.finished, le.exited = false, false
}

// retire removes the lendings of terminals that are not in lent. It returns the URIs that
// the host may still have, including those of lendings that ended while there was no
// daemon; the caller disposes of them. A terminal that is lent again gets a new URI, so
// that no message about the old one, such as the end that we requested, can concern it.
func (l *Link) retire(lent map[term.ID]bool) []string {
	ended := l.opts.Terminals.Ended()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = append(l.retired, ended...)
	for id, le := range l.lendings {
		if lent[id] {
			continue
		}
		delete(l.lendings, id)
		if le.created || le.before {
			l.retired = append(l.retired, le.uri)
		}
		if le.created && !le.exited {
			l.withdrawn[id] = le.uri
		}
	}
	uris := l.retired
	l.retired = nil
	l.leaving += len(uris)
	return uris
}

// disposed records the result of disposing of a URI from retire. If the host did not
// answer, the next retire returns the URI again.
func (l *Link) disposed(uri string, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving--
	if !answered {
		l.retired = append(l.retired, uri)
	}
}

// knownLocked returns how many terminals the host may have.
func (l *Link) knownLocked() int {
	n := len(l.retired) + l.leaving
	for _, le := range l.lendings {
		if le.created {
			n++
		}
	}
	return n
}

// current reports whether le has not been retired.
func (l *Link) current(le *lending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lendings[le.h.ID()] == le
}

// byURI finds a lending by the channel of a message.
func (l *Link) byURI(uri string) *lending {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, le := range l.lendings {
		if le.uri == uri {
			return le
		}
	}
	return nil
}

// setAcked records that the host has the text up to applied. The first acknowledgement
// after an announcement says where to continue. A later one that goes back, or beyond the
// sent text, is the host's mistake and is ignored. setAcked wakes the publisher if that
// may wait for an acknowledgement, see little.
func (l *Link) setAcked(le *lending, applied int64) {
	l.mu.Lock()
	valid := !le.ackSeen || le.acked <= applied && applied <= le.sent
	awaited := !le.ackSeen || le.sent-le.acked > little
	if valid {
		le.acked, le.ackSeen = applied, true
	}
	l.mu.Unlock()
	if valid && awaited {
		le.signal()
	}
}

// signal makes the publisher look again. It does not block.
func (le *lending) signal() {
	change.Wake(le.acks)
}

// update changes a lending under the link's mutex.
func (l *Link) update(le *lending, f func(*lending)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(le)
}
