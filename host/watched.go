package host

import (
	"context"
	"math"
	"time"

	"tether/agenttools"
	"tether/host/rights"
	"tether/internal/bounded"
)

// watched is a catalogue that records which terminals its principal looks at, each of
// them once, and that counts callers which wait for a terminal's output as watchers.
type watched struct {
	agenttools.Terminals
	h *Host
	p rights.Principal
	looks
}

// Open implements agenttools.Terminals.
func (w *watched) Open(id string) (agenttools.Terminal, error) {
	t, err := w.Terminals.Open(id)
	at, ok := t.(lookedAt)
	if !ok || err != nil {
		return t, err
	}
	if w.looks.first(id) {
		w.h.audit(rights.AuditSubscribed, remote{principal: w.p}, rights.AuditEvent{Terminal: at.t.uri, Detail: "MCP"})
	}
	return awaited{at}, nil
}

// Changed implements agenttools.Watchable.
func (w *watched) Changed(ctx context.Context, since uint64) (uint64, error) {
	return catalogue{w.h, &w.p}.Changed(ctx, since)
}

// forever is how long entries last that leave only for newer ones.
const forever time.Duration = math.MaxInt64

// looks records what the audit log must have only once, even if a program asks in a loop:
// viewed terminals. The zero value is ready; its methods may be called concurrently.
type looks struct{ seen bounded.Map[string, struct{}] }

// first reports whether what is new to looks, and adds it.
func (l *looks) first(what string) bool {
	return l.seen.Add(what, struct{}{}, time.Now().Add(forever))
}

// awaited is a terminal whose readers count as watchers from the first time that they
// wait until they are closed. A reader that never waits is finished before anybody could
// be told of it.
type awaited struct{ lookedAt }

// Read implements agenttools.Terminal.
func (a awaited) Read(from int64) (agenttools.Reader, error) {
	r, err := a.lookedAt.Read(from)
	if err != nil {
		return nil, err
	}
	a.looked()
	return &awaitingReader{Reader: r, at: a.lookedAt}, nil
}

// ReadScreen implements agenttools.ScreenTerminal.
func (a awaited) ReadScreen() (agenttools.OldScreen, agenttools.Reader, error) {
	a.looked()
	return a.lookedAt.ReadScreen()
}

// awaitingReader is used by one goroutine.
type awaitingReader struct {
	agenttools.Reader
	at      lookedAt
	counted bool
	since   time.Time
}

// Next implements agenttools.Reader.
func (r *awaitingReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	if !r.counted {
		r.counted = true
		r.since = time.Now()
		r.at.agents(r, 1)
	}
	return r.Reader.Next(ctx, buf)
}

// Close implements agenttools.Reader.
func (r *awaitingReader) Close() {
	if r.counted {
		r.counted = false
		r.at.agents(r, -1)
	}
	r.Reader.Close()
}

// agents adds more to the number of waiting readers: 1 or -1.
func (l lookedAt) agents(r *awaitingReader, more int) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	if l.t.agents += more; more > 0 {
		l.t.waits = append(l.t.waits, r)
	} else {
		l.t.waits = remove(l.t.waits, r)
	}
	l.t.unwatched = time.Now()
	if !l.t.gone() {
		l.t.touch(inRows)
		l.t.watchedLocked()
	}
}

// watchState is the last report to the owner of a terminal about the number of watchers.
// Guarded by the host's mutex.
type watchState struct {
	conn  *conn // the connection that was told last
	count int   // the reported number
}

// observersLocked returns the number of watchers: subscriptions other than the owner's,
// and agents that wait for output.
func (t *terminal) observersLocked() int {
	n := t.agents + t.watchingAtNodesLocked()
	for s := range t.subs {
		if !t.ownedBy(s.conn) {
			n++
		}
	}
	return n
}

// watchedLocked schedules a report of the number of watchers, if it differs from the last
// one. Only a client with our marker is told.
func (t *terminal) watchedLocked() {
	t.watchersLocked()
	if c := t.bound(); c != nil && t.creator.resume && t.watch != (watchState{c, t.observersLocked()}) {
		t.oweLocked(noticeCount)
	}
}

// countNoticeLocked makes the report of the number of watchers.
func (t *terminal) countNoticeLocked(c *conn) []byte {
	now := watchState{c, t.observersLocked()}
	if t.watch == now {
		return nil
	}
	t.watch = now
	return appendObservers(nil, t.uri, now.count)
}
