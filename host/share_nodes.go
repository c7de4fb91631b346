package host

import (
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"

	"tether/internal/change"
)

// SharedShares are Shares that all nodes of a cluster share. Kept then returns also those
// of other nodes.
type SharedShares interface {
	Shares
	// Moved reports whether they have changed since Kept was called. It is cheap.
	Moved() bool
	// Change replaces all of them by the result of do, which may be called again with
	// what another node has made of them. Nothing is changed if do fails, whose error is
	// returned.
	Change(do func(old []Share) ([]Share, error)) error
}

// followShares takes over what other nodes change, until the host closes.
func (h *Host) followShares() {
	h.every(lookEvery, func() {
		h.lookAtShares()
		h.keeping.Lock()
		again := h.unkept
		h.keeping.Unlock()
		if again {
			_ = h.keepShares() // was logged
		}
	})
}

// lookAtShares takes over what other nodes have made of the shares.
func (h *Host) lookAtShares() {
	if h.sharedShares == nil {
		return
	}
	h.keeping.Lock()
	defer h.keeping.Unlock()
	if h.sharedShares.Moved() {
		h.takeShares(h.sharedShares.Kept())
	}
}

// takeShares makes all the shares of the cluster those of this node, except for those
// that only this one has made or ended and that are not kept yet. It is called with
// h.keeping.
func (h *Host) takeShares(all []Share) {
	before := h.keptShares
	h.keptShares = map[string]Share{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range all {
		h.keptShares[one.ID] = one
		s := h.shares[one.ID]
		base, known := before[one.ID]
		switch {
		case s == nil && !known && len(h.shares) < maxShares:
			h.addShareLocked(one)
		case s == nil:
		case known && one.leadsElsewhere(base) && one.leadsElsewhere(s.Share): // else what this node has changed is not kept yet
			delete(h.shares, one.ID)
			s.end(errShareEnded) // guests return with their tokens
			h.addShareLocked(one)
		case one.Once && len(one.Guests) > 0:
			s.Guests = slices.Clone(one.Guests) // whoever was first, here or elsewhere
		default:
			s.Guests = mergedGuests(one.Guests, s.Guests)
		}
	}
	for id := range before {
		if _, kept := h.keptShares[id]; !kept && h.shares[id] != nil {
			h.shares[id].end(errShareEnded)
		}
	}
}

// leadsElsewhere reports whether the link led to another terminal, or for another time,
// before.
func (s *Share) leadsElsewhere(before Share) bool {
	return s.Channel != before.Channel || !s.Until.Equal(before.Until)
}

// mergedGuests are the guests that two nodes know.
func mergedGuests(kept, ours [][sha256.Size]byte) [][sha256.Size]byte {
	all := slices.Clone(kept)
	for _, g := range ours {
		if !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	return all[max(0, len(all)-maxGuests):]
}

// errSameShares ends a change that changes nothing.
var errSameShares = errors.New("nothing changes")

// mergeShares brings what this node has changed of the shares into those that the cluster
// has. It is called with h.keeping.
func (h *Host) mergeShares(ours []Share) error {
	mine := map[string]Share{}
	for _, one := range ours {
		mine[one.ID] = one
	}
	var all []Share
	err := h.sharedShares.Change(func(old []Share) ([]Share, error) {
		all = nil
		there := map[string]bool{}
		for _, one := range old {
			there[one.ID] = true
			base, known := h.keptShares[one.ID]
			now, here := mine[one.ID]
			switch {
			case !here && known:
				continue // it was ended here
			case here && (!known || now.leadsElsewhere(base)):
				one.Channel, one.Until = now.Channel, now.Until
			}
			if here && !(one.Once && len(one.Guests) > 0) {
				one.Guests = mergedGuests(one.Guests, now.Guests)
			}
			all = append(all, one)
		}
		for _, one := range ours {
			if _, known := h.keptShares[one.ID]; !known && !there[one.ID] {
				all = append(all, one)
			}
		}
		if reflect.DeepEqual(all, old) {
			return nil, errSameShares
		}
		return all, nil
	})
	if errors.Is(err, errSameShares) {
		err = nil
	}
	if err == nil {
		h.takeShares(all)
	}
	return err
}

// sharedSoon repeats what finds a share or a guest, which another node may have made a
// moment ago.
func (h *Host) sharedSoon(find func() bool) bool {
	if find() {
		return true
	}
	if h.sharedShares == nil {
		return false
	}
	return change.Soon(sharedTime, func() bool { h.lookAtShares(); return find() })
}
