package events

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"tether/agenttools"
	"tether/vocab"
)

// Bounds of a journal.
const (
	maxJournal = 1000
	journalAge = 10 * time.Minute
)

// source notices one condition of the moment for all subscriptions to it, and keeps a
// journal of its events. It exists while there is a subscription or a lease.
type source struct {
	e     *Engine
	spec  *Spec
	epoch uint32
	began time.Time

	ctx    context.Context // ends with the source
	cancel context.CancelFunc

	mu     sync.Mutex
	subs   map[*Sub]bool
	until  time.Time                     // of the lease
	timer  *time.Timer                   // checks whether the lease has ended
	ring   []entry                       // oldest first
	next   uint64                        // the number of the next entry
	per    map[string]context.CancelFunc // cancels the goroutines that watch terminals
	first  bool                          // the list was read at least once
	away   map[string]time.Time          // since when listed machines are away
	counts map[string]int                // terminals of machines
}

// entry is one event of a journal.
type entry struct {
	seq      uint64
	at       time.Time
	terminal string // "": of a machine
	machine  string
	data     map[string]any
	text     bool // data holds text of programs
}

// source adds a subscription to the source for its condition, which it makes if there is
// none. The subscription begins at its cursor, if that is known; ok is false if entries
// after it were dropped.
func (e *Engine) source(s *Sub, from position, known bool, age *time.Duration) (ok bool, err error) {
	ok, made, err := e.sourceLocking(s, from, known, age)
	if made {
		s.src.apply(e.opts.Terminals.List())
	}
	return ok, err
}

// sourceLocking is source without the first list. Nothing notices anything before the
// subscription has begun.
func (e *Engine) sourceLocking(s *Sub, from position, known bool, age *time.Duration) (ok, made bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false, false, context.Canceled
	}
	spec := s.spec
	src := e.sources[spec.hash]
	if made = src == nil; made {
		if len(e.sources) >= e.opts.Leases {
			return false, false, &Error{Reason: ResourceExhausted, Text: "too many conditions are watched for you; ask for fewer",
				Data: map[string]any{"limit": "leases", "max": e.opts.Leases, "retryAfterMs": 60000}}
		}
		src = &source{e: e, spec: spec, epoch: freshEpoch(), began: time.Now(), subs: map[*Sub]bool{}, per: map[string]context.CancelFunc{}, away: map[string]time.Time{}, counts: map[string]int{}}
		src.ctx, src.cancel = context.WithCancel(e.ctx)
		e.sources[spec.hash] = src
		e.runLocked()
	}
	src.mu.Lock()
	src.subs[s] = true
	src.mu.Unlock()
	s.src = src
	s.seq, ok = src.begin(from, known, age)
	if made && (spec.kind.Name == PortOpened || spec.kind.Name == PortClosed) {
		e.wg.Go(func() { src.guard(src.ports) })
	}
	if made && spec.kind.Name == VerdictChanged {
		judges := e.judges()
		_, n, _ := judges.VerdictChanges(e.ctx, -1)
		e.wg.Go(func() { src.guard(func() { src.verdicts(judges, n) }) })
	}
	return ok, made, nil
}

// leave removes a subscription from the source.
func (src *source) leave(s *Sub) {
	src.mu.Lock()
	delete(src.subs, s)
	src.mu.Unlock()
	src.expire()
}

// lease keeps the source for a client that polls.
func (src *source) lease(d time.Duration) {
	src.mu.Lock()
	defer src.mu.Unlock()
	src.until = time.Now().Add(d)
	if src.timer == nil {
		src.timer = time.AfterFunc(d, src.expire)
	}
}

// expire ends the source when nobody needs it any more.
func (src *source) expire() {
	src.e.mu.Lock()
	defer src.e.mu.Unlock()
	src.mu.Lock()
	defer src.mu.Unlock()
	if len(src.subs) > 0 {
		return
	}
	if left := time.Until(src.until); left > 0 {
		src.timer.Reset(left)
		return
	}
	src.cancel()
	if src.e.sources[src.spec.hash] == src {
		delete(src.e.sources, src.spec.hash)
	}
}

// begin returns the number of the entry at which a subscription begins; ok is false if
// entries after its cursor were dropped.
func (src *source) begin(pos position, known bool, age *time.Duration) (seq uint64, ok bool) {
	src.mu.Lock()
	defer src.mu.Unlock()
	if !known || pos.epoch != src.epoch || pos.seq > src.next {
		return src.next, false
	}
	src.trimLocked()
	oldest := src.next - uint64(len(src.ring))
	for _, x := range src.ring {
		if age != nil && time.Since(x.at) > *age {
			oldest = x.seq + 1
		}
	}
	return max(pos.seq, oldest), pos.seq >= oldest
}

func (src *source) trimLocked() {
	n := max(0, len(src.ring)-maxJournal)
	for n < len(src.ring) && time.Since(src.ring[n].at) > journalAge {
		n++
	}
	src.ring = src.ring[n:]
}

// add appends an entry to the journal and wakes the goroutines that wait for one.
func (src *source) add(x entry) {
	src.mu.Lock()
	defer src.mu.Unlock()
	x.seq, x.at = src.next, time.Now()
	src.next++
	src.ring = append(src.ring, x)
	src.trimLocked()
	for s := range src.subs {
		s.signal()
	}
}

