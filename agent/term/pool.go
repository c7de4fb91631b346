package term

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tether/agent/flow"
	"tether/internal/change"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/record"
)

// Pool owns the terminals of one daemon. It is safe for concurrent use. Doors use it
// through As.
type Pool struct {
	opts   Options
	memory *record.Budget // of what all terminals keep

	inputs flow.Typing // when somebody last typed at any of the terminals

	mu        sync.Mutex
	terminals map[ID]*Terminal
	starting  map[ID]*Start       // spawns and adoptions under way
	ended     map[string][]string // by host, for Access.Ended
	version   uint64
	watch     change.Signal
	closed    bool
	aging     *time.Timer    // runs forget; nil before the first exit
	runs      sync.WaitGroup // Terminal.run
}

// NewPool returns an empty pool. Close ends it.
func NewPool(o Options) *Pool {
	o = o.withDefaults()
	return &Pool{opts: o, memory: record.NewBudget(o.TotalLogBytes, 0), terminals: map[ID]*Terminal{}, starting: map[ID]*Start{}, ended: map[string][]string{}}
}

// spawn starts a terminal for owner.
func (p *Pool) spawn(owner Actor, s Spec) (*Terminal, error) {
	t, err := p.begin(owner, s)
	if err != nil {
		s.ended()
		return nil, err
	}
	p.start(t, s.Ended)
	p.changed()
	return t, nil
}

// start runs t on a goroutine of its own. When t exits, that calls ended, if not nil.
func (p *Pool) start(t *Terminal, ended func()) {
	go func() {
		defer p.runs.Done()
		if !t.run() {
			if listed := p.drop(t); listed && p.opts.Left != nil && !t.life.isLeaving() {
				p.opts.Left(t.id)
			}
			return
		}
		if ended != nil {
			ended()
		}
		if !t.ending.known {
			t.observe(Act{Kind: ActExit})
		}
		p.forget()
		t.dismiss()
	}()
}

// drop removes a terminal that may run on outside the pool's control, and reports whether
// it was listed.
func (p *Pool) drop(t *Terminal) (listed bool) {
	p.mu.Lock()
	p.startedLocked(t.id)
	if listed = p.terminals[t.id] == t; listed {
		delete(p.terminals, t.id)
	}
	p.mu.Unlock()
	t.release()
	p.changed()
	return listed
}

// begin registers the terminal, starts the child, and lists the terminal.
func (p *Pool) begin(owner Actor, s Spec) (*Terminal, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	for _, host := range s.LendTo {
		if err := p.mayLend(Info{Owner: owner, Door: s.Door, Cwd: s.Cwd, StartCwd: s.Cwd}, host); err != nil {
			return nil, err
		}
	}
	if err := p.reserve(Start{ID: s.ID, Owner: owner, Unsigned: s.Unsigned}, p.opts.MaxTerminals); err != nil {
		return nil, err
	}
	short := p.name(&s)
	child, err := p.opts.Start(s.ID, pty.Command{
		Path: s.Argv[0], Args: s.Argv, Dir: s.dir(), Env: marked(owner, s), Size: s.Size, Feed: s.Feed, Limits: s.Limits,
	})
	if err != nil {
		p.release(s.ID)
		return nil, fmt.Errorf("start %q: %w", s.Command[0], err)
	}
	if f, ok := child.(interface{ Faults() string }); ok {
		s.AddNotice(f.Faults())
	}
	t := p.newTerminal(owner, s, child)
	t.origin.short = short
	err = t.introduce()
	if err == nil && !p.list(t) {
		err = ErrClosed
	}
	if err != nil {
		discard(child, p.opts.KillGrace)
		p.release(s.ID)
		return nil, err
	}
	return t, nil
}

