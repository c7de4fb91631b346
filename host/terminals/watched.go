package terminals

import (
	"context"
	"math"
	"slices"
	"time"

	"tether/agenttools"
	"tether/host/rights"
	"tether/internal/bounded"
)

// Watched is a catalogue that records which terminals its principal looks at, each of
// them once, and that counts callers which wait for a terminal's output as watchers.
type Watched struct {
	agenttools.Terminals
	b *Book
	P rights.Principal
	Looks
}

// Watch returns a catalogue of a principal that records what it looks at.
func (b *Book) Watch(all agenttools.Terminals, p rights.Principal) *Watched {
	return &Watched{Terminals: all, b: b, P: p}
}

// Open implements agenttools.Terminals.
func (w *Watched) Open(id string) (agenttools.Terminal, error) {
	t, err := w.Terminals.Open(id)
	at, ok := t.(Seen)
	if !ok || err != nil {
		return t, err
	}
	if w.Looks.First(id) {
		w.b.opts.Audit(rights.AuditSubscribed, w.P, rights.AuditEvent{Terminal: at.t.URI, Detail: "MCP"})
	}
	return awaited{at}, nil
}

// Changed implements agenttools.Watchable.
func (w *Watched) Changed(ctx context.Context, since uint64) (uint64, error) {
	return View{w.b, &w.P}.Changed(ctx, since)
}

// forever is how long entries last that leave only for newer ones.
const forever time.Duration = math.MaxInt64

// Looks records what the audit log must have only once, even if a program asks in a loop:
// viewed terminals. The zero value is ready; its methods may be called concurrently.
type Looks struct{ seen bounded.Map[string, struct{}] }

// First reports whether what is new to looks, and adds it.
func (l *Looks) First(what string) bool {
	return l.seen.Add(what, struct{}{}, time.Now().Add(forever))
}

// awaited is a terminal whose readers count as watchers from the first time that they
// wait until they are closed. A reader that never waits is finished before anybody could
// be told of it.
type awaited struct{ Seen }

// Read implements agenttools.Terminal.
func (a awaited) Read(from int64) (agenttools.Reader, error) {
	r, err := a.Seen.Read(from)
	if err != nil {
		return nil, err
	}
	a.Looked()
	return &awaitingReader{Reader: r, at: a.Seen}, nil
}

// ReadScreen implements agenttools.ScreenTerminal.
func (a awaited) ReadScreen() (agenttools.OldScreen, agenttools.Reader, error) {
	a.Looked()
	return a.Seen.ReadScreen()
}

// awaitingReader is used by one goroutine.
type awaitingReader struct {
	agenttools.Reader
	at      Seen
	counted *waiting // nil before it has waited
}

// Next implements agenttools.Reader.
func (r *awaitingReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	if r.counted == nil {
		r.counted = &waiting{r.at.p, time.Now()}
		r.at.agents(r.counted, 1)
	}
	return r.Reader.Next(ctx, buf)
}

// Close implements agenttools.Reader.
func (r *awaitingReader) Close() {
	if r.counted != nil {
		r.at.agents(r.counted, -1)
		r.counted = nil
	}
	r.Reader.Close()
}

// waiting is a reader that waits for a terminal's output.
type waiting struct {
	who   *rights.Principal // nil: the host
	since time.Time
}

// agents adds more to the number of waiting readers: 1 or -1.
func (l Seen) agents(r *waiting, more int) {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	if l.t.agents += more; more > 0 {
		l.t.waits = append(l.t.waits, r)
	} else {
		l.t.waits = slices.DeleteFunc(l.t.waits, func(o *waiting) bool { return o == r })
	}
	l.t.Unwatched = time.Now()
	if !l.t.gone() {
		l.t.touch(inRows)
		l.t.watched()
	}
}

// Joined is called when somebody has subscribed.
func (t *Terminal) Joined() {
	t.touch(inRows)
	t.watched()
}

// Left is called when a subscription has ended.
func (t *Terminal) Left() {
	t.touch(inRows)
	if t.Parked() != nil {
		t.book.trimParked(t)
	}
	t.Unwatched = time.Now()
	t.watched()
}

// watchState is the last report to the owner of a terminal about the number of watchers.
type watchState struct {
	conn  *Link // the connection that was told last
	count int   // the reported number
}

// Observers returns the number of watchers: subscriptions other than the owner's,
// and agents that wait for output.
func (t *Terminal) Observers() int {
	n := t.agents + t.watchingAtNodes()
	for s := range t.subs {
		if !t.OwnedBy(s.Link()) {
			n++
		}
	}
	return n
}

// watched schedules a report of the number of watchers, if it differs from the last
// one. Only a client with our marker is told.
func (t *Terminal) watched() {
	t.sayWatchers()
	if c := t.Bound(); c != nil && t.Creator.Resume && t.watch != (watchState{c, t.Observers()}) {
		t.owe(noticeCount)
	}
}

// countNotice makes the report of the number of watchers.
func (t *Terminal) countNotice(c *Link) []byte {
	now := watchState{c, t.Observers()}
	if t.watch == now {
		return nil
	}
	t.watch = now
	return appendObservers(nil, t.URI, now.count)
}
