package declared

import (
	"context"
	"errors"
	"sync"
	"time"

	"tether/agent/config"
	"tether/internal/retry"
	"tether/platform/proc"
	"tether/vocab"
)

// adoptPoll is how often keep checks whether the daemon has adopted an earlier daemon's
// terminals. Nothing announces the adoption, and it is rare.
const adoptPoll = 100 * time.Millisecond

// entry is one declared terminal.
type entry struct {
	set *Set

	// Used only by the command that has the slot of Set.busy.
	cancel context.CancelFunc // ends keep; nil if keep does not run
	ended  chan struct{}      // closed when keep has returned

	// Guarded by Set.mu.
	spec      config.Declared
	startedAs *config.Declared // the declaration of the running terminal; nil if an earlier daemon has started it
	state     State
	since     time.Time
	id        string
	next      time.Time
	restarts  int
	err       string
	cause     error // of err, if it was a failed start
	code      int
	current   Terminal // the running terminal; nil if none runs
	waits     string   // why the terminal waits, while Blocked

	ready vocab.Readiness
}

// begin starts keep with t or, if t is nil, with the terminal that an earlier daemon has
// left or a new one. The returned channel is closed after the first start was tried.
func (e *entry) begin(ctx context.Context, t Terminal) <-chan struct{} {
	ctx, e.cancel = context.WithCancel(ctx)
	e.ended = make(chan struct{})
	tried := make(chan struct{})
	e.change(func() { e.restarts, e.err = 0, "" })
	go e.keep(ctx, t, tried)
	return tried
}

// halt ends keep and waits for it.
func (e *entry) halt() {
	if e.cancel != nil {
		e.cancel()
		<-e.ended
		e.cancel = nil
	}
}

// up starts the terminal if it is not running.
func (e *entry) up(ctx context.Context, limits *proc.Limits) error {
	if t := e.running(); t != nil {
		return nil
	}
	e.halt()
	t := e.running() // another command may just have started it
	if t == nil {
		e.set.keep(e.name(), func(k *kept) { k.Limits = limits })
	}
	if err := await(ctx, e.begin(e.set.ctx, t)); err != nil {
		return err
	}
	e.set.keep(e.name(), func(k *kept) { k.Down = false })
	return nil
}

// down ends the terminal.
func (e *entry) down(ctx context.Context) error {
	e.halt()
	e.set.keep(e.name(), func(k *kept) { k.Down = true })
	if err := e.end(ctx); err != nil {
		if t := e.running(); t != nil {
			e.begin(e.set.ctx, t) // keep notices the end whenever it comes
		}
		return err
	}
	e.enter(Down)
	return nil
}

// restart ends the terminal and starts it again.
func (e *entry) restart(ctx context.Context) error {
	e.halt()
	if err := e.end(ctx); err != nil {
		e.begin(e.set.ctx, e.running())
		return err
	}
	if err := await(ctx, e.begin(e.set.ctx, nil)); err != nil {
		return err
	}
	e.set.keep(e.name(), func(k *kept) { k.Down = false })
	return nil
}

