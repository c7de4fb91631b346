package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

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
	"tether/host/terminals"
	"tether/internal/bounded"
	"tether/jsonrpc"
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
	agents   *agents.Door      // set once
	logins   *login.Table      // set once
	messages *link.Memory
	asks     bounded.Slots // of requests under way at the doors for agents and people, by name
	shares   *share.Book
	runs     *runs.Runs
	ports    *ports.Ports

	mu        sync.Mutex // guards everything below, and all state documented as guarded by the host's mutex
	closed    bool
	terminals *terminals.Book
	envelopes *channel.Order
	starting  map[string]bool // URIs of server-executed terminals that are being started
	connsOf   map[string]int  // the numbers of connections, by the names of principals

	conns map[*conn]struct{}
	names rights.Names // set once

	nodeConns map[string]map[string]int // connections of names that have many, by node

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
		messages: link.NewMemory(o.ArrivalTime),
		asks:     bounded.Slots{Each: mostPerName(o)},
		connsOf:  make(map[string]int),
		names:    rights.Names{Valid: o.Named},
		starting: make(map[string]bool),
		conns:    make(map[*conn]struct{}),
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
	h.openTerminals()
	h.openSessions()
	if shared != nil {
		h.work.Go(func() { h.every(terminals.LookEvery, h.logins.FollowShared) })
	}
	h.logins.Restore()
	if o.People != nil {
		h.terminals.LookAtPeople()
		h.work.Go(func() { h.every(terminals.LookEvery, func() { h.terminals.LookAtPeople() }) })
	}
	if o.ShellGrace > 0 {
		h.work.Go(func() { h.endLonely(o.ShellGrace) })
	}
	return h
}

// Terminals returns the terminals of the host, for the other nodes of its cluster.
func (h *Host) Terminals() *terminals.Book { return h.terminals }

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
		c.Close(closeGoingAway, "the host is going away")
	}
	h.sessions.Close()
	h.terminals.Close()
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

// openTerminals makes the book of terminals.
func (h *Host) openTerminals() {
	o := &h.opts
	s := terminals.Settings{Lock: &h.mu, Context: h.ctx, Go: h.work.Go, Order: h.envelopes, Names: &h.names, People: o.People, Log: h.log,
		Grace: o.Grace, Park: o.Park, Scrollback: o.Scrollback, MaxMemory: o.MaxMemory, MaxConnections: o.MaxConnections, MaxTerminals: o.MaxTerminals,
		Audit: h.auditOf, Taken: func(uri string) bool { return h.starting[uri] || h.sessions.Session(uri) != nil }, Renewed: h.renewedLocked}
	if o.Nodes != nil {
		s.Nodes, s.Wanted = true, o.Nodes.Wanted
	}
	h.terminals = terminals.NewBook(s)
}

// renewedLocked closes all connections, because views and the marker have changed.
func (h *Host) renewedLocked() {
	for c := range h.conns {
		for _, s := range c.subs {
			if !c.showsLocked(s) {
				s.withdrawn = true
				s.endLocked()
			}
		}
		c.Close(closeGoingAway, "who sees what has changed: connect again")
	}
	h.callers.ToolsChanged()
}
