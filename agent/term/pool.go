package term

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agent/ring"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/shellint"
)

// Options configures a Pool. Zero values mean the defaults stated.
type Options struct {
	// Start runs a child on a pty; nil means platform/pty.Start.
	Start func(id ID, c pty.Command) (PTY, error)
	// LogBytes is how much of each terminal's output is kept, 64 KiB to
	// 1 GiB, default 4 MiB. Memory is taken as it fills.
	LogBytes int
	// Stall is how long one slow reader may hold a child, default 10 s.
	Stall time.Duration
	// KillGrace is the time between TERM and KILL, default 3 s.
	KillGrace time.Duration
	// KeepExited bounds the exited terminals kept for reading, default 50;
	// the oldest go first. KeepFor bounds their age, default 1 h.
	KeepExited int
	KeepFor    time.Duration
	// MaxTerminals bounds the running terminals, default 200.
	MaxTerminals int

	hostname string
}

const (
	minLogBytes = 64 << 10 // two of a pump's reads, so that no read is larger than a log
	maxLogBytes = 1 << 30
)

func (o Options) withDefaults() Options {
	if o.Start == nil {
		o.Start = func(_ ID, c pty.Command) (PTY, error) { return pty.Start(c) }
	}
	o.LogBytes = min(max(cmp.Or(o.LogBytes, 4<<20), minLogBytes), maxLogBytes)
	o.Stall = cmp.Or(o.Stall, 10*time.Second)
	o.KillGrace = cmp.Or(o.KillGrace, 3*time.Second)
	o.KeepExited = cmp.Or(o.KeepExited, 50)
	o.KeepFor = cmp.Or(o.KeepFor, time.Hour)
	o.MaxTerminals = cmp.Or(o.MaxTerminals, 200)
	o.hostname, _ = os.Hostname()
	return o
}

// localHost reports whether a cwd report that names host speaks of this
// machine.
func (o Options) localHost(host string) bool {
	return host == "" || host == "localhost" || strings.EqualFold(host, o.hostname)
}

// Pool owns the terminals of one daemon. It is safe for concurrent use.
// Doors use it through As.
type Pool struct {
	opts Options

	mu        sync.Mutex
	terminals map[ID]*Terminal
	starting  map[ID]bool // spawns under way
	version   uint64
	watch     chan struct{} // closed and replaced at each change
	closed    bool
	aging     *time.Timer    // runs forget; nil before the first exit
	runs      sync.WaitGroup // Terminal.run
}

// NewPool returns an empty pool. Close ends it.
func NewPool(o Options) *Pool {
	return &Pool{opts: o.withDefaults(), terminals: map[ID]*Terminal{}, starting: map[ID]bool{}, watch: make(chan struct{})}
}

// Spec says what to run.
type Spec struct {
	ID      ID       // "" mints one
	Command []string // argv as the person gave it; shown in lists
	// Argv, Env and Nonce are what is really run, when shell integration
	// changes it. Argv nil means Command. Env is the whole environment.
	Argv []string
	Env  []string
	// Nonce makes marks that carry it trusted, and no others. "" trusts none,
	// unless AnyMarks trusts all, as for a shell that marks by itself.
	Nonce    string
	AnyMarks bool
	Name     string // at most 256 bytes; "" means the base name of the command
	Cwd      string // absolute directory
	Size     Size   // zero means 80x24
	Private  bool
	OnSlow   OnSlow
	LendTo   []string // hosts
	// Ended, if not nil, is called once when the child has ended or could
	// not be started, to remove what was made for it.
	Ended func()
}

const maxName = 256 // bytes of a terminal's name

func (s *Spec) check() error {
	s.ID = cmp.Or(s.ID, newID())
	if len(s.Command) == 0 || s.Command[0] == "" {
		return &SpecError{"command", errors.New("no command was given")}
	}
	if s.Argv == nil {
		s.Argv = s.Command
	}
	s.Name = cmp.Or(s.Name, filepath.Base(s.Command[0]))
	if len(s.Name) > maxName || strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return &SpecError{"name", fmt.Errorf("%.40q must be at most %d bytes without control characters", s.Name, maxName)}
	}
	if s.Size == (Size{}) {
		s.Size = pty.DefaultSize
	}
	if err := checkSize(s.Size); err != nil {
		return err
	}
	if s.Private && len(s.LendTo) > 0 {
		return &SpecError{"private", ErrPrivate}
	}
	if !filepath.IsAbs(s.Cwd) {
		return &SpecError{"directory", fmt.Errorf("%q is not an absolute path", s.Cwd)}
	}
	return nil
}

// nonceOf is what the scanner is told: an unguessable nonce where nothing is
// to be trusted.
func (s *Spec) nonceOf() string {
	if s.AnyMarks {
		return ""
	}
	return cmp.Or(s.Nonce, string(newID())+string(newID()))
}

