package host

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/ahp"
	"tether/host/page"
	"tether/host/rights"
	"tether/jsonrpc"
)

// A share lets everyone with its link watch one terminal: without a login, and nothing
// else. Its machine makes and ends it. The host has the hash of the link's secret; the
// secret is in the part of a URL that no browser sends, until a guest sends it to open
// the share.

const (
	maxShares      = 1024 // of all machines
	maxSharesOfOne = 128  // of one machine
	maxGuests      = 64   // of one share; the one that came first gives way
	guestPrefix    = "tetherguest_"
)

// Share is a share as kept beyond the host's life.
type Share struct {
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

// sharedLink is a share of the host's. Guarded by Host.mu, except for live.
type sharedLink struct {
	Share
	live context.Context // ends with the share, or with its loan
	end  context.CancelCauseFunc
	stop context.CancelFunc // of its time
}

// restoreShares takes up the shares of the host before, and follows other nodes.
func (h *Host) restoreShares() {
	if h.opts.Shares == nil || h.opts.NoShares {
		h.opts.Shares = &sharesHere{}
	}
	h.takeShares(h.opts.Shares.Kept())
	if h.opts.Nodes != nil {
		h.work.Go(func() { h.every(lookEvery, h.lookAtShares) })
	}
}

// addShareLocked makes a share known.
func (h *Host) addShareLocked(one Share) {
	s := &sharedLink{Share: one}
	live, end := context.WithCancelCause(context.Background())
	s.live, s.stop = context.WithDeadlineCause(live, one.Until, errShareOver)
	s.end = end
	h.shares[one.ID] = s
	context.AfterFunc(s.live, func() {
		h.keeping.Lock()
		defer h.keeping.Unlock()
		h.mu.Lock()
		gone := !h.closed && h.shares[one.ID] == s
		h.mu.Unlock()
		if gone {
			_ = h.changeShares(withoutShare(one.ID), false) // was logged
		}
	})
}

// Reasons for the end of a guest's connections.
var (
	errShareOver  = errShare("the link has expired")
	errShareEnded = errShare("the link was ended")
)

type errShare string

func (e errShare) Error() string { return string(e) }

// share serves ahp.MethodShare: the machine of a terminal lets everyone with a link watch
// it. The same id with the same secret is the same share: it follows a terminal that its
// machine announces again.
func (c *conn) share(r *jsonrpc.Request) error {
	var p ahp.ShareParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	h := c.h
	if h.opts.NoShares || !c.may(rights.Lend) {
		return c.Denied("share terminals by links")
	}
	if now := time.Now(); !now.Before(p.ExpiresAt) || p.ExpiresAt.After(now.Add(ahp.MaxShareTime)) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "expiresAt must be in the future, by at most 30 days"}
	}
	if p.Port != 0 && h.previews == nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this host shows no previews: " + h.opts.NoPreviews}
	}
	if err := c.putShare(&p); err != nil {
		return err
	}
	h.audit(rights.AuditShared, c.remote, rights.AuditEvent{Terminal: p.Channel, Detail: "until " + p.ExpiresAt.UTC().Format(time.RFC3339)})
	return r.Reply(ahp.ShareResult{URL: h.opts.ShareURL})
}

func (c *conn) putShare(p *ahp.ShareParams) error {
	h := c.h
	h.keeping.Lock()
	defer h.keeping.Unlock()
	one, err := c.shareOf(p)
	if err == nil {
		_ = h.changeShares(withShare(one), false) // was logged
	}
	return err
}

// shareOf returns the share that a machine asks for, or why it cannot have it.
func (c *conn) shareOf(p *ahp.ShareParams) (one Share, err error) {
	h := c.h
	var secret [sha256.Size]byte
	_, _ = hex.Decode(secret[:], []byte(p.SecretHash)) // Validate has seen to it
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[p.Channel]
	if t == nil || !t.ownedBy(c) {
		return one, errUnknownChannel
	}
	owner := &t.creator.principal
	if s := h.shares[p.ID]; s != nil {
		if s.Secret != secret || s.Port != int(p.Port) || !s.sharedBy(owner) {
			return one, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the id is that of another share"}
		}
		one = s.Share
		one.Channel, one.Until = p.Channel, p.ExpiresAt
		return one, nil
	}
	own := 0
	for _, s := range h.shares {
		if s.sharedBy(owner) {
			own++
		}
	}
	if own >= maxSharesOfOne || len(h.shares) >= maxShares || len(h.edits) >= maxEdits {
		return one, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there are too many shared links; end some"}
	}
	return Share{ID: p.ID, Channel: p.Channel, Port: int(p.Port), Secret: secret, Machine: owner.Name, Owner: owner.Owner, Name: t.creator.Machine() + "/" + t.name,
		Created: time.Now().UTC(), Until: p.ExpiresAt, Once: p.Once}, nil
}

