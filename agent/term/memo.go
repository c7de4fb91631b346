package term

import (
	"context"

	"tether/internal/clip"
)

// Remember keeps a text of at most 1 KiB for the actor, a host's door, for as
// long as the terminal is lent there: also for the daemon after this one, if
// the terminal outlives this one. It returns when that is certain, or ctx
// ends; ErrNotFound if the terminal is not lent there.
func (h Handle) Remember(ctx context.Context, text string) error {
	t := h.t
	text = clip.Text(text, maxMemo)
	t.mu.Lock()
	lent := t.lending.has(h.actor.Name)
	certain := t.lending.memos[h.actor.Name] == text && !t.keeper.running // it may be on its way to the holder
	if lent && !certain {
		if t.lending.memos == nil {
			t.lending.memos = map[string]string{}
		}
		t.lending.memos[h.actor.Name] = text
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

// Remembered returns what Remember kept, "" if there is nothing.
func (h Handle) Remembered() string {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.lending.memos[h.actor.Name]
}
