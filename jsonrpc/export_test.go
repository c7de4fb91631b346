package jsonrpc

// Message is the result of split, for the fuzz test.
type Message struct{ Version, ID, Method, Params, Result, Err []byte }

// Split is split.
func Split(data []byte) (Message, error) {
	m, err := split(data, 0)
	return Message{m.version, m.id, m.method, m.params, m.result, m.err}, err
}

// Stats are what waits in a peer.
type Stats struct {
	QueuedBulk int // bytes waiting or being written, see Options
	Calls      int // calls waiting for a response
	Requests   int // requests received and not replied to
}

// Stats returns what waits now.
func (p *Peer) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{QueuedBulk: p.bulk.cost + p.pulled.cost, Calls: len(p.calls), Requests: p.requests}
}
