package events

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"tether/agenttools"
	"tether/internal/retry"
)

// Bounds for one principal, and the intervals of idle work.
const (
	DefaultStreams = 64
	DefaultLeases  = 256
	// Heartbeat is how often each stream gets a heartbeat; one ticker serves all streams.
	// The protocol requires one at least every 30 s.
	Heartbeat = 25 * time.Second
	// settleRoster is the shortest time between two reads of the list of terminals.
	settleRoster = 20 * time.Millisecond
	// lookAtRoster is how often the list is read if its changes are not announced.
	lookAtRoster = 2 * time.Second
	portsEvery   = 2 * time.Second
)

// Options configures an Engine. Terminals is required; the optional interfaces of
// agenttools that it implements decide which kinds are available.
type Options struct {
	Terminals agenttools.Terminals
	// Machine is the name of the machine that all terminals are on, see
	// agenttools.Options.
	Machine string
	// Machines reports that the terminals belong to several machines, which come and go.
	Machines bool
	// Ports returns the ports on which programs of terminals listen, by terminal; nil if
	// that is not known. A call may take some milliseconds.
	Ports func() (map[string][]Port, error)
	// Problems finds problems; nil if nobody looks for them. The engine does not close
	// it.
	Problems *agenttools.Matching
	// Streams and Leases bound the streams, and the conditions that are watched for
	// polls; 0 means DefaultStreams and DefaultLeases.
	Streams, Leases int
	// Bug, if not nil, is called after a panic caused by output. It must not block for
	// long.
	Bug func(what string, stack []byte)
}

// Port is a TCP port that a program listens on.
type Port struct {
	Number  int
	Address string // host:port at which programs of this machine reach it
}

// Engine reports events to one principal. It is safe for concurrent use.
//
// Goroutines: one that looks at the list of terminals and one for heartbeats while there
// are subscriptions; one per terminal that is read for lines or commands, and for each
// condition of the moment one, or one per terminal. Close waits for all.
type Engine struct {
	opts  Options
	kinds []Kind

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running bool // roster and heartbeats
	subs    map[*Sub]bool
	watches map[watchKey]*watch
	sources map[uint32]*source // by hash of their specs

	portsMu   sync.Mutex // held while ports are read
	portsAt   time.Time
	portsLast map[string][]Port
	portsErr  error
}

// watchKey identifies a watch: by its terminal and by how it reads. Patterns without a
// literal are slow and have a watch of their own, so that they do not delay others.
type watchKey struct {
	id   string
	slow bool
}

// New returns an engine without subscriptions. The caller must Close it.
func New(o Options) *Engine {
	o.Streams = cmp.Or(o.Streams, DefaultStreams)
	o.Leases = cmp.Or(o.Leases, DefaultLeases)
	e := &Engine{opts: o, subs: map[*Sub]bool{}, watches: map[watchKey]*watch{}, sources: map[uint32]*source{}}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for _, k := range kinds() {
		if e.has(k.Name) {
			k.Delivery = []string{"poll", "push"}
			e.kinds = append(e.kinds, k)
		}
	}
	return e
}

// has reports whether events of a kind are available.
func (e *Engine) has(kind string) bool {
	switch kind {
	case PortOpened, PortClosed:
		return e.opts.Ports != nil
	case Problems:
		return e.opts.Problems != nil
	case MachineAway, MachineBack:
		return e.opts.Machines
	case VerdictChanged:
		return e.judges() != nil
	}
	return true
}

// judges returns who judges the terminals' runs, nil if nobody does.
func (e *Engine) judges() agenttools.Judges {
	if k, ok := e.opts.Terminals.(agenttools.Keeper); ok {
		j, _ := k.Runs().(agenttools.Judges)
		return j
	}
	return nil
}

// Kinds returns the available kinds. The caller must not change them.
func (e *Engine) Kinds() []Kind { return e.kinds }

// Busy reports whether anybody is subscribed.
func (e *Engine) Busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.subs) > 0
}

// Close ends all subscriptions and waits for their goroutines.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	e.wg.Wait()
}

// enter adds a subscription.
func (e *Engine) enter(s *Sub) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return context.Canceled
	}
	if len(e.subs) >= e.opts.Streams {
		return &Error{Reason: ResourceExhausted, Text: "too many streams are open; end some, or poll", Data: map[string]any{"limit": "streams", "max": e.opts.Streams}}
	}
	e.subs[s] = true
	e.runLocked()
	return nil
}

// runLocked starts the work that all subscriptions share.
func (e *Engine) runLocked() {
	if e.running {
		return
	}
	e.running = true
	e.wg.Go(e.roster)
	e.wg.Go(e.heartbeats)
}

