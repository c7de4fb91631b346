package hosts

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/config"
	"tether/agent/term"
	"tether/agent/toolcall"
	"tether/agent/uplink"
	"tether/ahp/client"
	"tether/platform/roam"
	"tether/vocab"
)

// links keeps one link per paired host. It is safe for concurrent use.
type links struct {
	pool       *term.Pool
	version    string
	machine    string
	settings   config.Uplink
	log        *zerolog.Logger
	watch      func(context.Context, func(roam.Change)) error     // roam.Watch
	tools      func(name string) Tools                            // of a host; set before the first link
	desk       func(host, Tools) *toolcall.Desk                   // set before the first link
	up         func(name string, more int)                        // is told that a host has accepted this machine, and how often since it was told last; set before the first link
	watched    func(name string, id term.ID, who []vocab.Watcher) // may be nil; set before the first link
	checkout   func(host, dir string) vocab.Checkout
	hostGrants bool
	park       time.Duration
	atMost     func(time.Duration) time.Duration // bounds a wait; set before the first link

	mu      sync.Mutex
	all     map[string]*running // by the host's name
	watcher *running            // watches for moves of the machine; nil before the first link
}

// running is a link with the goroutine that keeps it up.
type running struct {
	clientID string
	link     *uplink.Link
	desk     *toolcall.Desk
	cancel   context.CancelFunc
	done     chan struct{} // closed when Run has returned
}

// watchMovesLocked begins to watch whether the machine has slept or its network has
// changed, for all links. Without links nothing is watched.
func (l *links) watchMovesLocked() {
	if l.watcher != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &running{cancel: cancel, done: make(chan struct{})}
	l.watcher = w
	go func() {
		defer close(w.done)
		_ = l.watch(ctx, l.moved) // ctx's error
	}()
}

func (l *links) moved(why roam.Change) {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.all))
	l.mu.Unlock()
	l.log.Info().Stringer("why", why).Msg("links are probed")
	for _, r := range all {
		r.link.Moved()
	}
	l.pool.Expire() // the machine may have slept
}

// upEvery is the shortest time between two reports that one host is up: a link may come
// and go every second.
const upEvery = time.Minute

// cameUp returns a function for the link's goroutine to call whenever the host accepts
// this machine. It reports that, at most once per upEvery.
func (l *links) cameUp(name string) func() {
	var reported time.Time // reported and more are used only by the link's goroutine
	var more int
	return func() {
		if now := time.Now(); reported.IsZero() || now.Sub(reported) >= upEvery {
			l.up(name, more)
			reported, more = now, 0
			return
		}
		more++
	}
}

// start links to a host and replaces a link of that name. If the replaced link had
// another clientId, its terminals are first withdrawn, which takes at most
// withdrawTimeout, and then lent again.
func (l *links) start(h host, e client.Endpoint) {
	anew := false
	if old := l.find(h.Name); old != nil && old.clientID != h.ClientID {
		old.link.Withdraw()
		l.withdrawn(h.Name)
		anew = true
	}
	l.stop(h.Name)
	ctx, cancel := context.WithCancel(context.Background())
	tools := l.tools(h.Name)
	desk := l.desk(h, tools)
	r := &running{clientID: h.ClientID, desk: desk, cancel: cancel, done: make(chan struct{}), link: uplink.New(uplink.Options{
		Name: h.Name, Endpoint: e, ClientID: h.ClientID,
		Terminals: l.pool.As(term.Host(h.Name)), Version: l.version, Machine: l.machine, OnDispose: h.OnDispose,
		AssumeClientTerminals: h.AssumeClientTerminals, Heartbeat: time.Duration(l.settings.Heartbeat), Logger: l.log,
		Anew: anew, Tools: desk, Up: l.cameUp(h.Name), HostGrants: l.hostGrants, Park: l.park, Watched: l.watchedAt(h.Name),
		Checkout: l.checkoutFor(h.Name), Runs: tools.Runs, Ports: tools.Ports,
	})}
	l.mu.Lock()
	l.all[h.Name] = r
	l.watchMovesLocked()
	l.mu.Unlock()
	go func() {
		defer close(r.done)
		_ = r.link.Run(ctx) // ctx's error
		desk.Close()
	}()
}

// watchedAt returns the function that receives a link's watchers, nil if nobody needs
// them.
func (l *links) watchedAt(name string) func(term.ID, []vocab.Watcher) {
	if l.watched == nil {
		return nil
	}
	return func(id term.ID, who []vocab.Watcher) { l.watched(name, id, who) }
}

// checkoutFor returns the function that finds the checkouts that a host may know, nil if
// it may know none.
func (l *links) checkoutFor(name string) func(dir string) vocab.Checkout {
	if l.checkout == nil {
		return nil
	}
	return func(dir string) vocab.Checkout { return l.checkout(name, dir) }
}

// stop ends the link of that name, if there is one, and waits for its end. Before, it
// withdraws the tools that sessions were offered.
func (l *links) stop(name string) {
	l.mu.Lock()
	r := l.all[name]
	delete(l.all, name)
	l.mu.Unlock()
	if r != nil {
		r.toolsOff(l.atMost(partWithin))
		r.cancel()
		<-r.done
	}
}

// withdrawn waits until the host of that name has disposed of the terminals that were
// withdrawn from it, for at most withdrawTimeout.
func (l *links) withdrawn(name string) {
	wait(l.atMost(withdrawTimeout), func() bool {
		s, ok := l.status(name)
		return !ok || s.State != uplink.StateOnline || s.Known == 0
	})
}

// find returns the link with that name, or nil.
func (l *links) find(name string) *running {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[name]
}

// retry makes the link of that name try to connect now.
func (l *links) retry(name string) {
	if r := l.find(name); r != nil {
		r.link.Nudge()
	}
}

// status returns the status of the link of that name.
func (l *links) status(name string) (uplink.Status, bool) {
	r := l.find(name)
	if r == nil {
		return uplink.Status{}, false
	}
	return r.link.Status(), true
}

// close ends all links once their hosts know the exits of all terminals, or after the
// time within.
func (l *links) close(within time.Duration) {
	l.mu.Lock()
	names := slices.Collect(maps.Keys(l.all))
	l.mu.Unlock()
	heard := func() bool {
		return !slices.ContainsFunc(names, l.owes)
	}
	wait(within, heard)
	var parting sync.WaitGroup
	for _, name := range names {
		parting.Go(func() { l.toolsOff(name) })
	}
	parting.Wait()
	for _, name := range names {
		l.stop(name)
	}
	l.mu.Lock()
	w := l.watcher
	l.mu.Unlock()
	if w != nil {
		w.cancel()
		<-w.done
	}
}

// owes reports whether the host is connected and has not been told yet of the exit of a
// terminal.
func (l *links) owes(name string) bool {
	s, ok := l.status(name)
	return ok && s.State == uplink.StateOnline && slices.ContainsFunc(s.Terminals, func(t uplink.TerminalStatus) bool {
		return !t.Over && t.Problem == ""
	})
}

// wait returns when cond is true or the time is up. It polls: links do not announce their
// progress, and the end of a daemon does not justify a mechanism for that.
func wait(within time.Duration, cond func() bool) {
	const look = 5 * time.Millisecond
	for end := time.Now().Add(within); !cond() && time.Now().Before(end); {
		time.Sleep(look)
	}
}
