package policy

import (
	"cmp"
	"fmt"
	"maps"
	"sync"
	"time"

	"tether/agent/config"
	"tether/agent/term"
)

// window is the time over which starts are counted.
const window = time.Minute

// maxFailed is how many starts may fail in a window. Failed starts take no place and do
// not count as starts, but each is written to the log: without the bound, an agent could
// push the rest of the log out by starting a program that does not exist.
const maxFailed = 120

// bound limits the terminals that one principal may start in one way. total bounds the
// background terminals of all agents together.
type bound struct{ perMinute, atOnce, total int }

// boundsOf returns the bounds of the actor's terminals: of those in the background if
// background is set, otherwise of the others. Zero values bound nothing.
func (b *rulebook) boundsOf(a term.Actor, l config.PolicyLimits, background bool) bound {
	if a.Role != term.RoleAgent {
		return bound{}
	}
	own := b.identityOf(a).config
	if background {
		return bound{cmp.Or(own.SpawnsPerMinute, l.SpawnsPerMinute), cmp.Or(own.Background, l.Background), l.BackgroundTotal}
	}
	return bound{cmp.Or(own.CommandsPerMinute, l.CommandsPerMinute), cmp.Or(own.Commands, l.Commands), 0}
}

// limits counts the starts of each principal. It is safe for concurrent use.
type limits struct {
	mu    sync.Mutex
	usage map[account]*usage
}

// account identifies starts that are counted together.
type account struct {
	actor      term.Actor
	background bool
}

// usage holds recent starts and running terminals.
type usage struct {
	starts []time.Time // within the window, oldest first
	failed []time.Time // failed starts within the window, oldest first
	places map[*place]struct{}
}

// place is permission to run one terminal. It is taken before the terminal is started, so
// that two requests at once cannot both take the last place.
type place struct {
	account account
	at      time.Time
	// Guarded by limits.mu.
	terminal term.Handle
	started  bool // terminal is known
}

// counted returns the actor under whom the actor's starts, questions and refusals are
// counted. All sessions of a host count as one, because a host can have as many sessions
// as it likes.
func counted(a term.Actor) term.Actor {
	if host := a.At(); host != "" {
		return term.AgentAt(host, "")
	}
	return a
}

// reserve takes a place, or returns why there is none.
func (l *limits) reserve(a account, b bound) (*place, *Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if refused := l.fullLocked(a, b, now); refused != nil {
		return nil, refused
	}
	u := l.usage[a]
	if u == nil {
		u = &usage{places: map[*place]struct{}{}}
		l.usage[a] = u
	}
	p := &place{account: a, at: now}
	u.starts = append(u.starts, now)
	u.places[p] = struct{}{}
	return p, nil
}

// full returns why there is no place, nil if there is one.
func (l *limits) full(a account, b bound) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fullLocked(a, b, time.Now())
}

func (l *limits) fullLocked(a account, b bound, now time.Time) *Refusal {
	l.sweepLocked(now)
	u := l.usage[a]
	if u == nil {
		u = &usage{}
	}
	switch {
	case b.perMinute > 0 && len(u.starts) >= b.perMinute:
		return &Refusal{Decision{Deny, "limits.rate", fmt.Sprintf("Spawn rate limit exceeded (max %d/minute)", b.perMinute)}, CodeRate}
	case b.perMinute > 0 && len(u.failed) >= maxFailed:
		return &Refusal{Decision{Deny, "limits.rate", fmt.Sprintf("%d starts have failed within a minute; try again later", maxFailed)}, CodeRate}
	case b.atOnce > 0 && len(u.places) >= b.atOnce:
		return &Refusal{Decision{Deny, "limits.places", fmt.Sprintf("Maximum concurrent agent terminals reached (%d)", b.atOnce)}, CodeTooMany}
	case b.total > 0 && l.backgroundLocked() >= b.total:
		return &Refusal{Decision{Deny, "limits.total", fmt.Sprintf("Maximum concurrent terminals of all agents reached (%d)", b.total)}, CodeTooMany}
	}
	return nil
}

// backgroundLocked counts the terminals that all agents have in the background.
func (l *limits) backgroundLocked() int {
	n := 0
	for a, u := range l.usage {
		if a.background {
			n += len(u.places)
		}
	}
	return n
}

// sweepLocked removes expired entries.
func (l *limits) sweepLocked(now time.Time) {
	for a, u := range l.usage {
		for len(u.starts) > 0 && now.Sub(u.starts[0]) >= window {
			u.starts = u.starts[1:]
		}
		for len(u.failed) > 0 && now.Sub(u.failed[0]) >= window {
			u.failed = u.failed[1:]
		}
		for p := range u.places {
			if p.started && !holds(p.terminal, a) {
				delete(u.places, p)
			}
		}
		if len(u.starts)+len(u.failed)+len(u.places) == 0 {
			delete(l.usage, a)
		}
	}
}

// give returns an unused place, as if it had not been taken: its start does not count.
func (l *limits) give(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.usage[p.account]
	if u == nil {
		return
	}
	delete(u.places, p)
	for i, at := range u.starts {
		if at.Equal(p.at) {
			u.starts = append(u.starts[:i:i], u.starts[i+1:]...)
			break
		}
	}
}

// free returns a place; its start still counts.
func (l *limits) free(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.usage[p.account]; u != nil {
		delete(u.places, p)
	}
}

// fail returns the place of a terminal that could not be started, and counts a failed
// start.
func (l *limits) fail(p *place) {
	l.give(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.usage[p.account]; u != nil {
		u.failed = append(u.failed, time.Now())
	}
}

// hold records which terminal has the place.
func (l *limits) hold(p *place, h term.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.terminal, p.started = h, true
}

// adopt takes a place, beyond any limit, for a terminal that already runs. A terminal
// that is adopted again keeps its one place.
func (l *limits) adopt(h term.Handle) {
	i := h.Info()
	p := &place{account: account{counted(i.Owner), !i.Visible}, terminal: h, started: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.usage {
		maps.DeleteFunc(u.places, func(p *place, _ struct{}) bool { return p.started && p.terminal.ID() == h.ID() })
	}
	u := l.usage[p.account]
	if u == nil {
		u = &usage{places: map[*place]struct{}{}}
		l.usage[p.account] = u
	}
	u.places[p] = struct{}{}
}

// holds reports whether the terminal runs and still belongs to the account's actor: a
// promoted terminal is the person's.
func holds(h term.Handle, a account) bool {
	i := h.Info()
	return i.Exit == nil && counted(i.Owner) == a.actor
}

// Resources bounds the processes of one agent. Zero values bound nothing.
type Resources struct {
	CPUTime   time.Duration // of each process
	Processes int           // of all
	Memory    int64         // bytes, of all
}

// TimeLimit returns how long a command of the agent that is not in the background may
// run; 0 means without limit.
func (e *Engine) TimeLimit(a term.Actor) time.Duration {
	if a.Role != term.RoleAgent {
		return 0
	}
	return time.Duration(e.config.Limits.CommandTime)
}

// Resources returns the bounds for the actor's commands. The person's are not bounded.
func (e *Engine) Resources(a term.Actor) Resources {
	if a.Role != term.RoleAgent {
		return Resources{}
	}
	l := e.config.Limits
	return Resources{CPUTime: time.Duration(l.CPUTime), Processes: l.Processes, Memory: int64(l.Memory)}
}
