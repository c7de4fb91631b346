package host

import (
	"crypto/sha256"
	"slices"
	"sync"

	"tether/host/login"
	"tether/internal/change"
)

// Shares keeps shares beyond the host's life. All nodes of a cluster share them. It is
// safe for concurrent use.
type Shares interface {
	// Kept returns those that have not ended.
	Kept() []Share
	// Moved reports whether they may have changed since Kept was called. It is cheap.
	Moved() bool
	// Change replaces all of them by the result of do, and returns when that is stored.
	// do may be called again with what another node has made of them.
	Change(do func(all []Share) []Share) error
}

// sharesHere are Shares that end with the host.
type sharesHere struct {
	mu  sync.Mutex
	all []Share
}

// Kept implements Shares.
func (s *sharesHere) Kept() []Share {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Moved implements Shares.
func (s *sharesHere) Moved() bool { return false }

// Change implements Shares.
func (s *sharesHere) Change(do func([]Share) []Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = do(slices.Clone(s.all))
	return nil
}

// shareEdit is a change of the shares.
type shareEdit func(all []Share) []Share

// edited changes the shares.
func edited(all []Share, edits []shareEdit) []Share {
	for _, edit := range edits {
		all = edit(all)
	}
	return all
}

// maxEdits bounds the changes that could not be stored yet: further ones, other than
// ends, are refused.
const maxEdits = 4 * maxShares

// withShare makes a share, or makes it lead to its terminal, for its time.
func withShare(one Share) shareEdit {
	return func(all []Share) []Share {
		i := slices.IndexFunc(all, func(o Share) bool { return o.ID == one.ID })
		if i < 0 {
			return append(all, one)
		}
		all[i].Channel, all[i].Until = one.Channel, one.Until
		return all
	}
}

// withoutShare ends a share.
func withoutShare(id string) shareEdit {
	return func(all []Share) []Share {
		return slices.DeleteFunc(all, func(o Share) bool { return o.ID == id })
	}
}

// withGuest lets a guest in. Of a link for one browser, the first one counts.
func withGuest(id string, token [sha256.Size]byte) shareEdit {
	return func(all []Share) []Share {
		for i := range all {
			if s := &all[i]; s.ID == id && !(s.Once && len(s.Guests) > 0) {
				guests := append(slices.Clone(s.Guests), token)
				s.Guests = guests[max(0, len(guests)-maxGuests):]
			}
		}
		return all
	}
}

// changeShares makes a change of the shares, which holds at this node even if it cannot
// be stored yet, unless it must be. It is called with h.keeping, and not with the host's
// mutex.
func (h *Host) changeShares(edit shareEdit, must bool) error {
	before := h.edits
	h.edits = append(slices.Clone(before), edit)
	err := h.storeShares()
	if err != nil && must {
		h.edits = before
		h.takeShares(edited(h.opts.Shares.Kept(), before))
	}
	return err
}

// storeShares stores the changes of this node, and takes over what is stored then. It is
// called as changeShares is.
func (h *Host) storeShares() error {
	var all []Share
	err := h.opts.Shares.Change(func(old []Share) []Share { all = edited(old, h.edits); return all })
	switch {
	case err == nil:
		h.edits = nil
	case h.opts.Nodes == nil: // nobody else changes them
		all = edited(h.sharesNow(), h.edits[len(h.edits)-1:])
		now := all
		h.edits = []shareEdit{func([]Share) []Share { return slices.Clone(now) }}
		h.log.Error().Err(err).Msg("shared links are not kept: they end with this host")
	default:
		if all = edited(h.opts.Shares.Kept(), h.edits); len(h.edits) == 1 {
			h.log.Error().Err(err).Msg("shared links are not kept yet: other nodes do not know what has changed")
		}
	}
	h.takeShares(all)
	return err
}

// sharesNow returns the shares of this node.
func (h *Host) sharesNow() (all []Share) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.shares {
		all = append(all, s.Share)
	}
	return all
}

// lookAtShares takes over what other nodes have made of the shares, and stores what could
// not be stored before.
func (h *Host) lookAtShares() {
	if h.opts.Nodes == nil {
		return
	}
	h.keeping.Lock()
	defer h.keeping.Unlock()
	switch {
	case len(h.edits) > 0:
		_ = h.storeShares() // was logged
	case h.opts.Shares.Moved():
		h.takeShares(h.opts.Shares.Kept())
	}
}

// takeShares makes these the shares of this node. It is called as changeShares is.
func (h *Host) takeShares(all []Share) {
	h.mu.Lock()
	defer h.mu.Unlock()
	there := map[string]bool{}
	for _, one := range all {
		there[one.ID] = true
		s := h.shares[one.ID]
		switch {
		case s != nil && s.Channel == one.Channel && s.Until.Equal(one.Until):
			s.Guests = one.Guests
			continue
		case s != nil:
			s.end(errShareEnded) // guests return with their tokens
		case len(h.shares) >= maxShares:
			continue
		}
		h.addShareLocked(one)
	}
	for id, s := range h.shares {
		if !there[id] {
			delete(h.shares, id)
			s.end(errShareEnded)
		}
	}
}

// sharedSoon repeats what finds a share or a guest, which another node may have made a
// moment ago.
func (h *Host) sharedSoon(find func() bool) bool {
	if found := find(); found || h.opts.Nodes == nil {
		return found
	}
	return change.Soon(login.SharedTime, func() bool { h.lookAtShares(); return find() })
}
