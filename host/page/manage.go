package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"

	"tether/host/admission"
	"tether/host/login"
	"tether/host/rights"
	"tether/internal/jsonspan"
)

// This file serves the part of the page where people see and end their entries besides
// terminals; administrators see and end everybody's. Nothing is granted here.

const (
	entryPath  = peoplePath + "/entries" // GET: the entries, as JSON
	endPath    = peoplePath + "/end"     // POST: ends one of them
	csrfHeader = "X-Tether-Csrf"
)

var (
	errNotSecure = &admission.Refusal{Status: http.StatusForbidden, Text: "only over https can anything be ended", Quiet: true}
	errNoEntry   = &admission.Refusal{Status: http.StatusNotFound, Text: rights.ErrNoEntry.Error(), Quiet: true}
	errRegister  = &admission.Refusal{Status: http.StatusInternalServerError, Text: "the host cannot do this now; its log says why", Quiet: true}
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

// entries serves entryPath.
func (pg *Page) entries(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
	all, err := pg.entriesOf(p)
	if err != nil {
		pg.opts.Log.Error().Err(err).Msg("the page's list of people")
		return errRegister
	}
	a := entriesAnswer{Me: p.Name, Admin: p.Administers(), Entries: all, Again: "/"}
	if pg.opts.Provider != nil && pg.opts.Register != nil && pg.opts.Register.Session(p.Token) {
		a.Again = pg.opts.Provider.Path + "?again"
	}
	if cookie, err := r.Cookie(pg.checks.LoginCookie(r)); err == nil {
		why := pg.logins.Fresh(cookie.Value)
		a.CSRF, a.Secure, a.Fresh, a.Unproven = csrfOf(cookie.Value), pg.checks.HTTPS(r), why == nil, why == login.ErrUnproven
	}
	admission.AnswerJSON(w, a)
	return nil
}

// entriesOf returns the entries that p may see and end: their own or, for an
// administrator, all.
func (pg *Page) entriesOf(p rights.Principal) ([]rights.Entry, error) {
	all := pg.logins.Entries(pg.opts.Register)
	if pg.opts.Register != nil {
		kept, err := pg.opts.Register.Entries()
		if err != nil {
			return nil, err
		}
		all = append(all, kept...)
	}
	return pg.opts.Terminals.Entries(p, all), nil
}

// csrfOf returns the value that proves that a request comes from this host's page, in the
// browser with that cookie. No script can see the cookie.
func csrfOf(cookie string) string {
	sum := sha256.Sum256([]byte("tether-host page\x00" + cookie))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// endEntry serves endPath. It accepts only a cookie, sent over https by this host's page,
// which knows csrfOf, soon after a login.
func (pg *Page) endEntry(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	if _, err := r.Cookie(pg.checks.LoginCookie(r)); err == nil && !pg.checks.HTTPS(r) {
		return errNotSecure
	}
	cookie, p, why := pg.fromPage(r)
	if why == nil {
		why = pg.logins.Fresh(cookie)
	}
	if why != nil {
		return why
	}
	var asked struct {
		Kind rights.EntryKind `json:"kind"`
		ID   string           `json:"id"`
	}
	if jsonspan.Decode(http.MaxBytesReader(w, r.Body, admission.MaxForm), &asked) != nil {
		return &admission.Refusal{Status: http.StatusBadRequest, Text: "the body must be JSON with kind and id", Quiet: true}
	}
	all, err := pg.entriesOf(p)
	i := slices.IndexFunc(all, func(e rights.Entry) bool {
		return e.Kind == asked.Kind && e.ID == asked.ID && e.Kind != rights.EntryTerminal
	})
	if err == nil && i < 0 {
		return errNoEntry
	}
	if err == nil {
		err = pg.end(asked.Kind, asked.ID)
	}
	switch {
	case errors.Is(err, rights.ErrNoEntry):
		return errNoEntry
	case err != nil:
		pg.opts.Log.Error().Err(err).Msg("ending something at the page")
		return errRegister
	}
	pg.opts.Audit(rights.AuditRevoked, r, p, rights.AuditEvent{Detail: string(asked.Kind) + " " + all[i].Name})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// end ends one entry.
func (pg *Page) end(kind rights.EntryKind, id string) error {
	if kind == rights.EntrySession && login.Has(id) {
		if !pg.logins.End(id) {
			return rights.ErrNoEntry
		}
		return nil
	}
	if kind == rights.EntryShare {
		if pg.opts.Guests == nil || !pg.opts.Guests.End(id) {
			return rights.ErrNoEntry
		}
		return nil
	}
	if pg.opts.Register == nil {
		return rights.ErrNoEntry
	}
	return pg.opts.Register.End(kind, id)
}

// fromPage returns the cookie and the principal of a request that changes something. It
// must be sent by this host's page, which knows csrfOf.
func (pg *Page) fromPage(r *http.Request) (cookie string, p rights.Principal, why *admission.Refusal) {
	c, err := r.Cookie(pg.checks.LoginCookie(r))
	if err != nil {
		return "", p, admission.ErrNoToken
	}
	if r.Header.Get("Origin") == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(csrfOf(c.Value))) != 1 {
		return "", p, admission.ErrForeignSite
	}
	p, ok := pg.logins.Find(c.Value)
	if !ok {
		return "", p, admission.ErrNoToken
	}
	return c.Value, p, nil
}
