package host

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"tether/host/admission"
	"tether/host/rights"
	"tether/internal/jsonspan"
)

// This file serves the part of the page where people see and end their entries besides
// terminals; administrators see and end everybody's. Nothing is granted here.

const (
	peoplePath = "/people"
	entryPath  = peoplePath + "/entries" // GET: the entries, as JSON
	endPath    = peoplePath + "/end"     // POST: ends one of them
	// freshTime is how long a person may end entries after showing who they are.
	freshTime  = 15 * time.Minute
	csrfHeader = "X-Tether-Csrf"
)

// entriesAnswer is the answer for the page.
type entriesAnswer struct {
	Me       string         `json:"me"`       // name of the person; empty: the host's own token
	Admin    bool           `json:"admin"`    // Entries has everybody's
	Secure   bool           `json:"secure"`   // entries can be ended, because the page came by https
	Fresh    bool           `json:"fresh"`    // the login is young enough to end entries
	Unproven bool           `json:"unproven"` // the identity provider does not say when people log in there, so no login is young enough
	Again    string         `json:"again"`    // where to log in anew
	CSRF     string         `json:"csrf"`     // for csrfHeader
	Entries  []rights.Entry `json:"entries"`  // in no order
}

var (
	errNotSecure = &admission.Refusal{Status: http.StatusForbidden, Text: "only over https can anything be ended", Quiet: true}
	errNotFresh  = &admission.Refusal{Status: http.StatusForbidden, Text: "log in again: you have not shown who you are within the last 15 minutes", Quiet: true}
	errUnproven  = &admission.Refusal{Status: http.StatusForbidden, Text: "your identity provider does not say when you have logged in there: use the command at the host", Quiet: true}
	errNoEntry   = &admission.Refusal{Status: http.StatusNotFound, Text: rights.ErrNoEntry.Error(), Quiet: true}
	errRegister  = &admission.Refusal{Status: http.StatusInternalServerError, Text: "the host cannot do this now; its log says why", Quiet: true}
)

// entries serves entryPath.
func (h *Host) entries(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
	all, err := h.entriesOf(p)
	if err != nil {
		h.log.Error().Err(err).Msg("the page's list of people")
		return errRegister
	}
	a := entriesAnswer{Me: p.Name, Admin: p.Administers(), Entries: all, Again: "/"}
	if h.opts.Provider != nil && h.opts.Register != nil && h.opts.Register.Session(p.Token) {
		a.Again = h.opts.Provider.Path + "?again"
	}
	if cookie, err := r.Cookie(h.checks.LoginCookie(r)); err == nil {
		why := h.logins.fresh(cookie.Value)
		a.CSRF, a.Secure, a.Fresh, a.Unproven = csrfOf(cookie.Value), h.checks.HTTPS(r), why == nil, why == errUnproven
	}
	answerJSON(w, a)
	return nil
}

