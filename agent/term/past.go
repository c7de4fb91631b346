package term

import "context"

// dropper is a HolderPTY that can drop output before its log is full.
type dropper interface {
	// Drop drops the output before a raw offset, which Read has returned, and returns
	// when it is gone. A holder may be too old for that.
	Drop(off int64) error
}

// ForgetPast drops the output before a text offset, and what is known of the commands in
// it; of a running terminal also the screens that are kept for the next daemon. Screens
// that are shown now stay. It returns when the holder has dropped it, or ctx ends; whole
// is false if the holder cannot drop it. Hosts are told to clear what they show.
func (h Handle) ForgetPast(ctx context.Context, text int64) (whole bool, err error) {
	if err := h.allow(OpKill); err != nil {
		return false, err
	}
	t := h.t
	t.mu.Lock()
	raw, some := t.log.Clear(text)
	noted, over := t.log.Noted() >= raw, t.ending.exit != nil
	t.chargeLocked()
	t.mu.Unlock()
	if !some {
		return true, nil
	}
	d, can := t.holder.(dropper)
	if t.holder == nil || over {
		return t.holder == nil, nil
	}
	if !can || !noted || t.keep(ctx) != nil { // which gives the holder the checkpoint, too
		return false, nil
	}
	return d.Drop(raw) == nil, nil
}

// Forget removes an exited terminal from the pool, as its age would. It reports whether
// there was one.
func (a Access) Forget(id ID) bool {
	p := a.pool
	h, err := a.Terminal(id)
	if err != nil || h.allow(OpKill) != nil || !isClosed(h.t.life.done) {
		return false
	}
	p.mu.Lock()
	_, there := p.terminals[id]
	delete(p.terminals, id)
	p.mu.Unlock()
	if !there {
		return false
	}
	h.t.release()
	h.t.stopTelling()
	p.relax()
	p.changed()
	return true
}
