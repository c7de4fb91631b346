package local

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/proc"
	"tether/platform/rawio"
)

// How many connections, at both doors together, are open at a time. Every wait, stream
// and attached client has one.
const (
	maxPersonConns = 1024
	maxAgentConns  = 64  // of one agent
	maxAgentsConns = 192 // of all agents
	// maxNobodysConns counts callers who are nobody, and connections over TCP that have
	// shown no token.
	maxNobodysConns = 64
	// leastPersonConns are kept for the person where few files may be open.
	leastPersonConns = 64
)

const (
	// sortAfter is when a connection on which no request has come is assigned to its
	// caller. Commands send one at once, and their callers are looked up only once, for
	// the request.
	sortAfter = 100 * time.Millisecond
	// askedAgain is after what time a process that opens more connections is looked up
	// again.
	askedAgain = time.Second
	// hurry is how long the head of a request, and then its body, may take, except for
	// the person's.
	hurry = 2 * time.Second
)

// conns are the open connections of both doors. Accepting never waits for them: a
// connection is accepted first, and closed or refused once its caller is known and has
// too many. So no caller keeps another from connecting.
type conns struct {
	person int // how many the person may have

	mu    sync.Mutex
	of    map[term.Actor]map[*conn]bool // those whose caller is known
	fresh *list.List                    // the others, oldest first
	who   func(peer) term.Actor         // for whom a peer acts; it may block, and is called without mu
	asked map[proc.ID]func() term.Actor // who of the processes that were looked up within askedAgain; called without mu
}

// newConns returns the table of a process that may open that many files; 0 means that the
// number is not known.
func newConns(files uint64, who func(peer) term.Actor) *conns {
	person := maxPersonConns
	if files > 0 { // as many again are for terminals and everything else
		person = max(leastPersonConns, min(maxPersonConns, int(min(files, 1<<20))/2-maxAgentsConns-maxNobodysConns))
	}
	return &conns{person: person, of: map[term.Actor]map[*conn]bool{}, fresh: list.New(), who: who, asked: map[proc.ID]func() term.Actor{}}
}

// conn is a connection in the table. Its state:
//
//	waiting ──(first byte)──▶ begun ──(head complete)──▶ busy ──(answered)──▶ waiting
//	   └──────────── closed, if its caller has too many ────┴──▶ taken over by a WebSocket or an MCP session until its end
type conn struct {
	net.Conn
	table *conns
	peer  func() peer // the process at the other end; the first call looks it up. nil over TCP
	quiet atomic.Bool // waiting: the next byte that is read begins a request

	// Guarded by table.mu.
	in     *list.Element // in table.fresh; nil if it counts for of, or has left the table
	of     term.Actor
	left   bool
	busy   bool
	served bool        // a request was answered
	since  time.Time   // when it was accepted, or its latest request began or was answered
	timer  *time.Timer // calls look
}

// connKeyOf is the key of a request's connection in its context.
type connKeyOf struct{}

// withConn stores the connection for its requests. It does not look up the peer: net/http
// accepts no connection meanwhile.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKeyOf{}, c)
}

// connOf returns the connection of a request; nil in tests without one.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKeyOf{}).(*conn)
	return c
}

// listener accepts connections of l into the table.
type listener struct {
	net.Listener
	table *conns
	peers bool // the system tells which process has opened a connection
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: rawio.Wrap(inner), table: l.table, since: time.Now()}
	c.quiet.Store(true)
	if l.peers {
		c.peer = sync.OnceValue(func() peer { return peerOf(c.Conn) })
	}
	l.table.add(c)
	return c, nil
}

// add takes a new connection into the table. One over TCP is nobody's until it shows a
// token.
func (t *conns) add(c *conn) {
	t.mu.Lock()
	var drop *conn
	if t.fresh.Len()+t.countLocked(func(term.Actor) bool { return true }) >= t.person+maxAgentsConns+maxNobodysConns {
		drop = t.oldestFreshLocked()
	}
	c.in = t.fresh.PushBack(c)
	c.timer = time.AfterFunc(sortAfter, c.look)
	t.mu.Unlock()
	if drop != nil {
		drop.Close()
	}
	if c.peer == nil {
		_ = t.assign(c, term.Actor{}) // if it is refused, its request is
	}
}