// sharedBy reports whether a machine's principal has made the share.
func (s *Share) sharedBy(p *rights.Principal) bool { return s.Machine == p.Name && s.Owner == p.Owner }

// endSharesLocked ends the links to a terminal that is disposed of, and was lent by p:
// the loan to which they were bound is over. Guests are told that their link has ended,
// and not that the terminal has exited: it may run on.
func (h *Host) endSharesLocked(uri string, p *rights.Principal) {
	ended := false
	for _, s := range h.shares {
		if s.Channel == uri && s.sharedBy(p) {
			s.end(errShareEnded)
			ended = true
		}
	}
	if !ended {
		return
	}
	for c := range h.conns {
		if c.remote.principal.Guest == uri {
			c.expelLocked(closePolicy, errShareEnded.Error())
		}
	}
}

// unshare serves ahp.MethodUnshare. A share that is gone already is no error.
func (c *conn) unshare(r *jsonrpc.Request) error {
	var p ahp.UnshareParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	h := c.h
	h.lookAtShares() // another node may have made it a moment ago
	h.mu.Lock()
	s := h.shares[p.ID]
	own := s != nil && s.sharedBy(&c.remote.principal) && c.may(rights.Lend)
	h.mu.Unlock()
	if own {
		s.end(errShareEnded)
	}
	return r.Reply(struct{}{})
}

// guestOf is the guest of a share with one of its tokens.
func (s *sharedLink) guestOf(hash [sha256.Size]byte) rights.Principal {
	return rights.Principal{Name: page.GuestName + s.ID, Role: rights.RoleObserver, Guest: s.Channel, GuestPort: s.Port, Live: s.live, Token: hash}
}

// knownGuest returns whose a guest's token is.
func (h *Host) knownGuest(token string) (p rights.Principal, ok bool) {
	if !strings.HasPrefix(token, guestPrefix) {
		return rights.Principal{}, false
	}
	return h.guestWith(sha256.Sum256([]byte(token)))
}

// guestWith returns whose a guest's token is, by its hash.
func (h *Host) guestWith(hash [sha256.Size]byte) (p rights.Principal, ok bool) {
	ok = h.sharedSoon(func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, s := range h.shares {
			if slices.Contains(s.Guests, hash) && s.live.Err() == nil {
				p = s.guestOf(hash)
				return true
			}
		}
		return false
	})
	return p, ok
}

// admitGuest finds the share and makes a token for a guest; before is one that the
// browser has already. A link for one browser may have been opened at another node, and
// counts only once all nodes know who has opened it.
func (h *Host) admitGuest(id string, secret [sha256.Size]byte, before string) (p rights.Principal, token string, ok bool) {
	h.keeping.Lock()
	defer h.keeping.Unlock()
	known, token := sha256.Sum256([]byte(before)), guestPrefix+rand.Text()
	s := h.shareWith(id, secret)
	switch {
	case s == nil:
		return p, "", false
	case slices.Contains(s.Guests, known):
		return s.guestOf(known), before, true
	case s.Once && len(s.Guests) > 0, len(h.edits) >= maxEdits:
		return p, "", false
	}
	hash := sha256.Sum256([]byte(token))
	_ = h.changeShares(withGuest(id, hash), s.Once && h.opts.Nodes != nil) // was logged
	if s = h.shareWith(id, secret); s == nil || !slices.Contains(s.Guests, hash) {
		return p, "", false
	}
	return s.guestOf(hash), token, true
}

// shareWith returns the share with that id and secret, or nil.
func (h *Host) shareWith(id string, secret [sha256.Size]byte) *sharedLink {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.shares[id]
	if s == nil || subtle.ConstantTimeCompare(s.Secret[:], secret[:]) != 1 || s.live.Err() != nil {
		return nil
	}
	return s
}

// shareEntriesLocked are the shares for the page of people.
func (h *Host) shareEntriesLocked() (all []rights.Entry) {
	for _, s := range h.shares {
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

// endShare ends one by its id.
func (h *Host) endShare(id string) bool {
	h.mu.Lock()
	s := h.shares[id]
	h.mu.Unlock()
	if s == nil {
		return false
	}
	s.end(errShareEnded)
	return true
}
