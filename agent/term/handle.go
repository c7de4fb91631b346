package term

import (
	"context"
	"strings"
	"time"
)

// Access is the pool as one actor sees it.
type Access struct {
	pool  *Pool
	actor Actor
}

// As returns the pool as a sees it. Every door goes through it.
func (p *Pool) As(a Actor) Access { return Access{p, a} }

// Actor is whose access it is.
func (a Access) Actor() Actor { return a.actor }

// Changed is Pool.Changed.
func (a Access) Changed(ctx context.Context, since uint64) (uint64, error) {
	return a.pool.Changed(ctx, since)
}

// Spawn starts a terminal that the actor owns. Errors: *SpecError, ErrClosed,
// or what the system said, wrapped. Hosts may not spawn.
func (a Access) Spawn(s Spec) (Handle, error) {
	if a.actor.Role == RoleHost {
		return Handle{}, &DeniedError{Actor: a.actor, Op: OpType}
	}
	t, err := a.pool.spawn(a.actor, s)
	if err != nil {
		return Handle{}, err
	}
	return Handle{t, a.actor}, nil
}

// List returns the terminals the actor may see, oldest first.
func (a Access) List() []Handle {
	var out []Handle
	for _, t := range a.pool.all() {
		if Allow(a.actor, OpSee, t.Info()) == nil {
			out = append(out, Handle{t, a.actor})
		}
	}
	return out
}

// Find returns the terminal that ref names: an id, the unique beginning of
// one (with or without "pty-", at least three characters), or a unique name.
// A running terminal's name hides an exited one's. Errors: ErrNotFound,
// *AmbiguousError.
func (a Access) Find(ref string) (Handle, error) {
	var named, exited, begins []Handle
	for _, h := range a.List() {
		i := h.Info()
		switch {
		case string(i.ID) == ref:
			return h, nil
		case i.Name == ref && i.Exit == nil:
			named = append(named, h)
		case i.Name == ref:
			exited = append(exited, h)
		case beginsID(i.ID, ref):
			begins = append(begins, h)
		}
	}
	for _, found := range [][]Handle{named, exited, begins} {
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], nil
		}
		e := &AmbiguousError{Ref: ref}
		for _, h := range found {
			e.IDs = append(e.IDs, h.t.id)
		}
		return Handle{}, e
	}
	return Handle{}, ErrNotFound
}

func beginsID(id ID, ref string) bool {
	const prefix, least = "pty-", 3
	ref = strings.TrimPrefix(ref, prefix)
	return len(ref) >= least && strings.HasPrefix(strings.TrimPrefix(string(id), prefix), ref)
}

// Handle is one terminal as one actor may use it. What the actor may not do
// is refused with ErrNotFound or a *DeniedError, decided anew at each call. It
// is safe for concurrent use and stays valid after the terminal is gone.
type Handle struct {
	t     *Terminal
	actor Actor
}

// ID names the terminal.
func (h Handle) ID() ID { return h.t.id }

// Info returns a snapshot.
func (h Handle) Info() Info { return h.t.Info() }

// Done is closed when the exit was recorded.
func (h Handle) Done() <-chan struct{} { return h.t.done }

// Reader returns a cursor into the output. The caller must Close it. That of a
// host, or of an agent there, is closed when the terminal is withdrawn from it.
func (h Handle) Reader(o ReaderOptions) (*Reader, error) {
	if err := h.allow(OpRead); err != nil {
		return nil, err
	}
	r := h.t.newReader(o)
	if host := h.actor.away(); host != "" && !r.bind(host, h.actor.Role == RoleHost) {
		r.Close()
		return nil, ErrNotFound // withdrawn meanwhile
	}
	return r, nil
}

// Commands returns the commands still remembered, oldest first.
func (h Handle) Commands() ([]Command, error) {
	if err := h.allow(OpRead); err != nil {
		return nil, err
	}
	return h.t.commandList(), nil
}

// Write queues input for the child. It blocks while too much is queued
// already. Errors: ErrExited, ctx's.
func (h Handle) Write(ctx context.Context, p []byte) error {
	if err := h.allow(OpType); err != nil {
		return err
	}
	return h.t.write(ctx, p)
}

// Resize changes the size; each side 1 to 1000.
func (h Handle) Resize(s Size) error {
	if err := h.allow(OpResize); err != nil {
		return err
	}
	return h.t.resize(s)
}

// Kill ends the whole process tree and waits until the exit was recorded or
// ctx ends. It is idempotent.
func (h Handle) Kill(ctx context.Context) error {
	over := h.Info().Exit != nil
	err := h.kill(ctx)
	if over && err == nil {
		return nil // nothing was done
	}
	return h.did(Act{Kind: ActKill}, err)
}

// Lend announces the terminal at host.
func (h Handle) Lend(host string) error { return h.LendUntil(host, time.Time{}) }

// LendUntil announces the terminal at host until then, or changes the end of
// its lending there; zero means none. A time that has passed ends it at once.
// Errors: ErrPrivate, or what Options.MayLend said.
func (h Handle) LendUntil(host string, until time.Time) error {
	if err := h.allow(OpLend); err != nil {
		return err
	}
	changed := false
	err := h.t.pool.mayLend(h.t.Info(), host)
	if err == nil {
		changed, err = h.t.lend(host, until)
	}
	if !changed && err == nil {
		return nil
	}
	act := Act{Kind: ActLend, Host: host}
	if !until.IsZero() {
		act.Detail = "until " + until.UTC().Format(time.RFC3339)
	}
	return h.did(act, err)
}

// Unlend withdraws the terminal from host.
func (h Handle) Unlend(host string) error {
	if err := h.allow(OpLend); err != nil {
		return err
	}
	if _, was := h.t.withdraw(host); was {
		return h.did(Act{Kind: ActUnlend, Host: host}, nil)
	}
	return nil
}

// Attach counts a person as attached until leave is called.
func (h Handle) Attach() (leave func(), err error) {
	if err := h.allow(OpType); err != nil {
		return nil, err
	}
	h.t.attach(+1)
	return func() { h.t.attach(-1) }, nil
}

// OnDispose says what a host's disposal does to the terminal.
type OnDispose string

// The choices of the configuration key on_dispose.
const (
	DisposeAuto   OnDispose = "auto"   // withdraw while a person is attached, else kill
	DisposeKill   OnDispose = "kill"   //
	DisposeUnlend OnDispose = "unlend" //
)

// Dispose does what the person chose for a disposal by the actor, a host: the
// terminal is withdrawn from it in any case and killed unless it is kept.
// killed tells which.
func (h Handle) Dispose(ctx context.Context, how OnDispose) (killed bool, err error) {
	if err := h.allow(OpDispose); err != nil {
		return false, err
	}
	attached, was := h.t.withdraw(h.actor.Name)
	if !was {
		return false, ErrNotFound // withdrawn by somebody else meanwhile
	}
	if how == DisposeUnlend || how != DisposeKill && attached > 0 {
		return false, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: "it goes on here"}, nil)
	}
	return true, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: "it was killed"}, h.t.terminate(ctx, ReasonKilled))
}
