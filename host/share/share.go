// Package share has the links by which guests, who have no login, watch one terminal or
// use one of its lent ports, and nothing else. A machine makes and ends the links of its
// terminals. The host has the hash of a link's secret; the secret is in the part of a URL
// that no browser sends, until a guest sends it to open the link.
package share

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/host/rights"
	"tether/jsonrpc"
)

const (
	maxLinks      = 1024 // of all machines
	maxLinksOfOne = 128  // of one machine
	maxGuests     = 64   // of one link; the one that came first gives way
	guestPrefix   = "tetherguest_"
)

// Link is a share as kept beyond the host's life.
type Link struct {
	ID      string
	Channel string            // URI of the terminal, by which its machine lends it now
	Secret  [sha256.Size]byte // hash of the link's secret
	Machine string            // name of its machine's token
	Owner   string            // id of the machine's owner at that time
	Name    string            // of the terminal, for lists
	Created time.Time
	Until   time.Time
	Port    int                 // the lent port that guests see, and nothing else; 0: they see the terminal
	Once    bool                // only the first guest is let in
	Guests  [][sha256.Size]byte // hashes of the tokens of former guests, the oldest first
}

// madeBy reports whether a machine's principal has made the link.
func (l *Link) madeBy(p *rights.Principal) bool { return l.Machine == p.Name && l.Owner == p.Owner }

// share is a link of this host. Only its Guests change, guarded by Book.mu.
type share struct {
	Link
	live context.Context // ends with the share, or with its loan
	end  context.CancelCauseFunc
	stop context.CancelFunc // of its time
}

// Options configure a Book.
type Options struct {
	Store Store // nil: the links end with the host
	Nodes bool  // other nodes change the Store, too
	Log   zerolog.Logger
}

// Book has the links of a host. Its methods may be called concurrently, and those that
// change no link, or only end one, also under other locks. Close it.
type Book struct {
	o Options

	keeping sync.Mutex // held while links are changed; taken before mu
	edits   []edit     // changes that are not stored yet; guarded by keeping

	mu     sync.Mutex
	shares map[string]*share // by id
	closed bool
}

// New takes up the links of the host before.
func New(o Options) *Book {
	if o.Store == nil {
		o.Store = &linksHere{}
	}
	b := &Book{o: o, shares: make(map[string]*share)}
	b.take(o.Store.Kept())
	return b
}

// Close stops the time of all links, which the Store keeps.
func (b *Book) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range b.shares {
		s.stop()
	}
}

// addLocked makes a link known.
func (b *Book) addLocked(one Link) {
	s := &share{Link: one}
	live, end := context.WithCancelCause(context.Background())
	s.live, s.stop = context.WithDeadlineCause(live, one.Until, errOver)
	s.end = end
	b.shares[one.ID] = s
	context.AfterFunc(s.live, func() {
		b.keeping.Lock()
		defer b.keeping.Unlock()
		b.mu.Lock()
		gone := !b.closed && b.shares[one.ID] == s
		b.mu.Unlock()
		if gone {
			b.change(withoutLink(one.ID), false)
		}
	})
}

// Reasons for the end of a guest's connections. Guests are not told that the terminal has
// exited: it may run on.
const (
	errOver  over = "the link has expired"
	ErrEnded over = "the link was ended" // by its machine or a person, or with its loan
)

type over string

func (e over) Error() string { return string(e) }

var (
	errOther = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the id is that of another share"}
	errMany  = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there are too many shared links; end some"}
)

// Put makes the link that wanted returns. The same id with the same secret is the same
// link: it follows a terminal that its machine announces again. No other link changes
// while wanted is called; its error is returned.
func (b *Book) Put(wanted func() (Link, error)) error {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	one, err := wanted()
	if err == nil {
		err = b.admits(&one)
	}
	if err == nil {
		b.change(withLink(one), false)
	}
	return err
}