// leave removes a subscription, and ends work that only it has needed.
func (e *Engine) leave(s *Sub) {
	e.mu.Lock()
	delete(e.subs, s)
	e.mu.Unlock()
	s.applying.Lock()
	defer s.applying.Unlock()
	s.left = true
	for _, p := range s.all() {
		e.detach(p)
	}
	if s.src != nil {
		s.src.leave(s)
	}
}

// heartbeats wakes each stream from time to time.
func (e *Engine) heartbeats() {
	for retry.Wait(e.ctx, Heartbeat) {
		for _, s := range e.all() {
			s.beat.Store(true)
			s.signal()
		}
	}
}

func (e *Engine) all() []*Sub {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.subs))
}

// roster applies each change of the list of terminals.
func (e *Engine) roster() {
	watchable, _ := e.opts.Terminals.(agenttools.Watchable)
	for version := uint64(0); e.ctx.Err() == nil; {
		pause := lookAtRoster
		if watchable != nil {
			var err error
			if version, err = watchable.Changed(e.ctx, version); err != nil {
				return
			}
			pause = settleRoster
		}
		e.apply()
		if !retry.Wait(e.ctx, pause) {
			return
		}
	}
}

// apply updates all subscriptions to the present list.
func (e *Engine) apply() {
	subs := e.all()
	e.mu.Lock()
	sources := slices.Collect(maps.Values(e.sources))
	e.mu.Unlock()
	list := e.opts.Terminals.List() // after subs: a terminal that a subscription has seen is not missing in it
	for _, s := range subs {
		if s.src == nil {
			s.apply(list)
			continue
		}
		switch i := listedIn(list, s.spec.of); {
		case s.spec.of == "":
		case i == nil:
			s.finish(withdrawn())
		case i.Exit != nil && s.spec.kind.Name != VerdictChanged: // that comes after the exit
			s.finish(nil)
		}
	}
	for _, src := range sources {
		src.apply(list)
	}
}

func listedIn(list []agenttools.Info, id string) *agenttools.Info {
	if at := slices.IndexFunc(list, func(i agenttools.Info) bool { return i.ID == id }); at >= 0 {
		return &list[at]
	}
	return nil
}

// apply starts following terminals that are new to the subscription, and stops following
// those that are gone.
func (s *Sub) apply(list []agenttools.Info) {
	s.applying.Lock()
	defer s.applying.Unlock()
	if !s.left {
		s.applyLocked(list)
	}
}

// applyLocked is apply with s.applying held.
func (s *Sub) applyLocked(list []agenttools.Info) {
	there := map[string]bool{}
	for _, i := range list {
		if !s.spec.covers(i) {
			continue
		}
		there[i.ID] = true
		s.mu.Lock()
		p := s.parts[i.ID]
		if p == nil {
			p = &part{sub: s, id: i.ID, from: s.later[i.ID]}
			p.at = p.from
			delete(s.later, i.ID)
			s.parts[i.ID] = p
			s.mu.Unlock()
			s.e.begin(p)
		} else {
			stale := p.watch != nil && p.watch.dead.Load()
			s.mu.Unlock()
			if stale {
				s.e.detach(p)
				s.mu.Lock()
				p.from, p.told = p.at, toldLine{}
				s.mu.Unlock()
				s.e.begin(p)
			}
		}
		s.noteExit(p, i)
	}
	s.mu.Lock()
	var gone []*part
	for id, p := range s.parts {
		if !there[id] {
			gone = append(gone, p)
			delete(s.parts, id)
		}
	}
	s.mu.Unlock()
	for _, p := range gone {
		s.e.detach(p)
		s.mu.Lock()
		if s.later == nil {
			s.later = map[string]place{}
		}
		if len(s.later) < maxPlaces && !p.exited {
			s.later[p.id] = p.at
			if p.group.n > 0 {
				s.later[p.id] = p.before
			}
		}
		s.mu.Unlock()
		switch {
		case s.spec.of != p.id:
		case p.exited:
			s.finish(nil)
		default:
			s.finish(withdrawn())
		}
	}
}

// noteExit records that a terminal has exited, and reports it if the subscription is for
// exits.
func (s *Sub) noteExit(p *part, i agenttools.Info) {
	if i.Exit == nil {
		return
	}
	s.mu.Lock()
	news := p.at.off == 0 && s.spec.kind.family == ofExits
	if news {
		p.at = place{off: 1}
	}
	s.mu.Unlock()
	if news && s.spec.wantsExit(i.Exit) {
		s.match(p, match{start: i.End, end: i.End, exit: i.Exit, after: place{off: 1}, at: i.Exit.At})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.exited = true // after the match, since a subscription to one terminal ends with it
	s.signal()
}
