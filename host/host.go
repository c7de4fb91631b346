package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host/admission"
	"tether/host/agents"
	"tether/host/channel"
	"tether/host/link"
	"tether/host/login"
	"tether/host/page"
	"tether/host/ports"
	"tether/host/rights"
	"tether/host/runs"
	"tether/host/sessions"
	"tether/host/share"
	"tether/host/shells"
	"tether/internal/bounded"
	"tether/jsonrpc"
	"tether/record"
)

// Host is an agent host. Its methods may be called from any goroutine.
type Host struct {
	opts Options        // set once
	log  zerolog.Logger // set once
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup // connections, and pumps of server-executed terminals

	epoch    time.Time   // when it was made; set once
	draining atomic.Bool // see Drain

	checks   *admission.Checks // in front of all doors; set once
	gate     *admission.Gate   // likewise
	page     *page.Page        // set once; has the table of the doors
	creates  bounded.Rates     // limits new terminals of machines, by name
	agents   *agents.Door      // set once
	logins   *login.Table      // set once
	messages *link.Memory
	asks     bounded.Slots // of requests under way at the doors for agents and people, by name
	shares   *share.Book
	runs     *runs.Runs
	ports    *ports.Ports

	looking   sync.Mutex // held while People is read
	mu        sync.Mutex // guards everything below, and all state documented as guarded by the host's mutex
	closed    bool
	envelopes *channel.Order
	root      *channel.Channel
	terminals map[string]*terminal // by URI
	order     []*terminal          // the catalogue: by creation
	parked    []*terminal          // not in the catalogue: terminals of machines that are away, the longest first
	byID      map[string]*terminal // of both, by their short names
	listed    listing
	starting  map[string]bool     // URIs of server-executed terminals that are being started
	clients   map[string]*client  // by clientId
	accounts  map[string]*account // by the names of principals
	memory    *record.Budget      // of what terminals print, and of what waits for observers

	roster     *rights.Directory // the known people; never nil
	sight      int64             // counts changes of visibility; a reader that has seen another number checks its right again
	holds      map[*hold]struct{}
	listers    map[listerKey]*lister
	byOwner    map[string][]*lister // the same, by the ids of owners
	round      int64                // of reindexLocked
	rowVersion int64                // of the newest change of any row

	former bounded.Map[string, owner] // owners of removed terminals, by their URIs, of the newest of them
	forgot time.Time                  // when forgetLocked last looked
	conns  map[*conn]struct{}
	names  rights.Names // set once

	nodes nodeBook

	sessions   *sessions.Book
	callers    *sessions.Agents // set once
	shellTools *shells.Tools    // set once; nil: agents use no shells
}

// New returns a host that serves the connections of ServeHTTP and ServeChannel. Close it.
func New(o Options) *Host {
	o = o.withDefaults()
	ctx, stop := context.WithCancel(context.Background())
	h := &Host{
		opts: o, log: *o.Logger, ctx: ctx, stop: stop, epoch: time.Now(),
		rowVersion: 1, // 0 means that a client has no version yet
		creates:    bounded.Rates{Burst: max(createBurst, o.MaxTerminals), Every: time.Second / createRate},
		messages:   link.NewMemory(o.ArrivalTime),
		asks:       bounded.Slots{Each: mostPerName(o)},
		terminals:  make(map[string]*terminal),
		byID:       make(map[string]*terminal),
		clients:    make(map[string]*client),
		accounts:   make(map[string]*account),
		memory:     record.NewBudget(o.MaxMemory, o.MaxMemory/8),
		names:      rights.Names{Valid: o.Named},
		starting:   make(map[string]bool),
		conns:      make(map[*conn]struct{}),
		forgot:     time.Now(),
		roster:     rights.NewDirectory(&rights.Roster{}), holds: make(map[*hold]struct{}), listers: make(map[listerKey]*lister), byOwner: make(map[string][]*lister),
		listed: listing{stale: make(map[*lister]struct{})},
	}
	shared, _ := o.Logins.(rights.SharedLogins)
	h.gate = admission.NewGate()
	if o.Nodes == nil {
		h.gate, shared = &admission.Gate{}, nil
	}
	h.logins = login.New(login.Options{Store: o.Logins, Shared: shared, Token: o.Token, Log: h.log})
	h.openShares()
	h.checks = admission.New(admission.Options{Token: o.Token, Access: o.Access, Logins: h.logins, Guest: h.shares.Known, Origins: o.Origins, Secure: o.Secure, Nodes: o.Nodes != nil, Log: h.logRefusal})
	h.runs = runs.New(runs.Options{Machines: runsMachines{h}, Nodes: o.Nodes, Log: h.log})
	h.openPorts()
	h.openAgents()
	h.page = page.New(h.pageOptions())
	h.envelopes = channel.NewOrder(&h.mu, o.firstSeq(), channel.Limits{Bytes: o.LogBytes, Count: o.LogCount, HoldTime: o.HoldTime})
	h.root = h.envelopes.NewChannel(ahp.RootURI)
	h.openSessions()
	h.root.Whole = true
	if shared != nil {
		h.work.Go(func() { h.every(lookEvery, h.logins.FollowShared) })
	}
	h.logins.Restore()
	if o.People != nil {
		h.lookAtPeople()
		h.work.Go(func() { h.every(lookEvery, func() { h.lookAtPeople() }) })
	}
	if o.ShellGrace > 0 {
		h.work.Go(func() { h.endLonely(o.ShellGrace) })
	}
	return h
}

// Run waits until ctx ends and closes the host.
func (h *Host) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-h.ctx.Done():
	}
	h.Close()
	return nil
}

// Close tells clients that the host goes away, ends all connections and server-executed
// terminals, and returns when everything that the host has started has ended. It may be
// called more than once.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	for c := range h.conns {
		c.closeLocked(closeGoingAway, "the host is going away")
	}
	h.sessions.Close()
	for t := range h.everyLocked() {
		t.stopTimersLocked()
	}
	h.mu.Unlock()
	h.shares.Close()
	h.stop()
	h.agents.Close()
	h.page.Close()
	h.logins.Close()
	h.ports.Close()
	h.work.Wait()
}

// ServeChannel serves one client on ch and returns when the connection has ended, with
// the reason. It asks for no token: a client with the channel is admitted.
func (h *Host) ServeChannel(ctx context.Context, ch jsonrpc.Channel) error {
	return h.serve(ctx, ch, remote{name: "channel"})
}

// afterLocked calls do with the mutex after d, unless the timer that it puts at t is
// stopped, replaced or forgotten before.
func (h *Host) afterLocked(t **time.Timer, d time.Duration, do func()) {
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if *t == timer && !h.closed {
			do()
		}
	})
	*t = timer
}
