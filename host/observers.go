package host

// watchState is what the owner of a terminal was told about who watches. Guarded by the host's mutex.
type watchState struct {
	due   *conn // the connection that is to be told: the terminal is in its counts
	conn  *conn // who was told last
	count int   // and what
}

// observersLocked is how many watch: the subscriptions beside the owner's, and the agents that wait for what comes next.
func (t *terminal) observersLocked() int {
	n := t.agents
	for _, s := range t.subs {
		if !t.ownedBy(s.conn) {
			n++
		}
	}
	return n
}

// watchedLocked lets the owner be told how many watch, if that is not what it was told last. Only who showed our marker is told.
func (t *terminal) watchedLocked() {
	c := t.bound
	if c == nil || !t.creator.resume || t.watch.due == c || t.watch.conn == c && t.watch.count == t.observersLocked() {
		return
	}
	t.watch.due = c
	c.counts = append(c.counts, t)
	c.wake()
}

// nextCountLocked is what this connection is told next about who watches, nil if there is nothing.
func (c *conn) nextCountLocked() []byte {
	for len(c.counts) > 0 {
		t := c.counts[0]
		c.counts = c.counts[1:]
		if t.watch.due != c {
			continue
		}
		t.watch.due = nil
		n := t.observersLocked()
		if t.bound != c || t.watch.conn == c && t.watch.count == n {
			continue
		}
		t.watch.conn, t.watch.count = c, n
		return appendObservers(nil, t.uri, n)
	}
	return nil
}
