package events

import (
	"cmp"
	"context"
	"maps"
	"time"

	"tether/agenttools"
)

const (
	defaultEvents = 50
	maxEvents     = 200
	// pollBytes bounds the output that is read for one answer of Poll.
	pollBytes = 16 << 20
	// soon and later are the pauses that a client is asked to make before it polls again:
	// after events, and after none.
	soon  = time.Second
	later = 5 * time.Second
	// leaseFor is how long a condition of the moment is watched for a client that polls.
	leaseFor = time.Minute
)

// Page is an answer of Poll.
type Page struct {
	Events    []Event
	Cursor    string
	Truncated bool // some events after the request's cursor are lost
	More      bool // more events are available now
	Next      time.Duration
}

// Out receives the events of a stream. Its methods may block; an error ends the stream.
type Out interface {
	// Active reports the stream's position: once at the beginning, and again with
	// truncated when events are lost.
	Active(cursor string, truncated bool) error
	// Event receives an event, which has a cursor.
	Event(Event) error
	// Heartbeat reports up to which cursor terminals were examined.
	Heartbeat(cursor string) error
}

// open makes the subscription for a request. truncated says that events after its cursor
// are lost.
func (e *Engine) open(r *Request, polls bool) (s *Sub, truncated bool, err error) {
	spec, err := e.spec(r)
	if err != nil {
		return nil, false, err
	}
	s = &Sub{e: e, spec: spec, wake: make(chan struct{}, 1), parts: map[string]*part{}, polls: polls, most: r.MaxEvents}
	if s.most <= 0 || s.most > maxEvents {
		s.most = defaultEvents
	}
	var pos position
	known := false
	if r.Cursor != nil {
		if pos, known = decodeCursor(*r.Cursor, spec.hash); !known {
			truncated = true
		}
	}
	known = known || r.Oldest
	if spec.kind.family == ofMoment {
		ok, err := e.source(s, pos, known, r.MaxAge)
		if err != nil {
			return nil, false, err
		}
		return s, truncated || known && !ok, nil
	}
	if known && pos.epoch != 0 {
		known, truncated = false, true
	}
	if known && !r.Oldest {
		s.later = pos.places
	}
	for _, i := range e.opts.Terminals.List() {
		if !spec.covers(i) {
			continue
		}
		p := &part{sub: s, id: i.ID, exited: i.Exit != nil}
		if known {
			p.from = pos.places[i.ID]
			p.at = p.from
			delete(s.later, i.ID)
		}
		s.parts[i.ID] = p
	}
	s.fresh = !known
	return s, truncated, nil
}

// Poll returns the available events after the cursor. It waits only for unfinished lines,
// 200 ms at most. Errors: *Error, and ctx's.
func (e *Engine) Poll(ctx context.Context, r *Request) (*Page, error) {
	s, truncated, err := e.open(r, true)
	if err != nil {
		return nil, err
	}
	page := &Page{Events: []Event{}, Truncated: truncated, Next: later}
	if s.src != nil {
		defer s.src.leave(s)
		s.src.lease(leaseFor)
		page.Events, page.More = s.entries(s.most)
		page.Cursor, page.Truncated = s.cursor(), truncated || s.missed()
	} else if err := s.look(ctx, page); err != nil {
		return nil, err
	}
	if len(page.Events) > 0 {
		page.Next = soon
	}
	for i := range page.Events {
		page.Events[i].Cursor = nil
	}
	return page, nil
}

// look reads the terminals of a poll.
func (s *Sub) look(ctx context.Context, page *Page) error {
	if s.spec.of != "" && s.parts[s.spec.of] == nil {
		return withdrawn()
	}
	pos := position{places: maps.Clone(s.later)}
	if pos.places == nil {
		pos.places = map[string]place{}
	}
	left := pollBytes
	for _, p := range s.parts {
		if len(s.list) >= s.most || left <= 0 {
			pos.places[p.id] = p.from
			page.More = page.More || !s.fresh
			continue
		}
		at, more, err := s.lookAt(ctx, p, &left)
		if err != nil {
			return err
		}
		pos.places[p.id] = at
		page.More = page.More || more
	}
	for i := range s.list {
		if ev, ok := s.groupEvent(s.list[i].p, &s.list[i].g, position{}); ok {
			page.Events = append(page.Events, ev)
		}
	}
	page.Truncated = page.Truncated || s.lost
	page.Cursor = pos.encode(s.spec.hash)
	return ctx.Err()
}

