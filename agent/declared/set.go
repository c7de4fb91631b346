package declared

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"tether/agent/config"
	"tether/internal/change"
	"tether/platform/proc"
	"tether/vocab"
)

// End is how a terminal ended.
type End struct {
	Code   int
	Killed bool      // its end was requested; false if its end is unknown
	Ran    time.Time // since when it ran
	At     time.Time
}

// Terminal is a terminal that was started. Its methods are safe for concurrent use.
type Terminal interface {
	ID() string
	// Started is when the terminal began to run.
	Started() time.Time
	// Port is the TCP port that it was given, 0 for none.
	Port() int
	// Over reports whether the terminal has ended.
	Over() bool
	// Wait returns when the terminal has ended, or ctx's error.
	Wait(ctx context.Context) (End, error)
	// Kill ends the terminal with all its processes, and returns when that is done or ctx
	// ends.
	Kill(ctx context.Context) error
	// Await returns nil when the condition of the declaration holds. If ctx ends first,
	// or it cannot be found out whether the condition holds, Await returns why, in one
	// line. late says that the time for the condition is over, so that it may be checked
	// less often.
	Await(ctx context.Context, d config.Declared, late bool) error
	// SetReady reports the state to everybody who sees the terminal.
	SetReady(state vocab.ReadyState, why string)
}

// Starter starts terminals. Its methods are safe for concurrent use.
type Starter interface {
	// Prepare returns a function that starts a terminal, and the id that the terminal
	// will have. limits is nil, or as in start.Request. It may block until ctx ends.
	Prepare(ctx context.Context, d config.Declared, limits *proc.Limits) (id string, start func() (Terminal, error), err error)
	// Find returns the terminal with that id, if there is one. pending reports that it
	// runs but the daemon has not adopted it yet.
	Find(id string) (t Terminal, pending bool)
}

// Options configures a Set. Starter is required.
type Options struct {
	Starter Starter
	// Keep is the file that records the terminal of each declaration, and which
	// declarations are down.
	Keep string
	// Report is called with the error that prevents writing the file, and with "" when
	// there is none.
	Report func(trouble string)
}

// Set is the set of declared terminals. It is safe for concurrent use.
//
// Goroutines: one per terminal that is to be up, see entry.keep. They end with Close,
// which leaves the terminals as they are.
type Set struct {
	opts Options
	ctx  context.Context // context of the goroutines; set by Begin
	stop context.CancelFunc
	busy chan struct{} // one slot, since only one command runs at a time

	writing sync.Mutex // held while the file is written, so that changes are written in order

	mu      sync.Mutex
	entries []*entry // in the order of the file
	store   store
	moved   change.Signal // raised when the state of a terminal changes
}

// New returns an empty set.
func New(o Options) *Set {
	if o.Report == nil {
		o.Report = func(string) {}
	}
	s := &Set{opts: o, busy: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Begin starts the terminals, except those that the person has put down. It does not wait
// for them. It is called once, before all other methods except List.
func (s *Set) Begin(all []config.Declared) {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	s.load()
	for _, e := range s.declare(all) {
		s.mu.Lock()
		kept := s.store.Terminals[e.spec.Name]
		e.id = kept.ID
		s.mu.Unlock()
		if !kept.Down {
			e.begin(s.ctx, nil)
		}
	}
}

// Close ends the goroutines and waits for them. The terminals continue. It may be called
// again.
func (s *Set) Close() {
	if s.ctx.Err() != nil {
		return
	}
	s.stop()
	s.busy <- struct{}{} // no further command begins
	s.mu.Lock()
	all := s.entries
	s.mu.Unlock()
	for _, e := range all {
		e.halt()
	}
}

// Declare replaces the declarations. New ones are not started yet; a terminal that is no
// longer declared continues but is forgotten.
func (s *Set) Declare(ctx context.Context, all []config.Declared) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	s.declare(all)
	return nil
}

// declare replaces the declarations and returns the new ones.
func (s *Set) declare(all []config.Declared) (added []*entry) {
	s.mu.Lock()
	var kept []*entry
	gone := map[string]*entry{}
	for _, e := range s.entries {
		gone[e.spec.Name] = e
	}
	for _, d := range all {
		e := gone[d.Name]
		delete(gone, d.Name)
		if e == nil {
			e = &entry{set: s, spec: d, state: Down, since: time.Now()}
			added = append(added, e)
		}
		e.spec = d
		kept = append(kept, e)
	}
	s.entries = kept
	s.moved.Raise()
	for name := range gone {
		delete(s.store.Terminals, name)
	}
	s.mu.Unlock()
	for _, e := range gone {
		e.halt()
	}
	return added
}

// List returns all declared terminals, in the order of the declarations.
func (s *Set) List() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Status
	for _, e := range s.entries {
		all = append(all, e.statusLocked())
	}
	return all
}

