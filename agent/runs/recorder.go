package runs

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tether/agent/history"
	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/change"
)

const (
	// gather is how long output is gathered before it is read: a recorder that read each
	// echo would be beside every key.
	gather = 250 * time.Millisecond
	// syncEvery is the time from one round of syncs to the next.
	syncEvery = time.Second
	// tidyEvery is how often the history is tidied while nothing is written.
	tidyEvery = time.Hour
)

// The recorder may work for workRate of the time, after workBurst. What is small is read
// in any case.
const (
	workRate  = 50 // 1/50
	workBurst = 100 * time.Millisecond
)

// Amounts of output, in bytes.
const (
	recordPiece = 64 << 10
	recordSmall = 64 << 10  // read in any case
	recordMuch  = 512 << 10 // read at once, without gathering more
	recordFar   = 2 << 20   // a terminal that is so far ahead, and prints on, is in a flood
	recordAhead = 128 << 10 // read of a flood at a time
	recordExit  = 8 << 20   // read of an exited terminal at most
)

// recorder reads terminals into the history. Its fields belong to its goroutine, run, but
// for those that mu guards.
type recorder struct {
	runs  *Runs
	wake  chan struct{} // 1 slot; a reader has output, or something was posted
	pool  chan struct{} // 1 slot; the pool has changed
	buf   []byte
	all   map[term.ID]*recording
	timer *time.Timer // runs while output is gathered

	gathering bool
	dirty     bool // something was written since the last round of syncs began
	synced    chan struct{}
	syncing   bool
	syncedAt  time.Time
	budget    time.Duration // of work; may be negative
	budgeted  time.Time

	recording atomic.Bool // run runs, and does what is posted

	mu     sync.Mutex
	posted []func() // for run
}

func newRecorder(r *Runs) *recorder {
	return &recorder{
		runs: r, wake: make(chan struct{}, 1), pool: make(chan struct{}, 1), synced: make(chan struct{}, 1),
		all: map[term.ID]*recording{},
	}
}

// Record begins to record, and returns when it knows every terminal. The returned
// function ends that, after it has written what there is, and closes the history. If that
// takes longer than within, it returns with the history shut. It may be called again.
func (r *Runs) Record(ctx context.Context) (end func(within time.Duration)) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { r.recorder.follow(ctx) })
	r.recorder.look()
	if err := r.opts.History.Settle(); err != nil {
		r.opts.Logger.Warn().Err(err).Msg("history")
	}
	r.recorder.recording.Store(true)
	running.Go(func() { r.recorder.run(ctx) })
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	return func(within time.Duration) {
		stop()
		select {
		case <-ended:
		case <-time.After(within):
			r.opts.History.Shut()
		}
	}
}

// follow passes on that the pool has changed.
func (r *recorder) follow(ctx context.Context) {
	for version := uint64(0); ; {
		next, err := r.runs.opts.Access.Changed(ctx, version)
		if err != nil {
			return
		}
		version = next
		change.Wake(r.pool)
	}
}

// post has do called by run, after ctx of Record perhaps never.
func (r *recorder) post(do func()) {
	r.mu.Lock()
	r.posted = append(r.posted, do)
	r.mu.Unlock()
	change.Wake(r.wake)
}

// run records until ctx ends.
func (r *recorder) run(ctx context.Context) {
	r.buf = make([]byte, recordPiece)
	r.timer = time.NewTimer(0)
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			r.recording.Store(false)
			r.end()
			return
		case <-r.wake:
			if r.doPosted(); r.gathering && !r.much() {
				continue
			}
			if !r.gathering {
				r.gather()
				continue
			}
		case <-r.pool:
			r.look()
		case <-r.synced:
			r.syncing = false
		case <-tidy.C:
			r.dirty = true
		case <-r.timer.C:
			r.gathering = false
		}
		r.round()
	}
}

func (r *recorder) doPosted() {
	r.mu.Lock()
	all := r.posted
	r.posted = nil
	r.mu.Unlock()
	for _, do := range all {
		do()
	}
}

// look begins to record new terminals, and forgets those that are gone.
func (r *recorder) look() {
	here := map[term.ID]bool{}
	for _, h := range r.runs.opts.Access.List() {
		here[h.ID()] = true
		if r.all[h.ID()] == nil {
			r.all[h.ID()] = r.begin(h)
		}
	}
	for id, x := range r.all {
		if !here[id] {
			x.close()
			delete(r.all, id)
		}
	}
}

// round reads what there is, and begins a round of syncs if one is due.
func (r *recorder) round() {
	busy := false
	for _, x := range r.all {
		busy = x.read() || busy
	}
	now := time.Now()
	if r.dirty && !r.syncing && now.Sub(r.syncedAt) >= syncEvery {
		r.dirty, r.syncing, r.syncedAt = false, true, now
		go func() { // run waits for it
			_ = r.runs.opts.History.Sync(context.Background()) // which reports
			r.synced <- struct{}{}
		}()
	}
	if busy || r.dirty {
		r.gather()
		return
	}
	for _, x := range r.all {
		x.ready(1)
	}
}

// gather arranges for the next round, and lets much output come first.
func (r *recorder) gather() {
	if !r.gathering {
		r.gathering = true
		r.timer.Reset(gather)
	}
	if r.mayWork() {
		for _, x := range r.all {
			x.ready(recordMuch)
		}
	}
}

// much reports whether a terminal has more output than should be gathered.
func (r *recorder) much() bool {
	if !r.mayWork() {
		return false
	}
	for _, x := range r.all {
		if x.pending() >= recordMuch {
			return true
		}
	}
	return false
}

// mayWork reports whether there is a budget for more than what is small.
func (r *recorder) mayWork() bool {
	now := time.Now()
	if r.budgeted.IsZero() {
		r.budget = workBurst
	} else {
		r.budget = min(r.budget+now.Sub(r.budgeted)/workRate, workBurst)
	}
	r.budgeted = now
	return r.budget > 0
}

// end writes what there is by now, for a daemon that ends. It does not wait for the round
// of syncs that goes on.
func (r *recorder) end() {
	for _, x := range r.all {
		x.read()
		x.close()
	}
	r.timer.Stop()
	if err := r.runs.opts.History.Close(); err != nil {
		r.runs.opts.Logger.Warn().Err(err).Msg("history")
	}
}

// put adds a newer record of a run, and tells those who wait for changes.
func (r *recorder) put(run history.Run) {
	r.dirty = true
	if err := r.runs.opts.History.Put(run); err != nil {
		r.runs.opts.Logger.Debug().Err(err).Str("run", run.ID).Msg("history")
	}
	r.runs.changes.raise()
}

// hosts returns what names the pairings in a terminal's loans.
func (r *recorder) hosts(list []loans.Loan) []string {
	var all []string
	for _, l := range list {
		if id := r.runs.opts.HostID(l.Host); id != "" {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}