// oldestFreshLocked removes the oldest connection without a known caller, for the caller
// to close: one on which no request has come, if there is one. It returns nil if all
// callers are known.
func (t *conns) oldestFreshLocked() (oldest *conn) {
	for e := t.fresh.Front(); e != nil && (oldest == nil || oldest.busy); e = e.Next() {
		if c := e.Value.(*conn); oldest == nil || !c.busy {
			oldest = c
		}
	}
	if oldest != nil {
		t.removeLocked(oldest)
	}
	return oldest
}

// removeLocked takes a connection out of the table.
func (t *conns) removeLocked(c *conn) {
	if c.in != nil {
		t.fresh.Remove(c.in)
	}
	delete(t.of[c.of], c)
	if len(t.of[c.of]) == 0 {
		delete(t.of, c.of)
	}
	c.in, c.left = nil, true
}

// countLocked returns how many connections count for these actors.
func (t *conns) countLocked(of func(term.Actor) bool) (n int) {
	for a, some := range t.of {
		if of(a) {
			n += len(some)
		}
	}
	return n
}

// takeLocked removes the connection that has been in its state for the longest time,
// among those that count for these actors and may go, for the caller to close; nil if
// there is none.
func (t *conns) takeLocked(l connLimit, but *conn) (longest *conn) {
	for a, some := range t.of {
		if !l.counts(a) {
			continue
		}
		for c := range some {
			if c != but && l.drops(c) && (longest == nil || c.since.Before(longest.since)) {
				longest = c
			}
		}
	}
	if longest != nil {
		t.removeLocked(longest)
	}
	return longest
}

// connLimit is a limit on the connections of some actors.
type connLimit struct {
	counts func(term.Actor) bool
	max    int
	drops  func(*conn) bool // whether a connection that counts may make room for another
}

// limitsOf are the limits on an actor's connections, its own first.
func (t *conns) limitsOf(a term.Actor) []connLimit {
	own := func(o term.Actor) bool { return o == a }
	idle := func(c *conn) bool { return !c.busy && c.quiet.Load() }
	switch a.Role {
	case term.RoleUser:
		return []connLimit{{own, t.person, idle}}
	case term.RoleAgent:
		return []connLimit{{own, maxAgentConns, idle}, {isAgent, maxAgentsConns, idle}}
	}
	return []connLimit{{own, maxNobodysConns, func(c *conn) bool { return !c.busy }}}
}

func isAgent(a term.Actor) bool { return a.Role == term.RoleAgent }

// assign makes a connection count for an actor. If that has as many as it may, its
// connection that has been idle for the longest time is closed; if none is idle, the
// error says so.
func (t *conns) assign(c *conn, to term.Actor) *localapi.Error {
	t.mu.Lock()
	drop, err := t.assignLocked(c, to)
	t.mu.Unlock()
	if drop != nil {
		drop.Close()
	}
	return err
}

// assignLocked is assign, and leaves it to the caller to close drop.
func (t *conns) assignLocked(c *conn, to term.Actor) (drop *conn, err *localapi.Error) {
	if c == nil || c.left || c.in == nil && c.of == to {
		return nil, nil
	}
	for _, l := range t.limitsOf(to) {
		open := t.countLocked(l.counts)
		if c.in == nil && l.counts(c.of) {
			open-- // itself
		}
		if open < l.max {
			continue
		}
		if drop = t.takeLocked(l, c); drop == nil {
			return nil, tooMany(to, len(t.of[to]), l.max)
		}
	}
	t.removeLocked(c)
	if t.of[to] == nil {
		t.of[to] = map[*conn]bool{}
	}
	t.of[to][c] = true
	c.of, c.left = to, false
	return drop, nil
}