// admits reports why a machine cannot have a link, and completes one that is known. It is
// called as change is.
func (b *Book) admits(one *Link) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	by := &rights.Principal{Name: one.Machine, Owner: one.Owner}
	if s := b.shares[one.ID]; s != nil {
		if s.Secret != one.Secret || s.Port != one.Port || !s.madeBy(by) {
			return errOther
		}
		now := s.Link
		now.Channel, now.Until = one.Channel, one.Until
		*one = now
		return nil
	}
	own := 0
	for _, s := range b.shares {
		if s.madeBy(by) {
			own++
		}
	}
	if own >= maxLinksOfOne || len(b.shares) >= maxLinks || len(b.edits) >= maxEdits {
		return errMany
	}
	return nil
}

// EndOf ends the links to a terminal that p no longer lends: the loan to which they were
// bound is over. It reports whether there were any.
func (b *Book) EndOf(uri string, p *rights.Principal) (ended bool) {
	return b.end(func(s *share) bool { return s.Channel == uri && s.madeBy(p) })
}

// EndBy ends a link of p's, if there is one with that id.
func (b *Book) EndBy(id string, p *rights.Principal) {
	b.end(func(s *share) bool { return s.ID == id && s.madeBy(p) })
}

// End ends a link by its id, and reports whether there is one.
func (b *Book) End(id string) bool { return b.end(func(s *share) bool { return s.ID == id }) }

func (b *Book) end(which func(*share) bool) (ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.shares {
		if which(s) {
			s.end(ErrEnded)
			ended = true
		}
	}
	return ended
}

// Await waits until a link is known that another node may have made a moment ago.
func (b *Book) Await(id string) { b.soon(func() bool { return b.shares[id] != nil }) }

// guest is the guest of a share with one of its tokens.
func (s *share) guest(hash [sha256.Size]byte) rights.Principal {
	return rights.Principal{Name: rights.GuestName + s.ID, Role: rights.RoleObserver, Guest: s.Channel, GuestPort: s.Port, Live: s.live, Token: hash}
}

// Known returns whose a guest's token is.
func (b *Book) Known(token string) (p rights.Principal, ok bool) {
	if !strings.HasPrefix(token, guestPrefix) {
		return rights.Principal{}, false
	}
	return b.Guest(sha256.Sum256([]byte(token)))
}

// Guest returns whose a guest's token is, by its hash.
func (b *Book) Guest(hash [sha256.Size]byte) (p rights.Principal, ok bool) {
	ok = b.soon(func() bool {
		for _, s := range b.shares {
			if slices.Contains(s.Guests, hash) && s.live.Err() == nil {
				p = s.guest(hash)
				return true
			}
		}
		return false
	})
	return p, ok
}

// Admit finds the link with that id and secret and makes a token for a guest; before is
// one that the browser has already. A link for one browser may have been opened at
// another node, and counts only once all nodes know who has opened it.
func (b *Book) Admit(id string, secret [sha256.Size]byte, before string) (p rights.Principal, token string, ok bool) {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	known, token := sha256.Sum256([]byte(before)), guestPrefix+rand.Text()
	s, guests := b.with(id, secret)
	switch {
	case s == nil:
		return p, "", false
	case slices.Contains(guests, known):
		return s.guest(known), before, true
	case s.Once && len(guests) > 0, len(b.edits) >= maxEdits:
		return p, "", false
	}
	hash := sha256.Sum256([]byte(token))
	b.change(withGuest(id, hash), s.Once && b.o.Nodes)
	if s, guests = b.with(id, secret); s == nil || !slices.Contains(guests, hash) {
		return p, "", false
	}
	return s.guest(hash), token, true
}

// with returns the share with that id and secret, or nil, and its guests.
func (b *Book) with(id string, secret [sha256.Size]byte) (*share, [][sha256.Size]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.shares[id]
	if s == nil || subtle.ConstantTimeCompare(s.Secret[:], secret[:]) != 1 || s.live.Err() != nil {
		return nil, nil
	}
	return s, s.Guests
}

// Entries are the links for the page of people.
func (b *Book) Entries() (all []rights.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.shares {
		detail := "not opened"
		if len(s.Guests) > 0 {
			detail = "opened"
		}
		since, until, name := s.Created, s.Until, s.Name
		if s.Port != 0 {
			name += ", port " + strconv.Itoa(s.Port)
		}
		all = append(all, rights.Entry{Kind: rights.EntryShare, ID: s.ID, Name: name, OwnerID: s.Owner, Detail: detail, Since: &since, Until: &until})
	}
	return all
}