// spawn starts a terminal for owner.
func (p *Pool) spawn(owner Actor, s Spec) (*Terminal, error) {
	t, err := p.begin(owner, s)
	if err != nil {
		s.ended()
		return nil, err
	}
	go func() {
		defer p.runs.Done()
		defer s.ended()
		t.run()
		p.forget()
	}()
	p.changed()
	return t, nil
}

func (s *Spec) ended() {
	if s.Ended != nil {
		s.Ended()
	}
}

// begin starts the child and lists the terminal.
func (p *Pool) begin(owner Actor, s Spec) (*Terminal, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := p.reserve(s.ID); err != nil {
		return nil, err
	}
	child, err := p.opts.Start(s.ID, pty.Command{
		Path: s.Argv[0], Args: s.Argv, Dir: s.Cwd, Env: append(slices.Clip(s.Env), proc.Tag(string(s.ID))), Size: s.Size,
	})
	if err != nil {
		p.release(s.ID)
		return nil, fmt.Errorf("start %q: %w", s.Command[0], err)
	}
	t := p.newTerminal(owner, s, child)
	if !p.list(t) {
		discard(child, p.opts.KillGrace)
		p.release(s.ID)
		return nil, ErrClosed
	}
	return t, nil
}

// list puts t among the terminals, unless the pool was closed while it
// started: then Close has not seen it.
func (p *Pool) list(t *Terminal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	delete(p.starting, t.id)
	p.terminals[t.id] = t
	return true
}

// discard ends a child that no terminal took.
func discard(child PTY, grace time.Duration) {
	child.Kill(context.Background(), grace)
	child.Close()
}

// release gives back the place of a terminal that did not start.
func (p *Pool) release(id ID) {
	p.mu.Lock()
	delete(p.starting, id)
	p.mu.Unlock()
	p.runs.Done()
}

// reserve takes a place for a terminal that is about to start.
func (p *Pool) reserve(id ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := len(p.starting)
	for _, t := range p.terminals {
		select {
		case <-t.done:
		default:
			running++
		}
	}
	switch {
	case p.closed:
		return ErrClosed
	case p.terminals[id] != nil || p.starting[id]:
		return &SpecError{"id", fmt.Errorf("%s is in use", id)}
	case running >= p.opts.MaxTerminals:
		return &SpecError{"limit", fmt.Errorf("%d terminals are running, the most that is allowed; kill one first", running)}
	}
	p.starting[id] = true
	p.runs.Add(1)
	return nil
}

func (p *Pool) newTerminal(owner Actor, s Spec, child PTY) *Terminal {
	return &Terminal{
		id: s.ID, name: s.Name, command: slices.Clone(s.Command), started: time.Now(), private: s.Private,
		onSlow: s.OnSlow, pty: child, pool: p,
		scanner: shellint.NewScanner(shellint.Options{Nonce: s.nonceOf(), Queries: true}),
		log:     ring.New(p.opts.LogBytes), readers: map[*Reader]struct{}{},
		cwd: s.Cwd, size: s.Size, owner: owner, visible: owner.Role == RoleUser, lentTo: slices.Clone(s.LendTo),
		sizing: make(chan struct{}, 1), room: make(chan struct{}, 1), killed: make(chan struct{}), pumped: make(chan struct{}), done: make(chan struct{}),
	}
}

// forget drops exited terminals beyond the bounds, and comes back when the
// next one is too old.
func (p *Pool) forget() {
	p.mu.Lock()
	before := len(p.terminals)
	switch next := p.forgetLocked(); {
	case next == 0 || p.closed:
	case p.aging == nil:
		p.aging = time.AfterFunc(next, p.forget)
	default:
		p.aging.Reset(next)
	}
	forgot := len(p.terminals) < before
	p.mu.Unlock()
	if forgot {
		p.changed()
	}
}

// forgetLocked returns how long the oldest of the exited terminals that are
// left may be kept, 0 if there is none.
func (p *Pool) forgetLocked() (next time.Duration) {
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
			delete(p.terminals, i.ID)
			continue
		}
		next = left
	}
	return next
}

// changed tells the watchers that the set of terminals, their lending or
// their state is not what it was.
func (p *Pool) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	close(p.watch)
	p.watch = make(chan struct{})
}

// Changed waits until the pool's version differs from since and returns it.
// The version changes when a terminal starts, exits, is removed, lent or
// withdrawn; several changes may be one. 0 is never current.
func (p *Pool) Changed(ctx context.Context, since uint64) (uint64, error) {
	for {
		p.mu.Lock()
		version, watch := p.version+1, p.watch
		p.mu.Unlock()
		if version != since {
			return version, nil
		}
		select {
		case <-watch:
		case <-ctx.Done():
			return since, ctx.Err()
		}
	}
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
		return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.id, b.id))
	})
	return out
}

// Close kills every terminal and returns when all have ended or ctx ends.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	if p.aging != nil {
		p.aging.Stop()
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	all := p.all()
	errs := make([]error, len(all))
	for i, t := range all {
		wg.Go(func() { errs[i] = t.terminate(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { // ends with the last terminal, also when Close gave up
		p.runs.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