// entries returns at most n events from the journal, only about terminals that the
// principal may see.
func (s *Sub) entries(n int) (all []Event, more bool) {
	all = []Event{}
	for len(all) < n {
		x, ok := s.src.at(&s.seq, s)
		if !ok {
			return all, false
		}
		if ev, ok := s.entryEvent(&x); ok {
			all = append(all, ev)
		}
	}
	_, more = s.src.at(new(s.seq), s)
	return all, more
}

// at returns the entry with number seq and advances seq.
func (src *source) at(seq *uint64, s *Sub) (entry, bool) {
	src.mu.Lock()
	defer src.mu.Unlock()
	oldest := src.next - uint64(len(src.ring))
	if *seq < oldest {
		*seq = oldest
		s.mu.Lock()
		s.lost = true
		s.mu.Unlock()
	}
	if *seq >= src.next {
		return entry{}, false
	}
	x := src.ring[*seq-oldest]
	*seq++
	return x, true
}

// entryEvent returns the event for an entry.
func (s *Sub) entryEvent(x *entry) (Event, bool) {
	data := map[string]any{"machine": x.machine}
	if x.terminal != "" {
		t, err := s.e.opts.Terminals.Open(x.terminal)
		if err != nil {
			return Event{}, false
		}
		data = about(t.Info())
	}
	maps.Copy(data, x.data)
	id := fmt.Sprintf("%c-%08x-%s-%d-%s", s.spec.kind.letter, s.src.epoch, x.terminal, x.seq, s.spec.hashText())
	pos := position{epoch: s.src.epoch, seq: x.seq + 1}
	cursor := pos.encode(s.spec.hash)
	ev := Event{ID: id, Name: s.spec.kind.Name, At: x.at, Data: data, Cursor: &cursor}
	if x.text {
		ev.Meta = map[string]any{MetaUntrusted: true}
	}
	return ev, true
}

// apply starts and stops watching terminals to match the list.
func (src *source) apply(list []agenttools.Info) {
	switch src.spec.kind.Name {
	case MachineAway, MachineBack:
		src.machines(list)
		return
	case PortOpened, PortClosed, VerdictChanged:
		return
	}
	there := map[string]bool{}
	for _, i := range list {
		if !src.spec.covers(i) || i.Exit != nil {
			continue
		}
		there[i.ID] = true
		src.mu.Lock()
		_, known := src.per[i.ID]
		if known || src.ctx.Err() != nil {
			src.mu.Unlock()
			continue
		}
		ctx, cancel := context.WithCancel(src.ctx)
		src.per[i.ID] = cancel
		// The first list may have terminals that began after the source. Other machines
		// have other clocks.
		fresh := src.first || !src.e.opts.Machines && i.CreatedAt.After(src.began)
		src.mu.Unlock()
		t, err := src.e.opts.Terminals.Open(i.ID)
		if err != nil {
			continue
		}
		look := src.looker(t, i, fresh)
		src.e.wg.Go(func() { src.guard(func() { look(ctx) }) })
	}
	src.mu.Lock()
	defer src.mu.Unlock()
	src.first = true
	for id, cancel := range src.per {
		if !there[id] {
			cancel()
			delete(src.per, id)
		}
	}
}

// guard calls f and recovers from a panic, so that it ends only this goroutine.
func (src *source) guard(f func()) {
	defer func() {
		if recover() != nil && src.e.opts.Bug != nil {
			src.e.opts.Bug(src.spec.kind.Name, debug.Stack())
		}
	}()
	f()
}

// looker returns the function that watches one terminal until its context ends. The
// function reports changes from the terminal's present state. fresh says that the
// terminal was started while somebody was subscribed.
func (src *source) looker(t agenttools.Terminal, i agenttools.Info, fresh bool) func(context.Context) {
	switch src.spec.kind.Name {
	case Idle:
		return func(ctx context.Context) { src.idle(ctx, t, i) }
	case Problems:
		return func(ctx context.Context) { src.problems(ctx, t, i.ID, fresh) }
	}
	st, ok := t.(agenttools.StatefulTerminal)
	if !ok {
		return func(context.Context) {}
	}
	was := vocab.State{}
	if !fresh {
		was, _ = st.State()
	}
	return func(ctx context.Context) { src.state(ctx, st, i.ID, was) }
}

// machines reports machines that have gone away or come back since the last list.
func (src *source) machines(list []agenttools.Info) {
	now, counts := map[string]time.Time{}, map[string]int{}
	for _, i := range list {
		if i.Machine == "" || src.spec.Machine != "" && src.spec.Machine != i.Machine || i.Exit != nil {
			continue
		}
		counts[i.Machine]++
		if at, ok := now[i.Machine]; !ok || at.IsZero() || i.Away.IsZero() {
			now[i.Machine] = i.Away // away only if all its terminals are
		}
	}
	src.mu.Lock()
	was, first := src.away, !src.first
	src.away, src.counts, src.first = now, counts, true
	src.mu.Unlock()
	if first {
		return
	}
	for machine, since := range now {
		before, known := was[machine]
		data := map[string]any{"terminals": counts[machine]}
		switch {
		case src.spec.kind.Name == MachineAway && known && before.IsZero() && !since.IsZero():
			src.add(entry{machine: machine, data: data})
		case src.spec.kind.Name == MachineBack && known && !before.IsZero() && since.IsZero():
			data["awayMs"] = time.Since(before).Milliseconds()
			src.add(entry{machine: machine, data: data})
		}
	}
}
