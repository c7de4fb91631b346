package uplink

import (
	"tether/agent/term"
	"tether/ahp"
	"tether/ahp/client"
)

// lending is the state of one lent terminal that the link keeps across connections. Guarded by Link.mu, except h, acks and again.
type lending struct {
	h    term.Handle
	acks chan struct{} // 1 slot: acked has grown, or the audience has changed

	again chan struct{} // 1 slot: the audience has changed, so that the host may be told of a terminal that it was not

	uri      string
	former   string // URI at the host before it was lost there, "" if it was not
	before   bool   // an earlier connection announced uri: the host has it still, or has ended it
	created  bool   // the host may have it: an announcement was sent
	shown    bool   // the host has said that it has it, under uri
	there    bool   // and did so on this connection
	acked    int64  // text offset up to which the host has the output
	ackSeen  bool   // an acknowledgement came since the last announcement
	sent     int64  // text offset up to which it was sent on this connection
	lost     int64  // text bytes that no connection will send
	finished bool   // nothing is left to send on this connection
	exited   bool   // the exit was reported and arrived
	problem  string // why it is not published, for status; "" while it is

	version     uint64                 // of the loan's audience, when it was looked at last
	sentVersion uint64                 // the version that the host was told on this connection
	shares      map[string]shareAnswer // the host's answers about shares on this connection, by id; nil before

	watchers  *Watchers // as the host said on this connection, nil if it did not; replaced, never changed
	observers *int      // as the host said on this connection, nil if it did not; replaced, never changed
}

// lend returns the lending of h, making it at first. A terminal that the daemon before this one has lent keeps its URI there. One that this
// link has withdrawn does not, although its holder still knows it: when the connection to that was lost for a moment, the host is told of
// an end that must concern nobody.
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
	if le.h != h { // its holder was lost and met again without the link
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

// renewLocked gives the terminal another URI, under which the host gets everything from the start.
func (le *lending) renewLocked() {
	le.uri, le.before, le.created, le.shown, le.there = ahp.NewTerminalURI(client.NewID()), false, false, false, false
	le.acked, le.sent = 0, 0
	le.finished, le.exited = false, false
}

// retire forgets the lendings that have ended and returns the URIs that the host may still have, for the caller to dispose of, also of
// lendings that ended while there was no daemon. A terminal that is lent again gets a new URI, so that no message of the host about the old
// one, such as the end that we requested, can concern it.
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

// disposed says how the withdrawal of a URI that retire returned has ended. One that was not answered is left to the next time.
func (l *Link) disposed(uri string, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving--
	if !answered {
		l.retired = append(l.retired, uri)
	}
}

// knownLocked is how many terminals the host may have.
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

// setAcked records that the host has the text up to applied. The first acknowledgement after an announcement is the place to continue from.
// Any other that goes back or beyond the sent text is a host's mistake and is ignored. The publisher is woken if it may be waiting for it,
// see little.
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

// signal makes the publisher look again.
func (le *lending) signal() {
	select {
	case le.acks <- struct{}{}:
	default:
	}
}

// update changes a lending under the link's mutex.
func (l *Link) update(le *lending, f func(*lending)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(le)
}
