package events

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tether/agenttools"
	"tether/internal/change"
	"tether/internal/plain"
)

// apart is the shortest time between two events of one subscription about one terminal.
const apart = time.Second

// Sub is one subscription under way: a stream, or one answer of Poll.
type Sub struct {
	e    *Engine
	spec *Spec
	wake chan struct{} // 1 slot: there is something to deliver
	beat atomic.Bool   // a heartbeat is due

	applying sync.Mutex // held while the subscription is started or takes a list; before mu
	left     bool       // nothing more is to be followed; guarded by applying

	mu       sync.Mutex
	parts    map[string]*part // of kinds of the log, by terminal
	later    map[string]place // places from the cursor for terminals that are not listed, or not again yet
	polls    bool             // an answer of Poll: matches are not grouped
	most     int              // greatest number of matches, for Poll
	list     []listed
	lost     bool   // events were lost and the subscriber was not told yet
	fresh    bool   // it begins now, not at a cursor; set before it is started
	finished bool   // nothing more can come
	end      *Error // why it was ended; nil if nothing is wrong

	src *source // of kinds of the moment
	seq uint64  // number of the next entry of its journal; owned by the goroutine that delivers
}

// listed is one event of an answer of Poll.
type listed struct {
	p *part
	g group
}

// signal wakes the goroutine that delivers. It does not block.
func (s *Sub) signal() {
	change.Wake(s.wake)
}

// match adds a match.
func (s *Sub) match(p *part, m match) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.polls {
		if n := len(s.list); n == 0 || n < s.most {
			s.list = append(s.list, listed{p: p})
		} else if s.list[n-1].p != p {
			s.list = append(s.list, listed{p: p}) // at least one for each terminal
		}
		s.list[len(s.list)-1].g.add(m)
		return
	}
	if p.group.n == 0 {
		switch s.spec.kind.family {
		case ofLines:
			p.before = place{off: m.start}
		case ofCommands:
			p.before = place{m.after.off, m.after.aux - 1}
		default:
			p.before = place{}
		}
		s.signal()
	}
	p.group.add(m)
}

// lose records that events were lost.
func (s *Sub) lose(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.lost, s.lost = true, true
	s.signal()
}

// finish ends the subscription, with why or, if that is nil, because no more events can
// follow.
func (s *Sub) finish(why *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.finished {
		s.finished, s.end = true, why
	}
	s.signal()
}

// position returns the position up to which everything was delivered.
func (s *Sub) position() position {
	if s.src != nil {
		return position{epoch: s.src.epoch, seq: s.seq}
	}
	s.mu.Lock()
	pos := position{places: map[string]place{}}
	maps.Copy(pos.places, s.later) // of terminals that are not listed now: their machine may come back
	s.mu.Unlock()
	for _, p := range s.all() {
		pos.places[p.id] = p.place()
	}
	return pos
}

// all returns the parts.
func (s *Sub) all() []*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.parts))
}

// place returns the place up to which everything was delivered.
func (p *part) place() place {
	p.sub.mu.Lock()
	defer p.sub.mu.Unlock()
	for {
		w := p.watch
		switch {
		case p.group.n > 0:
			return p.before
		case w == nil:
			return p.at
		}
		p.sub.mu.Unlock()
		w.mu.Lock()
		p.sub.mu.Lock()
		if p.watch == w && p.group.n == 0 {
			defer w.mu.Unlock()
			return w.place(p)
		}
		w.mu.Unlock()
	}
}

// cursor returns position as a cursor for clients.
func (s *Sub) cursor() string {
	pos := s.position()
	return pos.encode(s.spec.hash)
}

// due returns a group that may be delivered now. wait is the time until another one may
// be delivered, 0 if none is held back.
func (s *Sub) due(now time.Time) (p *part, g group, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.parts {
		if one.group.n == 0 {
			continue
		}
		if left := one.sent.Add(apart).Sub(now); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		g, one.group, one.sent = one.group, group{}, now
		return one, g, 0
	}
	return nil, group{}, wait
}

// missed reports whether events were lost, once for each loss.
func (s *Sub) missed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost
	s.lost = false
	return lost
}

// ended reports whether the subscription has ended, and why.
func (s *Sub) ended() (over bool, why *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.group.n > 0 && s.end == nil {
			return false, nil // earlier events are delivered first
		}
	}
	if s.end == nil && !s.finished && s.spec.of != "" && s.src == nil {
		p := s.parts[s.spec.of]
		s.finished = p != nil && p.exited && (s.spec.kind.family == ofExits || p.watch != nil && p.watch.exited.Load())
	}
	return s.finished, s.end
}

// groupEvent returns the event for a group, with the cursor after it; ok is false if the
// principal may not see the terminal any more.
func (s *Sub) groupEvent(p *part, g *group, pos position) (Event, bool) {
	t, err := s.e.opts.Terminals.Open(p.id)
	if err != nil {
		return Event{}, false
	}
	i := t.Info()
	if x := g.first.exit; x != nil {
		g.first.line = lastLine(t, i)
	}
	ev := s.spec.event(g, i)
	if pos.places != nil {
		pos.places[p.id] = g.last.after
		text := pos.encode(s.spec.hash)
		ev.Cursor = &text
	}
	return ev, true
}

// lastLine returns the last line that a terminal has printed, "" if there is none near
// the end of its output.
func lastLine(t agenttools.Terminal, i agenttools.Info) string {
	rd, err := t.Read(max(i.Start, i.End-4<<10))
	if err != nil {
		return ""
	}
	defer rd.Close()
	var split plain.Lines
	var r plain.Renderer
	last := ""
	see := func(_, _ int64, line []byte) {
		if text := visible(&r, line); len(text) > 0 {
			last = string(text)
		}
	}
	for ev, err := range agenttools.Available(rd) {
		if err != nil || ev.Exited {
			break
		}
		split.Write(ev.Off-int64(len(ev.Data)), ev.Data, see)
		if ev.Off >= i.End {
			break
		}
	}
	see(0, 0, split.Part)
	return last
}
