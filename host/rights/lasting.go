package rights

import (
	"context"
	"sync"
)

// A token ends what was opened with it. What belongs to a name (shells and the session of
// an agent, its cached MCP server, its webhooks, the parked terminals of a machine) lasts
// as long as the name has a valid token, so that a token can be replaced.

// Names knows how long what belongs to names lasts. It is safe for concurrent use.
type Names struct {
	// Valid returns the principal of a valid token of a name and role, also of one that
	// was not shown yet; it may read a file. nil: only tokens that were shown count.
	Valid func(name string, role Role) (p Principal, ok bool)

	mu sync.Mutex
	of map[string]*lasting // by Principal.Key
}

// lasting is the time of one name, with one role and owner.
type lasting struct {
	live   context.Context
	end    context.CancelCauseFunc
	tokens map[context.Context]struct{} // Principal.Live of each of its tokens that is known here; guarded by Names.mu
}

// Lasting returns a context that ends when the principal's name has no valid token any
// more, with this role and owner. It may read a file if p's own token has ended.
func (n *Names) Lasting(p Principal) context.Context {
	if live := n.Known(p); live.Err() == nil {
		return live
	}
	if next, ok := n.other(p); ok {
		return n.Known(next)
	}
	return p.Life()
}

// Known is Lasting for a principal with a valid token, or one whose name is known. It
// reads no file.
func (n *Names) Known(p Principal) context.Context {
	if p.Live == nil {
		return p.Life()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.of[p.Key()]
	if p.Live.Err() == nil && (l == nil || l.live != p.Live) {
		l = n.addLocked(p, l)
	}
	if l == nil {
		return p.Live
	}
	return l.live
}

// addLocked counts a token of a name; l may be nil.
func (n *Names) addLocked(p Principal, l *lasting) *lasting {
	if l == nil {
		l = &lasting{tokens: map[context.Context]struct{}{}}
		l.live, l.end = context.WithCancelCause(context.Background())
		if n.of == nil {
			n.of = map[string]*lasting{}
		}
		n.of[p.Key()] = l
	}
	if _, known := l.tokens[p.Live]; !known {
		l.tokens[p.Live] = struct{}{}
		context.AfterFunc(p.Live, func() { n.ended(p, l) })
	}
	return l
}

// ended is called when a token has ended. With the last one that is known here, what
// belongs to its name ends, unless another one is valid.
func (n *Names) ended(p Principal, l *lasting) {
	n.mu.Lock()
	delete(l.tokens, p.Live)
	last := len(l.tokens) == 0
	n.mu.Unlock()
	if !last {
		return
	}
	next, more := n.other(p) // without the lock: it may read a file
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case len(l.tokens) > 0 || n.of[p.Key()] != l:
	case more:
		n.addLocked(next, l)
	default:
		delete(n.of, p.Key())
		l.end(context.Cause(p.Live))
	}
}

// other returns the principal of another valid token of a name, also of one that was not
// shown here yet.
func (n *Names) other(p Principal) (next Principal, ok bool) {
	if n.Valid == nil {
		return next, false
	}
	next, ok = n.Valid(p.Name, p.Role)
	return next, ok && next.Owner == p.Owner && next.Live != nil && next.Live.Err() == nil
}