// name gives a terminal that is being started the suggested name, if it has one, and
// returns that without the directory.
func (p *Pool) name(s *Spec) (short string) {
	if s.suggested.What == "" {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := map[string]bool{}
	for _, t := range p.terminals {
		if !isClosed(t.life.done) {
			taken[t.origin.name], taken[t.origin.short] = true, true
		}
	}
	for _, other := range p.starting {
		for _, name := range other.names {
			taken[name] = true
		}
	}
	s.Name, short = s.suggested.take(taken)
	p.starting[s.ID].names = [2]string{s.Name, short}
	return short
}

// list adds t to the terminals. It returns false if the pool was closed while t started:
// Close has not seen t then.
func (p *Pool) list(t *Terminal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.terminals[t.id] = t
	p.startedLocked(t.id)
	t.mu.Lock()
	for _, host := range t.loans.Hosts() {
		if !p.lendable(host) {
			t.loans.End(host)
		}
	}
	t.log.SetLent(!t.loans.Empty())
	t.watchLoansLocked()
	t.mu.Unlock()
	return true
}

func (p *Pool) mayLend(i Info, host string) error {
	if p.opts.MayLend == nil {
		return nil
	}
	return p.opts.MayLend(i, host)
}

func (p *Pool) lendable(host string) bool { return p.opts.Lendable == nil || p.opts.Lendable(host) }

// release gives back the reserved place of a terminal that did not start.
func (p *Pool) release(id ID) {
	p.mu.Lock()
	p.startedLocked(id)
	p.mu.Unlock()
	p.runs.Done()
}

// Start is a terminal that is being started or adopted: its child may run already, but it
// is not listed yet.
type Start struct {
	ID    ID
	Owner Actor // the agent that started it, even if the terminal is the person's now
	// Unsigned is Info.Unsigned.
	Unsigned bool
	Done     <-chan struct{} // closed when it is listed, or did not start
	done     chan struct{}
	names    [2]string // that it takes, see Pool.name
}

// Starting returns the terminals that are being started or adopted now, for callers that
// must know whose child a process is before it is listed.
func (a Access) Starting() []Start {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	var all []Start
	for _, s := range a.pool.starting {
		all = append(all, *s)
	}
	return all
}

// startedLocked removes a Start, which is listed now or did not start.
func (p *Pool) startedLocked(id ID) {
	if s := p.starting[id]; s != nil {
		close(s.done)
		delete(p.starting, id)
	}
}

// marked returns the environment of a terminal's child. It names the terminal and, for an
// agent's terminal, the agent, so that the child's processes can be identified when
// nobody knows the terminal any more. A person's terminal has no marks of other agents,
// which the person's shell may have because an agent has once started the program around
// it.
func marked(owner Actor, s Spec) []string {
	if owner.Role != RoleAgent {
		return append(proc.WithoutVendorMarks(s.Env), proc.Tag(string(s.ID)))
	}
	return append(slices.Clip(s.Env), proc.Tag(string(s.ID)), proc.AgentTag(owner.Name))
}

// reserve takes a place for a terminal that is about to start. It fails if most terminals
// are running or starting.
func (p *Pool) reserve(s Start, most int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := len(p.starting)
	for _, t := range p.terminals {
		select {
		case <-t.life.done:
		default:
			running++
		}
	}
	switch {
	case p.closed:
		return ErrClosed
	case p.terminals[s.ID] != nil || p.starting[s.ID] != nil:
		return &SpecError{"id", fmt.Errorf("%s is in use", s.ID)}
	case running >= most:
		return &SpecError{"limit", fmt.Errorf("%d terminals are running, the maximum; kill one first", running)}
	}
	s.done = make(chan struct{})
	s.Done = s.done
	p.starting[s.ID] = &s
	p.runs.Add(1)
	return nil
}

// forget removes exited terminals beyond the bounds, and sets a timer for when the next
// one is too old.
func (p *Pool) forget() {
	p.mu.Lock()
	gone, unkept, next := p.forgetLocked()
	switch {
	case next == 0 || p.closed:
	case p.aging == nil:
		p.aging = time.AfterFunc(next, p.forget)
	default:
		p.aging.Reset(next)
	}
	p.mu.Unlock()
	for _, t := range unkept {
		t.stopKeeping()
	}
	if p.memory.Over() { // a holder's log counts, too
		p.trim()
	}
	if len(gone) == 0 {
		return
	}
	for _, t := range gone {
		t.release()
		t.stopTelling()
	}
	p.relax()
	p.changed()
}

// forgetLocked removes exited terminals beyond the bounds. It returns them, the terminals
// whose holders must not keep them any more, and how much longer the oldest remaining
// exited one may be kept, 0 if there is none.
func (p *Pool) forgetLocked() (gone, unkept []*Terminal, next time.Duration) {
	var exited []Info
	for _, t := range p.terminals {
		if i := t.Info(); i.Exit != nil {
			exited = append(exited, i)
		}
	}
	slices.SortFunc(exited, func(a, b Info) int { return b.Exit.At.Compare(a.Exit.At) })
	for n, i := range exited {
		left := p.opts.KeepFor - time.Since(i.Exit.At)
		if n >= p.opts.KeepExited || left <= 0 {
			gone = append(gone, p.terminals[i.ID])
			delete(p.terminals, i.ID)
			continue
		}
		next = left
		if n >= maxKept {
			unkept = append(unkept, p.terminals[i.ID])
		}
	}
	return gone, unkept, next
}

// changed tells the watchers that the set of terminals, their lending or their state has
// changed.
func (p *Pool) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	p.watch.Raise()
}

// Changed waits until the pool's version differs from since and returns it. The version
// changes when a terminal starts, exits, is removed, lent or withdrawn; several changes
// may be one. 0 is never current.
func (p *Pool) Changed(ctx context.Context, since uint64) (uint64, error) {
	return change.Await(ctx, since, func() (uint64, <-chan struct{}) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.version + 1, p.watch.Next()
	})
}

// all returns the terminals, oldest first.
func (p *Pool) all() []*Terminal {
	p.mu.Lock()
	out := make([]*Terminal, 0, len(p.terminals))
	for _, t := range p.terminals {
		out = append(out, t)
	}
	p.mu.Unlock()
	slices.SortFunc(out, func(a, b *Terminal) int {
		return cmp.Or(a.origin.started.Compare(b.origin.started), cmp.Compare(a.id, b.id))
	})
	return out
}
