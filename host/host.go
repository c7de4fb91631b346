package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/web"
	"tether/jsonrpc"
	"tether/mcp"
)

// Host is an agent host. Its methods may be called from any goroutine.
type Host struct {
	opts Options        // set once
	log  zerolog.Logger // set once
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup // connections, and pumps of server-executed terminals

	epoch    time.Time    // when it was made; set once
	draining atomic.Bool  // see Drain
	rights   atomic.Int32 // see SetRights

	authLimit    authLimiter // of tokens; these have locks of their own
	links        authLimiter // of login links, apart: any page can send a browser to one
	logLimit     authLimiter // refusals of other kinds that are written down
	agents       mcp.Servers // for each principal that came
	logins       logins
	matching     *agenttools.Matching // problems, for the page
	messages     *messageMemory
	renders      chan struct{} // holds as many as are rendering a terminal for a download
	problemLooks looks         // of people at the page, at problems
	scripts      bool          // the page was built with all that its scripts need; without, it is the plain one

	looking   sync.Mutex // held while People is read
	mu        sync.Mutex // guards everything below, and all state documented as guarded by the host's mutex
	promptly  promptly
	scratch   []byte // of takeUpLocked: one decoded run, at most maxOutput bytes of text
	closed    bool
	seq       int64 // serverSeq of the newest envelope
	root      *channel
	terminals map[string]*terminal // by URI
	order     []*terminal          // the catalogue: by creation
	parked    []*terminal          // not in it: those of machines that are away, the longest first
	byID      map[string]*terminal // of both, by their short names
	listed    listing
	starting  map[string]bool     // URIs of server-executed terminals on their way
	clients   map[string]*client  // by clientId
	accounts  map[string]*account // by the names of principals
	memory    memory

	absent        terminal            // asked about for a URI that nobody has; set once
	roster        *Roster             // the known people; never nil
	groupsOf      map[string][]string // names of groups, by the ids of their members
	machineGrants map[machineKey]*machineAudience
	noMachine     *machineAudience // of machines to which nothing is granted; set once
	nobody        rules            // of audiences of nobody; set once
	sight         int64            // counts changes of visibility; a reader that knows another number checks its right again
	holds         map[*hold]struct{}
	listers       map[listerKey]*lister
	byOwner       map[string][]*lister // the same, by the ids of owners
	agentHolds    map[string]*hold     // those of agents, by the key of their servers
	round         int64                // of reindexLocked
	rowVersion    int64                // of the newest change of any row

	former formerOwners
	forgot time.Time // when forgetLocked last looked
	conns  map[*conn]struct{}

	lapsed context.Context // ends when rights have lapsed; a new one when they are good again
	lapse  context.CancelFunc

	nodes     nodeBook
	elsewhere nodeTools
	shares    map[string]*sharedLink // by id
	keeping   sync.Mutex             // held while shares are written
	unkept    bool                   // other nodes lack a change of the shares; guarded by keeping

	sharedShares SharedShares     // Options.Shares, where other nodes share it; nil: they do not. Set once
	keptShares   map[string]Share // as the cluster has them, as far as is known here; guarded by keeping

	sessions      map[string]*Session // by the URIs of their channels, two for each
	agentSessions map[string]*Session // those of agents, by their names
	toolsMoved    bool                // agents are about to be told of other tools
}

// New returns a host that serves the connections of ServeHTTP and ServeChannel. Close it.
func New(o Options) *Host {
	o = o.withDefaults()
	ctx, stop := context.WithCancel(context.Background())
	h := &Host{
		opts: o, log: *o.Logger, ctx: ctx, stop: stop, epoch: time.Now(), seq: o.firstSeq(),
		rowVersion: 1, // 0 stands for who knows nothing
		agents:     mcp.Servers{Max: maxAgents},
		logins:     logins{store: o.Logins, log: *o.Logger},
		messages:   newMessageMemory(o.ArrivalTime),
		renders:    make(chan struct{}, maxRenders),
		scripts:    web.Complete(),
		terminals:  make(map[string]*terminal),
		byID:       make(map[string]*terminal),
		clients:    make(map[string]*client),
		accounts:   make(map[string]*account),
		memory:     memory{most: o.MaxMemory},
		starting:   make(map[string]bool),
		conns:      make(map[*conn]struct{}),
		forgot:     time.Now(),
		roster:     &Roster{}, holds: make(map[*hold]struct{}), listers: make(map[listerKey]*lister), byOwner: make(map[string][]*lister),
		agentHolds: make(map[string]*hold), listed: listing{stale: make(map[*lister]struct{})},
		nobody: noRules(), noMachine: &machineAudience{from: noRules().from},
		shares: make(map[string]*sharedLink), sessions: make(map[string]*Session), agentSessions: make(map[string]*Session),
	}
	h.lapsed, h.lapse = context.WithCancel(context.Background())
	if o.Nodes != nil {
		h.authLimit.tell = map[string]int{}
	}
	h.matching = agenttools.NewMatching(nil, h.toolBug)
	h.root = h.newChannel(ahp.RootURI)
	h.absent = terminal{channel: h.newChannel(""), audience: audience{rules: h.nobody}, creator: &client{principal: Principal{Role: RoleMachine, Name: "-", Owner: "-"}}}
	if shared, ok := o.Logins.(SharedLogins); ok && o.Nodes != nil {
		h.logins.shared = shared
		h.work.Go(func() { h.logins.followShared(h.ctx) })
	}
	h.logins.restore()
	h.restoreShares()
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

// Close ends all connections, telling clients that the host goes away, and the server-executed terminals, and returns when everything the
// host started has ended. It may be called more than once.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	for c := range h.conns {
		c.closeLocked(closeGoingAway, "the host is going away")
	}
	for t := range h.everyLocked() {
		t.stopTimersLocked()
	}
	for _, s := range h.shares {
		s.stop()
	}
	h.mu.Unlock()
	h.stop()
	h.agents.Close()
	h.matching.Close()
	h.logins.close()
	h.work.Wait()
}

// ServeChannel serves one client on ch and returns when the connection has ended, with the reason. It asks for no token: a client with the
// channel is admitted.
func (h *Host) ServeChannel(ctx context.Context, ch jsonrpc.Channel) error {
	return h.serve(ctx, ch, remote{name: "channel"})
}

// nextSeqLocked allots the serverSeq of a new envelope.
func (h *Host) nextSeqLocked() int64 {
	h.seq++
	return h.seq
}