// lookAt reads one terminal of a poll and returns the place up to which it has read.
func (s *Sub) lookAt(ctx context.Context, p *part, left *int) (at place, more bool, err error) {
	t, err := s.e.opts.Terminals.Open(p.id)
	if err != nil {
		return p.from, false, nil // withdrawn meanwhile
	}
	if s.spec.kind.family == ofExits {
		if s.fresh {
			p.at = place{}
			if t.Info().Exit != nil {
				p.at = place{off: 1}
			}
			return p.at, false, nil
		}
		s.noteExit(p, t.Info())
		return p.at, false, nil
	}
	var w *watch
	if s.fresh {
		if w, err = newWatchNow(t); err != nil {
			return p.from, false, nil
		}
		defer w.rd.Close()
		w.settle(p)
		return w.place(p), false, nil
	}
	if w, err = newWatch(t, p.from); err != nil {
		return p.from, false, nil
	}
	defer w.rd.Close()
	w.parts = []*part{p}
	from := w.off
	more = w.step(*left)
	*left -= int(w.off - from)
	if tells := (teller{w, p}); !more && tells.waits() {
		if err := agenttools.Follow(ctx, w.rd, tells); ctx.Err() != nil {
			return p.from, false, err
		}
	}
	return w.place(p), more, nil
}

// teller is a watch of a poll, which follows its terminal only for the unfinished line.
type teller struct {
	*watch
	p *part
}

// See implements agenttools.Follower.
func (t teller) See(ev agenttools.Event) bool { return t.watch.See(ev) && t.waits() }

// Stand implements agenttools.Follower.
func (t teller) Stand() bool {
	t.stand()
	return false
}

// waits reports whether the unfinished line matches, and was not told.
func (t teller) waits() bool {
	q := t.p.sub.spec.pattern
	return t.waiting() && t.shows(q) && time.Since(t.moved) < 2*stands
}

// Stream delivers events until ctx ends, the subscription does, or out fails. It returns
// nil when nothing more can come, as for a terminal that was forgotten after its exit; an
// *Error for a bad request and when the subscription was ended; and the error of ctx or
// out.
func (e *Engine) Stream(ctx context.Context, r *Request, out Out) error {
	s, truncated, err := e.open(r, false)
	if err != nil {
		return err
	}
	if s.src == nil && s.spec.of != "" && s.parts[s.spec.of] == nil {
		return withdrawn()
	}
	s.applying.Lock() // until start, which begins what open has found and nobody else
	if err := e.enter(s); err != nil {
		s.applying.Unlock()
		if s.src != nil {
			s.src.leave(s)
		}
		return err
	}
	defer e.leave(s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	err = s.start()
	s.applying.Unlock()
	if err != nil {
		return err
	}
	if s.missed() {
		truncated = true
	}
	if err := out.Active(s.cursor(), truncated); err != nil {
		return err
	}
	return s.tell(ctx, out)
}

// start starts following the terminals that open has found. s.applying must be held.
func (s *Sub) start() error {
	for _, p := range s.all() {
		if !s.fresh {
			s.e.begin(p)
		} else if err := s.e.beginNow(p); err != nil && s.spec.of != "" {
			return err
		}
	}
	if s.src == nil {
		s.applyLocked(s.e.opts.Terminals.List()) // the roster may have seen the last change before enter
	}
	return nil
}

// tell delivers events to out, until Stream ends.
func (s *Sub) tell(ctx context.Context, out Out) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.missed() {
			if err := out.Active(s.cursor(), true); err != nil {
				return err
			}
		}
		more, wait, err := s.tellOne(out)
		switch {
		case err != nil:
			return err
		case more:
			continue
		}
		if over, why := s.ended(); over {
			if why != nil {
				return why
			}
			return nil
		}
		if s.beat.Swap(false) {
			if err := out.Heartbeat(s.cursor()); err != nil {
				return err
			}
		}
		wait = cmp.Or(wait, time.Hour)
		timer.Reset(wait)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// tellOne delivers the events that are due. more reports that there was one.
func (s *Sub) tellOne(out Out) (more bool, wait time.Duration, err error) {
	if s.src != nil {
		all, _ := s.entries(1)
		if len(all) == 0 {
			return false, 0, nil
		}
		return true, 0, out.Event(all[0])
	}
	p, g, wait := s.due(time.Now())
	if p == nil {
		return false, wait, nil
	}
	if ev, ok := s.groupEvent(p, &g, s.position()); ok {
		return true, 0, out.Event(ev)
	}
	return true, 0, nil
}

// Check reports, by its error, whether a request could be served now.
func (e *Engine) Check(r *Request) error {
	spec, err := e.spec(r)
	if err == nil && spec.of != "" && listedIn(e.opts.Terminals.List(), spec.of) == nil {
		return withdrawn()
	}
	return err
}
