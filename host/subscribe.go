package host

import (
	"encoding/json"

	"tether/ahp"
	"tether/jsonrpc"
)

var errUnknownChannel = jsonrpc.Errorf(ahp.CodeNotFound, "no such channel")

// subscribe begins deliveries of a channel. The snapshot is taken when it can be sent, so that any number of requests
// cost no memory.
func (c *conn) subscribe(r *jsonrpc.Request) error {
	var p ahp.SubscribeParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	ch := c.visibleLocked(p.Channel)
	switch {
	case ch == nil:
		return errUnknownChannel
	case c.subs[p.Channel] == nil && len(c.subs) >= c.h.opts.MaxSubscriptions:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d subscriptions on one connection", c.h.opts.MaxSubscriptions)
	}
	s := c.subscribeLocked(ch)
	c.laterLocked(func() { c.subscribed(r, s) })
	return nil
}

func (c *conn) subscribed(r *jsonrpc.Request, s *subscription) {
	c.h.mu.Lock()
	snapshots := c.startAllLocked([]*subscription{s})
	c.h.mu.Unlock()
	if len(snapshots) == 0 {
		_ = r.ReplyError(errUnknownChannel) // the terminal has gone meanwhile; fails only with the connection
		return
	}
	c.watches(s)
	_ = r.Reply(json.RawMessage(append(snapshots[0].append([]byte(`{"snapshot":`)), '}'))) // likewise
}

// watches keeps a record of which terminals of others the client watches.
func (c *conn) watches(all ...*subscription) {
	for _, s := range all {
		if s.ch.term != nil && s.ch.term.creator != c.client && c.firstLook(s.ch.uri) {
			c.h.audit(AuditSubscribed, c.remote, AuditEvent{Client: c.client.id, Terminal: s.ch.uri})
		}
	}
}

// maxLooks bounds the terminals that are remembered of a connection as watched.
const maxLooks = 4096

// firstLook reports whether the connection has not watched a terminal before: the record has that once, not each time of a loop.
func (c *conn) firstLook(uri string) bool {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if c.looks[uri] {
		return false
	}
	if c.looks == nil || len(c.looks) >= maxLooks {
		c.looks = make(map[string]bool)
	}
	c.looks[uri] = true
	return true
}

// unsubscribe ends deliveries of a channel.
func (c *conn) unsubscribe(params []byte) {
	var p ahp.UnsubscribeParams
	if ahp.DecodeParams(params, &p) != nil {
		return
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if s := c.subs[p.Channel]; s != nil {
		s.endLocked()
		if of := s.ch.session; of != nil && s.ch == of.channel {
			of.leaveLocked(c.client, nil) // who does not follow a session takes no part in it
		}
	}
}