// end kills the running terminal, even if the daemon has not adopted it yet.
func (e *entry) end(ctx context.Context) error {
	t := e.running()
	if t == nil {
		t = e.recall(ctx)
	}
	if err := ctx.Err(); t == nil || err != nil {
		return err
	}
	if err := t.Kill(ctx); err != nil {
		return err
	}
	e.change(func() { e.current = nil })
	return nil
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keep starts the terminal and restarts it when due, until the terminal is to stay down
// or ctx ends. It is the entry's goroutine; the terminal outlives it.
func (e *entry) keep(ctx context.Context, t Terminal, tried chan struct{}) {
	defer close(e.ended)
	say := sync.OnceFunc(func() { close(tried) })
	defer say()
	var pause backoff
	for first := true; ; first = false {
		if !first {
			e.change(func() { e.restarts++ })
		}
		if t == nil {
			e.enter(Starting)
			if first {
				t = e.recall(ctx)
			}
		}
		var err error
		if t == nil {
			e.awaitNeeds(ctx, say)
		}
		if t == nil && ctx.Err() == nil {
			t, err = e.start(ctx)
		}
		if ctx.Err() == nil && err == nil {
			e.runs(t)
			e.beginReady(t)
		}
		if err != nil {
			e.failed(err)
		}
		say()
		again, ran := e.restartsFailed(), time.Duration(0)
		if err == nil {
			again, ran = e.follow(ctx, t)
		}
		if !again || !e.rest(ctx, pause.next(ran)) {
			return
		}
		t = nil
	}
}

// recall returns the terminal that an earlier daemon has started, if it still exists. It
// waits until the terminal is adopted or gone.
func (e *entry) recall(ctx context.Context) Terminal {
	id := e.lastID()
	if id == "" {
		return nil
	}
	for {
		t, pending := e.set.opts.Starter.Find(id)
		switch {
		case t != nil && t.Over():
			return nil // it has exited in this daemon: a new one is needed
		case t != nil:
			return t
		case !pending:
			return nil
		}
		e.change(func() { e.err = "the terminal of an earlier daemon still runs and is not resumed yet" })
		if !retry.Wait(ctx, adoptPoll) {
			return nil
		}
	}
}

// start starts the terminal. Its id is recorded first, so that the next daemon finds it.
func (e *entry) start(ctx context.Context) (Terminal, error) {
	spec := e.declaration()
	id, start, err := e.set.opts.Starter.Prepare(ctx, spec, e.limits())
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.set.keep(spec.Name, func(k *kept) { k.ID, k.Down, k.Ready = id, false, false })
	t, err := start()
	if err != nil {
		return nil, err
	}
	e.change(func() { e.startedAs, e.current = &spec, t })
	return t, nil
}

// follow waits for the end of the running terminal, and returns whether it must be
// started again and how long it ran.
func (e *entry) follow(ctx context.Context, t Terminal) (again bool, ran time.Duration) {
	if t == nil {
		return false, 0
	}
	looking, cancel := context.WithCancel(ctx)
	var look sync.WaitGroup
	look.Go(func() { e.becomeReady(looking, t) })
	end, err := t.Wait(ctx)
	cancel()
	look.Wait()
	if err != nil || e.set.ctx.Err() != nil { // the daemon ends, and the terminal may end with it
		return false, 0
	}
	e.change(func() { e.current, e.code = nil, end.Code })
	e.endReady()
	if end.Killed {
		e.set.keep(e.name(), func(k *kept) { k.Down = true })
		e.enter(Down)
		return false, 0
	}
	e.enter(Exited)
	switch e.declaration().Restart {
	case config.RestartAlways:
		again = true
	case config.RestartOnFailure:
		again = end.Code != 0
	}
	return again, end.At.Sub(end.Ran)
}

// rest waits. It returns false if ctx ends first.
func (e *entry) rest(ctx context.Context, d time.Duration) bool {
	e.change(func() { e.next = time.Now().Add(d) })
	e.enter(Waiting)
	return retry.Wait(ctx, d)
}

// runs records that t runs.
func (e *entry) runs(t Terminal) {
	e.change(func() { e.current, e.id, e.err = t, t.ID(), "" })
	e.enter(Running)
}

// failed records a failed start.
func (e *entry) failed(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	e.change(func() { e.err, e.cause = err.Error(), err })
	e.enter(Failed)
}

func (e *entry) restartsFailed() bool {
	r := e.declaration().Restart
	return r == config.RestartAlways || r == config.RestartOnFailure
}

func (e *entry) enter(s State) {
	e.change(func() {
		e.state, e.since = s, time.Now()
		if s != Waiting {
			e.next = time.Time{}
		}
		if s == Starting || s == Down {
			e.ready = vocab.Readiness{}
		}
		e.set.moved.Raise()
	})
}

// change changes fields under the set's mutex.
func (e *entry) change(f func()) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	f()
}

// running returns the running terminal, or nil.
func (e *entry) running() Terminal {
	e.set.mu.Lock()
	t := e.current
	e.set.mu.Unlock()
	if t == nil || t.Over() {
		return nil
	}
	return t
}

func (e *entry) declaration() (d config.Declared) {
	e.change(func() { d = e.spec })
	return d
}

func (e *entry) name() string { return e.declaration().Name }

func (e *entry) limits() (l *proc.Limits) {
	e.change(func() { l = e.set.store.Terminals[e.spec.Name].Limits })
	return l
}

func (e *entry) lastID() (id string) {
	e.change(func() { id = e.id })
	return id
}
