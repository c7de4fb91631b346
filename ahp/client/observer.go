package client

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"tether/ahp"
	"tether/internal/change"
)

// Defaults of ObserverOptions.
const (
	DefaultContentLimit = 256 << 10 // bytes
	DefaultQueueLimit   = 1 << 20   // bytes
	DefaultPatience     = time.Second
	DefaultHeartbeat    = 20 * time.Second // between two pings
)

// ObserverOptions configures an Observer. ClientID and either Endpoint or Connect are
// required.
type ObserverOptions struct {
	Endpoint Endpoint
	ClientID string
	Info     ahp.Implementation

	// ContentLimit bounds the retained output of each terminal, in bytes. Beyond it the
	// oldest output is dropped, whole parts first. Default DefaultContentLimit.
	ContentLimit int
	// QueueLimit bounds the events of each terminal that wait for Next, in bytes. One
	// message may exceed it; then the observer reads nothing from the host for up to
	// Patience. If the events still exceed the limit, one Resync replaces them, and
	// reading continues. Default DefaultQueueLimit.
	QueueLimit int
	// Patience is how long a slow consumer may hold up the connection before each Resync.
	// It delays all terminals and the answers to pings. Default DefaultPatience; negative
	// means not at all.
	Patience time.Duration
	// Heartbeat is the time between two pings. If the host does not answer a ping within
	// the same time, the connection is closed. Default DefaultHeartbeat.
	Heartbeat time.Duration
	// Connect replaces the function Connect in tests.
	Connect func(context.Context, Endpoint, Options) (*Conn, error)
}

func (o ObserverOptions) withDefaults() ObserverOptions {
	if o.ContentLimit <= 0 {
		o.ContentLimit = DefaultContentLimit
	}
	if o.QueueLimit <= 0 {
		o.QueueLimit = DefaultQueueLimit
	}
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.Connect == nil {
		o.Connect = Connect
	}
	return o
}

// Observer follows a host's list of terminals and chosen terminals, across any number of
// connections. Next returns events; State and Terminals return the current state. Nothing
// is lost silently: if the consumer is too slow, or messages were lost with a connection,
// it gets a Resync.
//
// All methods may be called concurrently, except Next, which only one goroutine may call
// at a time.
//
// Goroutines: the caller of Run connects and subscribes. A connection's read goroutine
// reduces messages, and waits at most Patience for the consumer.
type Observer struct {
	opts   ObserverOptions // set at construction
	news   chan struct{}   // 1 slot: there may be an event
	room   chan struct{}   // 1 slot: a terminal has fewer waiting events
	change chan struct{}   // 1 slot: Run has something to do
	ended  chan struct{}   // closed by Run

	mu        sync.Mutex // guards the fields below; never held while blocking
	root      *root
	terminals map[string]*terminal // followed, by URI
	leaving   []string             // to be unsubscribed from
	sources   []source             // those that may have an event, in turn
	link      linkEvents
	err       error // the error that Run returned

	initial  *ahp.InitializeResult // of the connection to resume; nil = nothing to resume
	lastSeen int64                 // greatest ServerSeq of that host
	conn     *Conn                 // the connection being set up or served
	full     *terminal             // set while an envelope is applied, if the events of its terminal exceed their bound

	view        ahp.EnvelopeView // the one being applied
	scratch     []byte           // buffer in which terminal.output decodes
	lent, spare []byte           // Data of the last event that Next returned; a buffer to reuse, or nil
}

// NewObserver returns an Observer that does nothing until Run.
func NewObserver(opts ObserverOptions) *Observer {
	o := &Observer{opts: opts.withDefaults(), news: make(chan struct{}, 1), room: make(chan struct{}, 1),
		change: make(chan struct{}, 1), ended: make(chan struct{}), terminals: map[string]*terminal{}}
	o.root = &root{channel: channel{uri: ahp.RootURI, o: o}}
	o.root.body = o.root
	return o
}

// Follow begins to follow a terminal, listed or not. The first event about it is a
// Resync, or Gone if the host does not know it. Following it again changes nothing.
func (o *Observer) Follow(uri string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.terminals[uri] != nil {
		return
	}
	t := &terminal{channel: channel{uri: uri, o: o}, history: history{limit: o.opts.ContentLimit}}
	t.body = t
	t.listed = slices.ContainsFunc(o.root.state.Terminals, func(i ahp.TerminalInfo) bool { return i.Resource == uri })
	o.terminals[uri] = t
	o.wake()
}

// State returns the reduced state of a followed terminal, with at most ContentLimit of
// its output, and false if there is no state yet. While the link is down it returns the
// last known state.
func (o *Observer) State(uri string) (ahp.TerminalState, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.terminals[uri]
	if t == nil || !t.known {
		return ahp.TerminalState{}, false
	}
	return t.snapshot(), true
}

// Terminals returns the last known list of the host. The caller must not change it.
func (o *Observer) Terminals() []ahp.TerminalInfo {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.root.state.Terminals
}

// Next returns the next event. Events of one terminal come in order; several terminals
// take turns. Next blocks until there is an event or ctx ends. After Run has returned and
// all events were delivered, Next returns Run's error.
func (o *Observer) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok := o.next(); ok {
			return e, nil
		}
		select {
		case <-o.news:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-o.ended:
			if e, ok := o.next(); ok {
				return e, nil
			}
			return Event{}, o.err // set before ended was closed
		}
	}
}

func (o *Observer) next() (Event, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lent != nil {
		o.spare, o.lent = o.lent[:0], nil
	}
	for len(o.sources) > 0 {
		s := o.sources[0]
		o.sources[0] = nil
		o.sources = o.sources[1:]
		if e, ok := s.pop(); ok {
			o.sources = append(o.sources, s) // it may have more
			return e, true
		}
		*s.enlisted() = false
	}
	return Event{}, false
}

// enlist puts a source into the queue, unless it is there already, and wakes the
// consumer. The caller holds the mutex.
func (o *Observer) enlist(s source) {
	if q := s.enlisted(); !*q {
		*q = true
		o.sources = append(o.sources, s)
	}
	change.Wake(o.news)
}

// wake makes Run check for work.
func (o *Observer) wake() { change.Wake(o.change) }

// takeSpare returns an empty buffer that nobody else uses, or nil.
func (o *Observer) takeSpare() []byte {
	b := o.spare
	o.spare = nil
	return b
}

// dropLocked stops following t.
func (o *Observer) dropLocked(t *terminal) {
	delete(o.terminals, t.uri)
	o.leaving = append(o.leaving, t.uri)
	o.wake()
}

// goneLocked stops following t. The consumer gets Gone after all other events of t.
func (o *Observer) goneLocked(t *terminal, reason error) {
	if o.terminals[t.uri] != t {
		return
	}
	o.dropLocked(t)
	t.gone, t.reason = true, reason
	o.enlist(t)
}