// UnknownError is returned for a name that is not declared.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("no terminal %.70q is declared", e.Name) }

// Up starts the named terminals that do not run, and the terminals that they need;
// without names, all. It returns when each was started, could not be started, or waits
// for another one, or when ctx ends. A failed start is in the status, not in the error.
// Errors: *UnknownError, ctx's, and one for a closed set. The terminals that it starts
// have these limits, also when they are started again.
func (s *Set) Up(ctx context.Context, limits *proc.Limits, names ...string) ([]Status, error) {
	return s.each(ctx, s.withNeeds(names), func(e *entry, ctx context.Context) error { return e.up(ctx, limits) })
}

// Down ends the named terminals, and keeps them down until Up.
func (s *Set) Down(ctx context.Context, names ...string) ([]Status, error) {
	return s.each(ctx, names, (*entry).down)
}

// Restart ends the named terminals that run, and starts all of them again.
func (s *Set) Restart(ctx context.Context, names ...string) ([]Status, error) {
	return s.each(ctx, names, (*entry).restart)
}

// each calls do for all named terminals, concurrently.
func (s *Set) each(ctx context.Context, names []string, do func(*entry, context.Context) error) ([]Status, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	chosen, err := s.named(names)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)() // the daemon's end does not wait for commands
	errs := make([]error, len(chosen))
	var wg sync.WaitGroup
	for i, e := range chosen {
		wg.Go(func() { errs[i] = do(e, ctx) })
	}
	wg.Wait()
	var all []Status
	s.mu.Lock()
	for _, e := range chosen {
		all = append(all, e.statusLocked())
	}
	s.mu.Unlock()
	for i, err := range errs {
		if err != nil {
			return all, fmt.Errorf("%s: %w", all[i].Spec.Name, err)
		}
	}
	return all, nil
}

// named returns the entries with these names, each once; without names, all.
func (s *Set) named(names []string) ([]*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(names) == 0 {
		return s.entries, nil
	}
	var chosen []*entry
	for _, name := range names {
		i := slices.IndexFunc(s.entries, func(e *entry) bool { return e.spec.Name == name })
		if i < 0 {
			return nil, &UnknownError{name}
		}
		if !slices.Contains(chosen, s.entries[i]) {
			chosen = append(chosen, s.entries[i])
		}
	}
	return chosen, nil
}

// take waits until a command may run.
func (s *Set) take(ctx context.Context) error {
	select {
	case s.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

func (s *Set) give() { <-s.busy }

func (e *entry) statusLocked() Status {
	return Status{
		Spec: e.spec, State: e.state, Since: e.since, ID: e.id, Next: e.next, Restarts: e.restarts, Err: e.err, Cause: e.cause, Code: e.code,
		Readiness: e.ready, Waits: e.waits,
		Changed: e.state == Running && e.startedAs != nil && !reflect.DeepEqual(*e.startedAs, e.spec),
	}
}
