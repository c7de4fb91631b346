package adoptions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tether/agent/adopt"
	"tether/agent/config"
	"tether/agent/term"
	"tether/internal/change"
	"tether/internal/retry"
	"tether/vocab"
)

// Request says which pane becomes a terminal, and how.
type Request struct {
	Pane    string // as adopt.ParseTarget takes it
	Name    string // "" for one that follows from the pane's program and directory
	Private bool
	Types   bool
	Rule    string // the match of the rule that asks; "" for the person
	Again   bool   // it was adopted before: what was printed meanwhile is missing
}

// Options configures a Keeper. Access, Start, Find and List are required.
type Options struct {
	Access term.Access // the person's
	// Start starts the terminal that reads a pane.
	Start func(context.Context, adopt.Pane, Request) (term.Handle, error)
	Find  func(context.Context, adopt.Target) (adopt.Pane, error)
	List  func(context.Context) ([]adopt.Pane, []error)
	// Pending, if not nil, reports whether a terminal runs that Access does not have now.
	Pending func(term.ID) bool
	Rules   []config.Adopt
	Keep    string // the file for the next daemon
	// Report is called with what does not work, and with "" when it works again.
	Report func(trouble string)
}

// Times of a Keeper.
const (
	pollEvery    = 5 * time.Second // between two looks for panes of rules
	lookWithin   = 5 * time.Second // for one look
	firstAgain   = time.Second     // before the second attempt to adopt a pane again, doubled each time
	mostAgain    = 5               // attempts until a reader lives for healthyAfter
	healthyAfter = time.Minute

	pictureWithin = 2 * time.Second       // for the first picture of a pane
	pictureLook   = 50 * time.Millisecond // it is whole when nothing came for so long
)

// Keeper keeps panes adopted. It is safe for concurrent use.
//
//	Adopt, a rule ──▶ kept ──(its reader ends, the pane lives)──▶ due ──▶ kept
//	                   │                                           └──(mostAgain)──▶ forgotten
//	                   ├──(the pane ends)──▶ forgotten
//	                   └──(the person ends it)──▶ declined ──(the pane ends)──▶ forgotten
type Keeper struct {
	opts  Options
	busy  chan struct{} // one slot: one adoption at a time, so that no pane is adopted twice
	rules []rule

	mu      sync.Mutex
	entries []*entry
	written []byte        // the content of the file, nil if it is not there
	wake    chan struct{} // 1 slot: the terminals have changed, or an adoption was recorded
}

// New returns a keeper that knows what the file has.
func New(o Options) *Keeper {
	if o.Report == nil {
		o.Report = func(string) {}
	}
	if o.Pending == nil {
		o.Pending = func(term.ID) bool { return false }
	}
	k := &Keeper{opts: o, busy: make(chan struct{}, 1), wake: make(chan struct{}, 1), rules: rulesOf(o.Rules)}
	k.load()
	return k
}

// AdoptedError: the pane is adopted already.
type AdoptedError struct{ Pane, Name string }

func (e *AdoptedError) Error() string {
	return fmt.Sprintf("%s is adopted already, as %s", e.Pane, e.Name)
}

// Adopt makes a pane a terminal and keeps it one. Errors: those of adopt.ParseTarget and
// Options, *AdoptedError, ctx's.
func (k *Keeper) Adopt(ctx context.Context, r Request) (term.Handle, error) {
	target, err := adopt.ParseTarget(r.Pane)
	if err != nil {
		return term.Handle{}, err
	}
	if err := k.take(ctx); err != nil {
		return term.Handle{}, err
	}
	defer k.give()
	pane, err := k.opts.Find(ctx, target)
	if err != nil {
		return term.Handle{}, err
	}
	h, err := k.adopt(ctx, pane, r)
	if err == nil {
		awaitPicture(ctx, h)
	}
	return h, err
}

// awaitPicture waits a little until what the pane shows is there: whoever has adopted a
// pane reads it next.
func awaitPicture(ctx context.Context, h term.Handle) {
	ctx, cancel := context.WithTimeout(ctx, pictureWithin)
	defer cancel()
	for seen := int64(0); retry.Wait(ctx, pictureLook); {
		i := h.Info()
		if i.Exit != nil || seen > 0 && i.Bytes == seen {
			return
		}
		seen = i.Bytes
	}
}

// adopt starts the reader of a pane, and records that. The caller has taken k.
func (k *Keeper) adopt(ctx context.Context, pane adopt.Pane, r Request) (term.Handle, error) {
	r.Pane = pane.Target.String()
	if i, ok := k.running(r.Pane); ok {
		return term.Handle{}, &AdoptedError{r.Pane, i.Name}
	}
	h, err := k.opts.Start(ctx, pane, r)
	if err != nil {
		return term.Handle{}, err
	}
	k.mu.Lock()
	k.entries = slices.DeleteFunc(k.entries, func(e *entry) bool { return e.Pane == r.Pane })
	k.entries = append(k.entries, &entry{Pane: r.Pane, Identity: identity(pane), Terminal: h.ID(), Name: h.Info().Name, Private: r.Private, Types: r.Types, Rule: r.Rule, began: time.Now()})
	k.mu.Unlock()
	k.save()
	change.Wake(k.wake)
	return h, nil
}

