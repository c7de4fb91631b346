package term

import (
	"context"

	"tether/internal/clip"
)

// SaveLinkState keeps a text of at most 1 KiB for the actor, a host's door, for as
// long as the terminal is lent there: also for the daemon after this one, if
// the terminal outlives this one. It returns when that is certain, or ctx
// ends; ErrNotFound if the terminal is not lent there.
func (h Handle) SaveLinkState(ctx context.Context, text string) error {
	t := h.t
	text = clip.Text(text, maxLinkState)
	t.mu.Lock()
	lent := t.lending.has(h.actor.Name)
	certain := t.lending.linkStates[h.actor.Name] == text && !t.keeper.running // it may be on its way to the holder
	if lent && !certain {
		if t.lending.linkStates == nil {
			t.lending.linkStates = map[string]string{}
		}
		t.lending.linkStates[h.actor.Name] = text
	}
	t.mu.Unlock()
	switch {
	case !lent:
		return ErrNotFound
	case certain:
		return nil
	}
	return t.keep(ctx)
}

// Ended returns what the actor, a host's door, remembered of adopted terminals
// that are not lent to it any more: their lending ended while no daemon could
// tell the host. Each text is returned once, and Changed tells of new ones.
func (a Access) Ended() []string {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	texts := a.pool.ended[a.actor.Name]
	delete(a.pool.ended, a.actor.Name)
	return texts
}

// LinkState returns what SaveLinkState kept, "" if there is nothing.
func (h Handle) LinkState() string {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.lending.linkStates[h.actor.Name]
}
