package share

import (
	"crypto/sha256"
	"slices"
	"sync"

	"tether/internal/change"
)

// Store keeps links beyond the host's life. All nodes of a cluster share them. It is safe
// for concurrent use.
type Store interface {
	// Kept returns those that have not ended.
	Kept() []Link
	// Moved reports whether they may have changed since Kept was called. It is cheap.
	Moved() bool
	// Change replaces all of them by the result of do, and returns when that is stored.
	// do may be called again with what another node has made of them.
	Change(do func(all []Link) []Link) error
}

// linksHere is a Store whose links end with the host.
type linksHere struct {
	mu  sync.Mutex
	all []Link
}

// Kept implements Store.
func (s *linksHere) Kept() []Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Moved implements Store.
func (s *linksHere) Moved() bool { return false }

// Change implements Store.
func (s *linksHere) Change(do func([]Link) []Link) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = do(slices.Clone(s.all))
	return nil
}

// edit is a change of the links.
type edit func(all []Link) []Link

// edited changes the links.
func edited(all []Link, edits []edit) []Link {
	for _, do := range edits {
		all = do(all)
	}
	return all
}

// maxEdits bounds the changes that could not be stored yet: further ones, other than
// ends, are refused.
const maxEdits = 4 * maxLinks

// withLink makes a share, or makes it lead to its terminal, for its time.
func withLink(one Link) edit {
	return func(all []Link) []Link {
		i := slices.IndexFunc(all, func(o Link) bool { return o.ID == one.ID })
		if i < 0 {
			return append(all, one)
		}
		all[i].Channel, all[i].Until = one.Channel, one.Until
		return all
	}
}

// withoutLink ends a share.
func withoutLink(id string) edit {
	return func(all []Link) []Link {
		return slices.DeleteFunc(all, func(o Link) bool { return o.ID == id })
	}
}

// withGuest lets a guest in. Of a link for one browser, the first one counts.
func withGuest(id string, token [sha256.Size]byte) edit {
	return func(all []Link) []Link {
		for i := range all {
			if s := &all[i]; s.ID == id && !(s.Once && len(s.Guests) > 0) {
				guests := append(slices.Clone(s.Guests), token)
				s.Guests = guests[max(0, len(guests)-maxGuests):]
			}
		}
		return all
	}
}

// change makes a change of the links, which holds at this node even if it cannot be
// stored yet, unless it must be. It is called with b.keeping.
func (b *Book) change(do edit, must bool) {
	before := b.edits
	b.edits = append(slices.Clone(before), do)
	if b.store() != nil && must {
		b.edits = before
		b.take(edited(b.o.Store.Kept(), before))
	}
}

// store stores the changes of this node, and takes over what is stored then. It logs its
// error, and is called as change is.
func (b *Book) store() error {
	var all []Link
	err := b.o.Store.Change(func(old []Link) []Link { all = edited(old, b.edits); return all })
	switch {
	case err == nil:
		b.edits = nil
	case !b.o.Nodes: // nobody else changes them
		all = edited(b.now(), b.edits[len(b.edits)-1:])
		now := all
		b.edits = []edit{func([]Link) []Link { return slices.Clone(now) }}
		b.o.Log.Error().Err(err).Msg("shared links are not kept: they end with this host")
	default:
		if all = edited(b.o.Store.Kept(), b.edits); len(b.edits) == 1 {
			b.o.Log.Error().Err(err).Msg("shared links are not kept yet: other nodes do not know what has changed")
		}
	}
	b.take(all)
	return err
}

// now returns the links of this node.
func (b *Book) now() (all []Link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.shares {
		all = append(all, s.Link)
	}
	return all
}

// Look takes over what other nodes have made of the links, and stores what could not be
// stored before.
func (b *Book) Look() {
	if !b.o.Nodes {
		return
	}
	b.keeping.Lock()
	defer b.keeping.Unlock()
	switch {
	case len(b.edits) > 0:
		_ = b.store() // was logged
	case b.o.Store.Moved():
		b.take(b.o.Store.Kept())
	}
}

// take makes these the links of this node. It is called as change is.
func (b *Book) take(all []Link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := map[string]bool{}
	for _, one := range all {
		there[one.ID] = true
		s := b.shares[one.ID]
		switch {
		case s != nil && s.Channel == one.Channel && s.Until.Equal(one.Until):
			s.Guests = one.Guests
			continue
		case s != nil:
			s.end(ErrEnded) // guests return with their tokens
		case len(b.shares) >= maxLinks:
			continue
		}
		b.addLocked(one)
	}
	for id, s := range b.shares {
		if !there[id] {
			delete(b.shares, id)
			s.end(ErrEnded)
		}
	}
}

// soon repeats what finds a share or a guest with the lock, which another node may have
// made a moment ago.
func (b *Book) soon(findLocked func() bool) bool {
	find := func() bool { b.mu.Lock(); defer b.mu.Unlock(); return findLocked() }
	if found := find(); found || !b.o.Nodes {
		return found
	}
	return change.Soon(func() bool { b.Look(); return find() })
}