// running returns the running terminal that reads the pane.
func (k *Keeper) running(pane string) (term.Info, bool) {
	for _, h := range k.opts.Access.List() {
		if i := h.Info(); i.Adopted != nil && i.Adopted.From == pane && i.Exit == nil {
			return i, true
		}
	}
	return term.Info{}, false
}

func (k *Keeper) take(ctx context.Context) error {
	select {
	case k.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *Keeper) give() { <-k.busy }

// Run keeps panes adopted until ctx ends. The terminals continue then.
func (k *Keeper) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { k.follow(ctx) })
	var polled time.Time
	for ctx.Err() == nil {
		next := k.look(ctx)
		if len(k.rules) > 0 {
			if time.Since(polled) >= pollEvery {
				k.poll(ctx)
				polled = time.Now()
			}
			next = min(next, pollEvery)
		}
		select {
		case <-k.wake:
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
}

// follow passes on that the terminals have changed.
func (k *Keeper) follow(ctx context.Context) {
	for version := uint64(0); ; {
		next, err := k.opts.Access.Changed(ctx, version)
		if err != nil {
			return
		}
		version = next
		change.Wake(k.wake)
	}
}

// look looks after every kept pane, and returns when the next one is due.
func (k *Keeper) look(ctx context.Context) (next time.Duration) {
	next = time.Hour
	k.mu.Lock()
	all := slices.Clone(k.entries)
	k.mu.Unlock()
	for _, e := range all {
		if left := k.lookAfter(ctx, e); left > 0 {
			next = min(next, left)
		}
	}
	k.save()
	return next
}

// lookAfter looks after one kept pane. It returns when to look again although no terminal
// has changed; 0: never.
func (k *Keeper) lookAfter(ctx context.Context, e *entry) time.Duration {
	if e.Declined {
		return 0
	}
	h, err := k.opts.Access.Terminal(e.Terminal)
	var i term.Info
	if err == nil {
		i = h.Info()
	}
	switch {
	case err == nil && i.Exit == nil:
		k.change(func() { e.Name, e.Loans = i.Name, loansOf(i.Loans) })
		return 0
	case err == nil && i.Exit.Reason == vocab.ExitKilled:
		k.decline(e)
		return 0
	case err != nil && k.opts.Pending(e.Terminal):
		return firstAgain // its holder tells nobody when it ends
	}
	if left := time.Until(e.next); left > 0 {
		return left
	}
	return k.again(ctx, e)
}

// again adopts a pane again whose reader has ended, if the pane lives.
func (k *Keeper) again(ctx context.Context, e *entry) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if k.take(ctx) != nil {
		return firstAgain
	}
	defer k.give()
	target, err := adopt.ParseTarget(e.Pane)
	if _, running := k.running(e.Pane); running || err != nil { // the person was faster, or somebody has changed the file
		k.forget(e)
		return 0
	}
	pane, err := k.opts.Find(ctx, target)
	var unknown *adopt.UnknownError
	if errors.As(err, &unknown) || err == nil && identity(pane) != e.Identity {
		k.forget(e) // the pane has ended
		return 0
	}
	if time.Since(e.began) > healthyAfter {
		e.tries = 0
	}
	if e.tries++; e.tries > mostAgain {
		k.forget(e)
		k.opts.Report(fmt.Sprintf("%s (%s) is not adopted any more: its reader has ended %d times in a row; tether adopt %[1]s tries it again", e.Pane, e.Name, mostAgain))
		return 0
	}
	pause := firstAgain << (e.tries - 1)
	e.next = time.Now().Add(pause)
	if err != nil {
		return pause
	}
	h, err := k.opts.Start(ctx, pane, Request{Pane: e.Pane, Name: e.Name, Private: e.Private, Types: e.Types, Rule: e.Rule, Again: true})
	if err != nil {
		return pause
	}
	k.change(func() { e.Terminal, e.began = h.ID(), time.Now() })
	for _, l := range e.Loans {
		l.renew(h)
	}
	return 0
}

// decline records that the person has ended an adoption. Only rules need to know.
func (k *Keeper) decline(e *entry) {
	if len(k.rules) == 0 {
		k.forget(e)
		return
	}
	k.change(func() { e.Declined, e.Loans = true, nil })
}

// Forget forgets all panes: the next daemon adopts none again.
func (k *Keeper) Forget() {
	k.change(func() { k.entries = nil })
	k.save()
}

func (k *Keeper) forget(e *entry) {
	k.change(func() { k.entries = slices.DeleteFunc(k.entries, func(o *entry) bool { return o == e }) })
}

func (k *Keeper) change(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
}
