package events

import (
	"context"
	"runtime/debug"
	"time"

	"tether/agenttools"
)

// catchUp is how much of a terminal's output, in bytes, may be read for one subscription while the terminal's other subscriptions wait.
const catchUp = 256 << 10

// key returns the key of the watch to which a part belongs.
func (p *part) key() watchKey {
	q := p.sub.spec.pattern
	return watchKey{p.id, q != nil && q.literal == nil}
}

// begin follows a part's terminal from p.from on; for a new terminal that is the zero place.
func (e *Engine) begin(p *part) {
	if p.sub.spec.kind.family == ofExits {
		return
	}
	t, err := e.opts.Terminals.Open(p.id)
	if err != nil {
		return // the next list reports that it is gone
	}
	own, err := newWatch(t, p.from)
	if err != nil {
		return
	}
	own.parts = []*part{p}
	e.join(p, own)
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
	own.parts = []*part{p}
	e.join(p, own)
	return nil
}

// join makes a shared watch continue with a part that the watch own has read so far.
func (e *Engine) join(p *part, own *watch) {
	key := p.key()
	for range 1000 {
		e.mu.Lock()
		w := e.watches[key]
		if w == nil && !e.closed {
			e.watches[key] = own
			p.sub.mu.Lock()
			p.watch = own
			p.sub.mu.Unlock()
			var ctx context.Context
			ctx, own.cancel = context.WithCancel(e.ctx)
			e.wg.Go(func() { e.follow(ctx, own) })
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		if w == nil || own.meet(w, p) {
			own.rd.Close()
			return
		}
	}
	own.rd.Close() // output arrives faster than it can be examined
	e.mu.Lock()
	w := e.watches[key]
	e.mu.Unlock()
	if w == nil {
		return
	}
	w.mu.Lock()
	p.from, p.told = place{off: w.split.Start}, toldLine{}
	if p.sub.spec.kind.family == ofCommands {
		p.from = place{w.off, w.finished}
	}
	w.take1(p)
	w.mu.Unlock()
	p.sub.lose(p)
}

// meet reads on to the position of w and passes the part to w. It returns false if that is so far that others would wait for too long.
func (own *watch) meet(w *watch, p *part) bool {
	own.step(4 * catchUp)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead.Load() || w.off-own.off > catchUp {
		return false
	}
	buf := make([]byte, min(32<<10, max(int(w.off-own.off), 64)))
	for own.off < w.off {
		before := own.off
		ev, ok, err := own.rd.TryNext(buf[:min(len(buf), max(int(w.off-own.off), 64))])
		if ok && err == nil {
			own.take(ev)
		}
		if !ok || err != nil || own.off == before && len(ev.Data) == 0 && ev.Finished == nil && ev.Lost == 0 {
			break
		}
	}
	if p.sub.spec.kind.family == ofCommands {
		p.from = place{own.off, own.finished}
	} else {
		p.from = own.place(p)
	}
	w.take1(p)
	return true
}

// take1 adds a part to the watch. w.mu must be held.
func (w *watch) take1(p *part) {
	w.parts = append(w.parts, p)
	p.sub.mu.Lock()
	p.watch = w
	p.sub.mu.Unlock()
	if len(w.split.Part) > 0 && p.sub.spec.kind.family == ofLines {
		off := w.off
		time.AfterFunc(stands, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.off == off {
				w.stand()
			}
		})
	}
}

// follow follows a terminal; a panic becomes a gap in its events, and the other watches continue.
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

// abandon removes a watch that has lost its reader. Its parts start again with the next list that has their terminal.
func (e *Engine) abandon(w *watch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, one := range e.watches {
		if one == w {
			delete(e.watches, key)
		}
	}
	w.mu.Lock()
	w.dead.Store(true)
	w.mu.Unlock()
}

// detach stops following for a part, and ends the watch if no other part needs it.
func (e *Engine) detach(p *part) {
	p.sub.mu.Lock()
	w := p.watch
	p.watch = nil
	p.sub.mu.Unlock()
	if w == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	w.mu.Lock()
	for i, one := range w.parts {
		if one == p {
			at := w.place(p)
			p.sub.mu.Lock()
			p.at = at
			p.sub.mu.Unlock()
			w.parts = append(w.parts[:i:i], w.parts[i+1:]...)
			break
		}
	}
	idle := len(w.parts) == 0
	if idle {
		w.dead.Store(true)
	}
	w.mu.Unlock()
	if idle {
		if e.watches[p.key()] == w {
			delete(e.watches, p.key())
		}
		if w.cancel != nil {
			w.cancel()
		}
	}
}