// entriesOf returns the entries that p may see and end: their own or, for an
// administrator, all.
func (h *Host) entriesOf(p rights.Principal) ([]rights.Entry, error) {
	all := h.logins.entries(h.opts.Register)
	if h.opts.Register != nil {
		kept, err := h.opts.Register.Entries()
		if err != nil {
			return nil, err
		}
		all = append(all, kept...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.viewerLocked(p)
	all = append(all, h.shareEntriesLocked()...)
	all = slices.DeleteFunc(all, func(e rights.Entry) bool {
		return !v.Administers() && (e.OwnerID == "" || e.OwnerID != v.Owner || e.Kind == rights.EntryPerson)
	})
	online, lent := map[string]bool{}, map[string]int{}
	for t := range h.everyLocked() {
		if v.Administers() {
			owner := &t.creator.principal
			all = append(all, rights.Entry{Kind: rights.EntryTerminal, ID: t.id, Name: t.creator.machineLocked() + "/" + t.name, Owner: h.roster.People[owner.Owner], Since: &t.created, Size: t.out.End() - t.out.Oldest()})
		}
		lent[t.creator.principal.Name]++
	}
	for _, c := range h.clients {
		online[c.principal.Name] = online[c.principal.Name] || c.conn != nil
	}
	for i := range all {
		e := &all[i]
		e.Owner = cmp.Or(e.Owner, h.roster.People[e.OwnerID])
		if e.Kind == rights.EntryMachine {
			e.Online, e.Terminals = online[e.Name], lent[e.Name]
		}
	}
	return all, nil
}

// csrfOf returns the value that proves that a request comes from this host's page, in the
// browser with that cookie. No script can see the cookie.
func csrfOf(cookie string) string {
	sum := sha256.Sum256([]byte("tether-host page\x00" + cookie))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// endEntry serves endPath. It accepts only a cookie, sent over https by this host's page,
// which knows csrfOf, within freshTime after a login.
func (h *Host) endEntry(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	if _, err := r.Cookie(h.checks.LoginCookie(r)); err == nil && !h.checks.HTTPS(r) {
		return errNotSecure
	}
	cookie, p, why := h.fromPage(r)
	if why == nil {
		why = h.logins.fresh(cookie)
	}
	if why != nil {
		return why
	}
	var asked struct {
		Kind rights.EntryKind `json:"kind"`
		ID   string           `json:"id"`
	}
	if jsonspan.Decode(http.MaxBytesReader(w, r.Body, maxForm), &asked) != nil {
		return &admission.Refusal{Status: http.StatusBadRequest, Text: "the body must be JSON with kind and id", Quiet: true}
	}
	all, err := h.entriesOf(p)
	i := slices.IndexFunc(all, func(e rights.Entry) bool {
		return e.Kind == asked.Kind && e.ID == asked.ID && e.Kind != rights.EntryTerminal
	})
	if err == nil && i < 0 {
		return errNoEntry
	}
	if err == nil {
		err = h.end(asked.Kind, asked.ID)
	}
	switch {
	case errors.Is(err, rights.ErrNoEntry):
		return errNoEntry
	case err != nil:
		h.log.Error().Err(err).Msg("ending something at the page")
		return errRegister
	}
	h.audit(rights.AuditRevoked, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Detail: string(asked.Kind) + " " + all[i].Name})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// end ends one entry.
func (h *Host) end(kind rights.EntryKind, id string) error {
	if kind == rights.EntrySession && strings.HasPrefix(id, browserPrefix) {
		if !h.logins.end(strings.TrimPrefix(id, browserPrefix)) {
			return rights.ErrNoEntry
		}
		return nil
	}
	if kind == rights.EntryShare {
		if !h.endShare(id) {
			return rights.ErrNoEntry
		}
		return nil
	}
	if h.opts.Register == nil {
		return rights.ErrNoEntry
	}
	return h.opts.Register.End(kind, id)
}

// browserPrefix begins the ids of browsers' logins.
const browserPrefix = "b-"

// entryID returns the id of a login, which does not reveal its secret.
func entryID(cookie [sha256.Size]byte) string { return hex.EncodeToString(cookie[:8]) }

// entries returns the logged-in browsers, except for those whose login the register
// lists.
func (s *logins) entries(besides rights.Register) (all []rights.Entry) {
	for cookie, one := range s.browsers.All() {
		if one.principal.Life().Err() != nil || besides != nil && besides.Session(one.principal.Token) {
			continue
		}
		since, until := one.until.Add(-loginTime), one.until
		all = append(all, rights.Entry{Kind: rights.EntrySession, ID: browserPrefix + entryID(cookie), Name: cmp.Or(one.principal.Name, "the host's own token"), Detail: "browser, by token",
			Since: &since, Until: &until, OwnerID: one.principal.Owner})
	}
	return all
}

// fresh returns nil if a browser's person has shown within freshTime who they are.
func (s *logins) fresh(cookie string) *admission.Refusal {
	switch one, _ := s.browsers.Get(sha256.Sum256([]byte(cookie))); {
	case one.proof == rights.ProofMissing:
		return errUnproven
	case one.proof != rights.ProofNow || time.Until(one.until) <= loginTime-freshTime:
		return errNotFresh
	}
	return nil
}

// end logs a browser out.
func (s *logins) end(id string) bool {
	for cookie, one := range s.browsers.All() {
		if entryID(cookie) == id {
			one.end(errLoggedOut)
			return true
		}
	}
	return false
}
