package events

import (
	"context"
	"runtime/debug"
	"slices"

	"tether/agenttools"
)

// catchUp is how much of a terminal's output, in bytes, may be read for one subscription
// while the terminal's other subscriptions wait.
const catchUp = 256 << 10

// key returns the key of the watch to which a part belongs.
func (p *part) key() watchKey {
	q := p.sub.spec.pattern
	return watchKey{p.id, q != nil && q.literal == nil}
}

// begin follows a part's terminal from p.from on; for a new terminal that is the zero
// place.
func (e *Engine) begin(p *part) {
	if p.sub.spec.kind.family == ofExits {
		return
	}
	t, err := e.opts.Terminals.Open(p.id)
	if err != nil {
		return // the next list reports that it is gone
	}
	if own, err := newWatch(t, p.from); err == nil {
		e.join(p, own)
	}
}

// beginNow follows a part's terminal from now on.
func (e *Engine) beginNow(p *part) error {
	t, err := e.opts.Terminals.Open(p.id)
	if err != nil {
		return withdrawn()
	}
	if p.sub.spec.kind.family == ofExits {
		if t.Info().Exit != nil {
			p.sub.mu.Lock()
			p.at, p.exited = place{off: 1}, true
			p.sub.mu.Unlock()
		}
		return nil
	}
	own, err := newWatchNow(t)
	if err != nil {
		return withdrawn()
	}
	own.settle(p)
	p.from = own.place(p)
	p.sub.mu.Lock()
	p.at = p.from
	p.sub.mu.Unlock()
	e.join(p, own)
	return nil
}

// join has a part followed by the watch own, which has read so far, or by the shared
// watch that is there already.
func (e *Engine) join(p *part, own *watch) {
	own.key, own.parts = p.key(), []*part{p}
	own.step(4 * catchUp)
	p.sub.mu.Lock()
	p.watch = own
	p.sub.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.mergeLocked(own) {
		own.rd.Close()
		return
	}
	ctx, cancel := context.WithCancel(e.ctx)
	own.cancel = cancel
	own.idle = func() (alone bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.mergeLocked(own) {
			cancel()
		}
		return e.watches[own.key] != own
	}
	e.wg.Go(func() { e.follow(ctx, own) })
}

// mergeLocked passes the parts of a watch to the shared one, if both have read the same
// output. The first watch of its key is the shared one.
func (e *Engine) mergeLocked(own *watch) bool {
	w := e.watches[own.key]
	switch {
	case own.dead.Load(), w == own:
		return false
	case w == nil:
		e.watches[own.key] = own
		return false
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(own.parts) == 0 || w.dead.Load() || w.off != own.off || w.finished != own.finished ||
		w.exited.Load() != own.exited.Load() || own.waiting() && !w.waiting() {
		return false
	}
	for _, p := range own.parts {
		p.from = own.place(p)
		p.sub.mu.Lock()
		p.watch = w
		p.sub.mu.Unlock()
	}
	w.parts, own.parts = append(w.parts, own.parts...), nil
	return true
}

// follow follows a terminal; a panic becomes a gap in its events, and the other watches
// continue.
func (e *Engine) follow(ctx context.Context, w *watch) {
	defer func() {
		if recover() != nil {
			if e.opts.Bug != nil {
				e.opts.Bug("events", debug.Stack())
			}
		}
	}()
	defer w.rd.Close()
	_ = agenttools.Follow(ctx, w.rd, w)
	if !w.exited.Load() {
		e.abandon(w)
	}
}

// abandon removes a watch that has lost its reader. Its parts start again with the next
// list that has their terminal.
func (e *Engine) abandon(w *watch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watches[w.key] == w {
		delete(e.watches, w.key)
	}
	w.mu.Lock()
	w.dead.Store(true)
	w.mu.Unlock()
}

// detach stops following for a part, and ends the watch if no other part needs it.
func (e *Engine) detach(p *part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.sub.mu.Lock()
	w := p.watch
	p.sub.mu.Unlock()
	if w == nil {
		return
	}
	w.mu.Lock()
	p.sub.mu.Lock()
	p.watch, p.at = nil, w.place(p)
	p.sub.mu.Unlock()
	w.parts = slices.DeleteFunc(w.parts, func(one *part) bool { return one == p })
	idle := len(w.parts) == 0
	if idle {
		w.dead.Store(true)
	}
	w.mu.Unlock()
	if !idle {
		return
	}
	if e.watches[w.key] == w {
		delete(e.watches, w.key)
	}
	if w.cancel != nil {
		w.cancel()
	}
}
