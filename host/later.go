package host

import (
	"context"
	"time"

	"tether/host/link"
	"tether/host/terminals"
)

// A later is a reply with the state of channels. It is built when it can be sent.
type later struct {
	subs   []*subscription
	reply  func()
	since  time.Time // when the client asked for it
	filled bool      // the writer is woken when the wait for other nodes' text is over
}

// roomLocked reports whether there is room for a reply. If there is none, the reply waits
// until a goroutine has got it: connections of the same name that do not read take it,
// and are closed after Options.StallTime. Later replies that need room wait, too.
func (c *conn) roomLocked(l *later) bool {
	if c.asking == l {
		if c.granted == 0 {
			return false
		}
		c.asking, c.answer, c.granted = nil, c.granted, 0
		return true
	}
	n, most := 0, terminals.MaxSnapshots
	if c.link.Client.Resume {
		most = maxLender
	}
	for _, s := range l.subs {
		n += c.shownLocked(s.topic)
	}
	all, name := &c.h.messages.Sending, c.remote.principal.Name
	switch n = min(n, most, all.Part); {
	case n <= link.FreeSending:
		return true
	case c.asking != nil:
		return false
	case all.Try(name, n):
		c.answer = n
		return true
	}
	c.asking = l
	c.h.work.Go(func() { c.awaitRoom(name, n) })
	return false
}

// awaitRoom waits for n bytes, or until the connection ends.
func (c *conn) awaitRoom(name string, n int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-c.peer.Done():
		case <-ctx.Done():
		}
	}()
	err := c.h.messages.Sending.Take(ctx, name, n)
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	switch {
	case err != nil:
	case c.gone:
		c.h.messages.Sending.Give(name, n)
	default:
		c.granted = n
		c.Wake()
	}
}

// shownLocked returns about how many bytes an answer with the topic's state takes.
func (c *conn) shownLocked(of topic) int {
	switch {
	case of.term != nil:
		return int(of.term.Out.Held())
	case of.session != nil:
		return terminals.MaxSnapshots
	}
	return perListed * len(c.link.Hold.Lister.Terminals)
}

// perListed is about how many bytes a list of terminals takes for each of them.
const perListed = 512

// resyncingLocked returns how many bytes of text may be prepared for a subscriber that
// fell behind: few if other connections of the name have used up its part.
func (c *conn) resyncingLocked() int {
	n := c.h.opts.LogBytes / 4
	c.caughtUpLocked()
	if n <= link.FreeSending || !c.h.messages.Sending.Try(c.remote.principal.Name, n) {
		return min(n, link.FreeSending)
	}
	c.resync = n
	return n
}

// sentLocked releases the bytes of the last reply, because everything before has been
// sent.
func (c *conn) sentLocked() {
	if c.answer > 0 {
		c.h.messages.Sending.Give(c.remote.principal.Name, c.answer)
		c.answer = 0
	}
	if !c.link.Out.CatchingUp() {
		c.caughtUpLocked()
	}
}

// caughtUpLocked releases the bytes of the last resynchronisation.
func (c *conn) caughtUpLocked() {
	if c.resync > 0 {
		c.h.messages.Sending.Give(c.remote.principal.Name, c.resync)
		c.resync = 0
	}
}

// doneLocked gives back all bytes at the end of the connection.
func (c *conn) doneLocked() {
	c.gone = true
	c.answer, c.granted = c.answer+c.granted, 0
	c.sentLocked()
	c.caughtUpLocked()
}

// fillsLocked reports whether a reply of the connection waits for text of other nodes'
// terminals. The connection is woken when the wait is over.
func (c *conn) fillsLocked(l *later) bool {
	left := terminals.FillTime - time.Since(l.since)
	if c.h.opts.Nodes == nil || left <= 0 {
		return false
	}
	for _, s := range l.subs {
		if s.term == nil || !s.term.FillsFor(&c.link) {
			continue
		}
		if !l.filled {
			l.filled = true
			time.AfterFunc(left, c.Wake)
		}
		return true
	}
	return false
}
