package host

import (
	"context"
	"sync"
	"time"

	"tether/mcp"
)

// watched is a catalogue that keeps a record of what its principal looks at, of each terminal once, not each time; and that counts who
// waits for what a terminal prints among those who watch it.
type watched struct {
	mcp.Terminals
	h *Host
	p Principal

	mu    sync.Mutex
	looks map[string]bool // by id
}

// Open implements mcp.Terminals.
func (w *watched) Open(id string) (mcp.Terminal, error) {
	t, err := w.Terminals.Open(id)
	at, ok := t.(lookedAt)
	if !ok || err != nil {
		return t, err
	}
	if w.first(id) {
		w.h.audit(AuditSubscribed, remote{principal: w.p}, AuditEvent{Terminal: at.t.uri, Detail: "MCP"})
	}
	return awaited{at}, nil
}

func (w *watched) first(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looks[id] {
		return false
	}
	if w.looks == nil || len(w.looks) >= maxLooks {
		w.looks = make(map[string]bool)
	}
	w.looks[id] = true
	return true
}

// awaited is a terminal whose readers count as watching it from the first time that they wait until they are closed. To read what is
// there already is over before anybody could be told.
type awaited struct{ lookedAt }

// Read implements mcp.Terminal.
func (a awaited) Read(from int64) (mcp.Reader, error) {
	r, err := a.lookedAt.Read(from)
	if err != nil {
		return nil, err
	}
	return &awaitingReader{Reader: r, at: a.lookedAt}, nil
}

// awaitingReader is used by one goroutine.
type awaitingReader struct {
	mcp.Reader
	at      lookedAt
	counted bool
}

// Next implements mcp.Reader.
func (r *awaitingReader) Next(ctx context.Context, buf []byte) (mcp.Event, error) {
	if !r.counted {
		r.counted = true
		r.at.agents(1)
	}
	return r.Reader.Next(ctx, buf)
}

// Close implements mcp.Reader.
func (r *awaitingReader) Close() {
	if r.counted {
		r.counted = false
		r.at.agents(-1)
	}
	r.Reader.Close()
}

// agents counts those that wait.
func (l lookedAt) agents(more int) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.t.agents += more
	l.t.unwatched = time.Now()
	if l.h.terminals[l.t.uri] == l.t {
		l.h.rowChangedLocked(l.t)
		l.t.watchedLocked()
	}
}
