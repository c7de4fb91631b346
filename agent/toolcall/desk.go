package toolcall

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
)

// Options configures a Desk. ClientID and Run are required.
type Options struct {
	ClientID string // under which the host knows this machine
	Machine  string // its name, shown to the host; "" is not shown
	Tools    []ahp.ToolDefinition
	// Run carries out a call of one of Tools. It returns soon when ctx ends. It is called
	// by many goroutines.
	Run func(context.Context, Call) Answer
	// Ended, if not nil, receives the end of each call. It must not call the desk.
	Ended func(Record)
	// Book is the file that records which calls have begun; with "" they are remembered
	// only in memory.
	Book   string
	Logger *zerolog.Logger // nil means silence
	// Parting is the longest time that switching off may take to end the running calls
	// and to tell the host. Default 2 s.
	Parting time.Duration
}

// Desk answers the calls of one host. Its methods are safe for concurrent use.
//
// Goroutines: the caller of Serve follows the sessions; Serve starts one that sends
// answers; and there is one for each running call, until Close.
type Desk struct {
	opts   Options // set at construction
	log    zerolog.Logger
	titles map[string]string // of the tools, by name
	book   book
	ctx    context.Context // of calls; ends with Close
	cancel context.CancelFunc
	runs   sync.WaitGroup // calls

	wake chan struct{} // 1 slot: Serve looks again
	tell chan struct{} // 1 slot: there is something in outbox

	mu       sync.Mutex
	on       bool
	idle     chan struct{} // closed when nothing is offered any more; nil while nothing is
	serving  int           // number of the connection, from 1; 0 while nothing is offered
	lastConn int
	sessions map[string]*session // that the host has, by URI
	calls    map[key]*call
	order    []*call // of calls, oldest first
	outbox   []*call // to be told on this connection
	telling  bool    // a call that was taken from outbox is being told
	records  []Record
	running  int
	limit    *rate.Limiter
	followed []string // sessions, on the last connection
	status   Status
	unbooked string // why the book cannot record calls, so that none can begin; "" if it can
}

// Status is a desk's present state.
type Status struct {
	On       bool
	Sessions int    // that are offered the tools now
	Running  int    // calls
	Ended    int64  // calls since New
	Refused  int64  // ended calls that were not carried out
	Ignored  int64  // requests that were not calls for this client, or were too many
	Problem  string // why nothing is offered or carried out although it is on, "" if all is well
}

// New returns a desk that is off. Close ends it.
func New(o Options) *Desk {
	d := &Desk{opts: o, log: zerolog.Nop(), titles: map[string]string{}, book: book{path: o.Book}, wake: make(chan struct{}, 1), tell: make(chan struct{}, 1),
		sessions: map[string]*session{}, calls: map[key]*call{}, limit: rate.NewLimiter(perMinute/60.0, perMinute)}
	if o.Logger != nil {
		d.log = *o.Logger
	}
	d.opts.Parting = cmp.Or(o.Parting, partTimeout)
	for _, t := range o.Tools {
		d.titles[t.Name] = cmp.Or(t.Title, t.Name)
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// On offers the tools to the host's sessions, now or with the next connection.
func (d *Desk) On() {
	d.mu.Lock()
	d.on, d.status.Problem = true, ""
	d.mu.Unlock()
	change.Wake(d.wake)
}

// Off withdraws the tools. Calls under way are cancelled and answered as failed. It
// returns when the host was told, at once if there is no connection, or when ctx ends.
func (d *Desk) Off(ctx context.Context) {
	d.mu.Lock()
	d.on = false
	idle := d.idle
	for _, c := range d.order {
		if !c.ended && c.cancel != nil {
			c.cancel(errOff)
		}
	}
	d.mu.Unlock()
	change.Wake(d.wake)
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Close cancels the calls that run and returns when they have ended. Serve must have
// returned.
func (d *Desk) Close() {
	d.cancel()
	d.runs.Wait()
}

// Status returns a snapshot.
func (d *Desk) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.On, s.Running, s.Problem = d.on, d.running, cmp.Or(s.Problem, d.unbooked)
	for _, one := range d.sessions {
		if one.joined {
			s.Sessions++
		}
	}
	return s
}

// Subscriptions returns the URIs of the sessions that the last connection followed, none
// while the desk is off.
func (d *Desk) Subscriptions() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.on {
		return nil
	}
	return slices.Clone(d.followed)
}

func (d *Desk) isOn() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.on
}

// Serve offers the tools over one connection, while the desk is on, until the connection
// or ctx ends. Envelope and Notification must be called with the connection's messages.
// Connections are served one after the other.
func (d *Desk) Serve(ctx context.Context, conn *client.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for ctx.Err() == nil && conn.Err() == nil {
		if d.isOn() {
			d.attend(ctx, conn)
			continue
		}
		select {
		case <-d.wake:
		case <-conn.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}
