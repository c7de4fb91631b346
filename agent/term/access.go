package term

import (
	"context"
	"strings"
)

// Access is the pool as one actor sees it.
type Access struct {
	pool  *Pool
	actor Actor
}

// As returns the pool as a sees it. Every door uses the pool through As.
func (p *Pool) As(a Actor) Access { return Access{p, a} }

// Actor returns the actor whose access this is.
func (a Access) Actor() Actor { return a.actor }

// Changed is Pool.Changed.
func (a Access) Changed(ctx context.Context, since uint64) (uint64, error) {
	return a.pool.Changed(ctx, since)
}

// Typing reports whether somebody typed at any terminal of the pool within flow.Quiet.
func (a Access) Typing() bool { return a.pool.inputs.Elsewhere(nil) }

// handle returns the terminal as the actor sees it: agents see the view of hosts.
func (a Access) handle(t *Terminal) Handle {
	masked := a.actor.Role == RoleAgent && (a.actor.At() != "" || t.pool.opts.Unredacted == nil || !t.pool.opts.Unredacted(a.actor))
	return Handle{t, a.actor, masked}
}

// Spawn starts a terminal that the actor owns. Errors: *SpecError, ErrClosed, or the
// system's error, wrapped. Hosts may not spawn.
func (a Access) Spawn(s Spec) (Handle, error) {
	if a.actor.Role == RoleHost {
		return Handle{}, &DeniedError{Actor: a.actor, Op: OpType}
	}
	t, err := a.pool.spawn(a.actor, s)
	if err != nil {
		return Handle{}, err
	}
	return a.handle(t), nil
}

// List returns the terminals the actor may see, oldest first.
func (a Access) List() []Handle {
	var out []Handle
	for _, t := range a.pool.all() {
		if Allow(a.actor, OpSee, t.Info()) == nil {
			out = append(out, a.handle(t))
		}
	}
	return out
}

// Terminal returns the terminal with exactly this id, or ErrNotFound.
func (a Access) Terminal(id ID) (Handle, error) {
	a.pool.mu.Lock()
	t := a.pool.terminals[id]
	a.pool.mu.Unlock()
	if t == nil || Allow(a.actor, OpSee, t.Info()) != nil {
		return Handle{}, ErrNotFound
	}
	return a.handle(t), nil
}

// Find returns the terminal that ref names: an id, the unique beginning of one (with or
// without "pty-", at least three characters), or a unique name. A running terminal's name
// hides an exited one's. Errors: ErrNotFound, *AmbiguousError.
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