// tooMany refuses an actor with so many connections open, where max are allowed.
func tooMany(a term.Actor, open, max int) *localapi.Error {
	e := &localapi.Error{Code: localapi.CodeLimit, Hint: "end some of its waits, streams and attached clients, or wait until they end"}
	e.Message = fmt.Sprintf("%s has %d connections to the daemon open, the maximum", a, open)
	switch {
	case a == term.User:
		e.Message = fmt.Sprintf("your programs have %d connections to the daemon open, the maximum", open)
	case a.Role == term.RoleAgent && open < max:
		e.Message = fmt.Sprintf("all agents together have %d connections to the daemon open, the maximum; %s has %d of them", max, a, open)
	}
	return e
}

// Read implements net.Conn. The first byte after a pause begins a request.
func (c *conn) Read(p []byte) (int, error) {
	if c.peer != nil {
		c.peer() // here, in the connection's own goroutine
	}
	n, err := c.Conn.Read(p)
	if n > 0 && c.quiet.CompareAndSwap(true, false) {
		c.table.mu.Lock()
		defer c.table.mu.Unlock()
		c.since = time.Now()
		if c.in == nil && c.of != term.User {
			c.timer.Reset(hurry)
		}
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.table.mu.Lock()
	c.table.removeLocked(c)
	c.timer.Stop()
	c.table.mu.Unlock()
	return c.Conn.Close()
}

// moved is http.Server's ConnState.
func moved(nc net.Conn, to http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	switch to {
	case http.StateActive:
		c.busy = true
		c.quiet.Store(false)
	case http.StateIdle:
		c.busy, c.served, c.since = false, true, time.Now()
		c.quiet.Store(true)
		if c.in != nil { // its requests were refused before their caller was looked up
			c.timer.Reset(sortAfter)
		}
	}
}

// look assigns a connection without a request to its caller, and closes it if its caller
// has too many, or has taken too long to send a head.
func (c *conn) look() {
	t := c.table
	t.mu.Lock()
	unknown := c.in != nil && !c.busy
	t.mu.Unlock()
	var is term.Actor
	if unknown {
		is = t.ask(c.peer())
	}
	t.mu.Lock()
	var drop *conn
	if unknown && c.in != nil { // otherwise a request has come meanwhile, or its end
		var full *localapi.Error
		if drop, full = t.assignLocked(c, is); full != nil {
			drop = c
		}
	}
	late := !c.left && !c.busy && c.of != term.User && !(c.served && c.quiet.Load())
	if left := hurry - time.Since(c.since); late && left > 0 {
		c.timer.Reset(left)
		late = false
	}
	t.mu.Unlock()
	if late {
		c.Close()
	}
	if drop != nil {
		drop.Close()
	}
}

// ask returns for whom a process acts. It may block, as who does.
func (t *conns) ask(p peer) term.Actor {
	if p.err != nil {
		return term.Actor{}
	}
	t.mu.Lock()
	ask, who := t.asked[p.ID], t.who
	if ask == nil {
		ask = sync.OnceValue(func() term.Actor { return who(p) })
		t.asked[p.ID] = ask
		time.AfterFunc(askedAgain, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(t.asked, p.ID)
		})
	}
	t.mu.Unlock()
	return ask()
}

// counts returns how many connections the callers that fit have: the agents, those with
// the most first, then the person, then nobody.
func (t *conns) counts(fits func(term.Actor) bool) []localapi.Connections {
	open := map[term.Actor]int{}
	t.mu.Lock()
	for a, some := range t.of {
		if fits(a) {
			open[a] = len(some)
		}
	}
	t.mu.Unlock()
	var all []localapi.Connections
	for _, a := range slices.SortedFunc(maps.Keys(open), func(a, b term.Actor) int {
		return cmp.Or(cmp.Compare(b.Role, a.Role), cmp.Compare(open[b], open[a]), strings.Compare(a.Name, b.Name))
	}) {
		all = append(all, localapi.Connections{Of: a.String(), Open: open[a], Max: t.limitsOf(a)[0].max})
	}
	return all
}

// crowded returns the agents that have as many connections as one may have, or all agents
// if they have as many as all may have together.
func (t *conns) crowded() []localapi.Connections {
	all, sum := t.counts(isAgent), 0
	for _, c := range all {
		sum += c.Open
	}
	if sum >= maxAgentsConns {
		return all
	}
	return slices.DeleteFunc(all, func(c localapi.Connections) bool { return c.Open < c.Max })
}
