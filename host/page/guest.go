package page

import (
	"crypto/sha256"
	"encoding/base64"
	"mime"
	"net/http"
	"strings"
	"time"

	"tether/host/admission"
	"tether/host/rights"
	"tether/internal/jsonspan"
)

// guestCookieTime is how long a guest's browser keeps its cookie; links end earlier.
const guestCookieTime = 30 * 24 * time.Hour

var (
	errNoShare     = &admission.Refusal{Status: http.StatusForbidden, Text: "this link does not work: it was ended, has expired, was made for one browser, or was not copied whole"}
	errForBrowsers = &admission.Refusal{Status: http.StatusForbidden, Text: "this link is for a page: open it in a browser", Quiet: true}
	errBadShare    = &admission.Refusal{Status: http.StatusBadRequest, Text: "not a request of the page for guests", Quiet: true}
	errNoShares    = &admission.Refusal{Status: http.StatusNotFound, Text: "this host has no shared links", Quiet: true}
)

// opened is the answer for a guest.
type opened struct {
	Share     string `json:"share"`
	Terminal  string `json:"terminal"`        // URI
	Port      int    `json:"port,omitempty"`  // the lent port that the guest sees, and nothing of the terminal
	Row       *Row   `json:"row,omitempty"`   // as the page lists it; absent while its machine is away and nothing is kept
	ExpiresMs int64  `json:"expiresMs"`       // until the share ends
	Token     string `json:"token,omitempty"` // for programs: browsers get a cookie
}

// openShare lets a guest in who shows the secret of a link. Every reason against it has
// the same answer. A right secret passes, however many wrong ones came from the same
// place; a place that has sent many does not make this node wait for links that another
// one has just made.
func (pg *Page) openShare(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errBadShare
	}
	var asked struct{ ID, Secret string }
	if jsonspan.Decode(http.MaxBytesReader(w, r.Body, admission.MaxForm), &asked) != nil {
		return errBadShare
	}
	var hash [sha256.Size]byte // of no secret
	if secret, err := base64.RawURLEncoding.Strict().DecodeString(asked.Secret); err == nil {
		hash = sha256.Sum256(secret)
	}
	before := ""
	if cookie, err := r.Cookie(pg.checks.GuestCookie(r)); err == nil {
		before = cookie.Value
	}
	p, token, ok := pg.opts.Guests.Admit(asked.ID, hash, before)
	if !ok {
		if why := pg.checks.GuessingLinks(r.RemoteAddr); why != nil {
			return why
		}
		pg.opts.Guests.Await(asked.ID)
		p, token, ok = pg.opts.Guests.Admit(asked.ID, hash, before)
	}
	if !ok {
		pg.checks.WrongLink(r.RemoteAddr)
		return errNoShare
	}
	pg.opts.Audit(rights.AuditConnected, r, p, rights.AuditEvent{Terminal: p.Guest, Detail: "by a shared link"})
	if p.GuestPort != 0 && admission.FromProgram(r) {
		return errForBrowsers
	}
	if admission.FromProgram(r) {
		pg.answerGuest(w, p, token)
		return nil
	}
	pg.checks.SetCookie(w, r, pg.checks.GuestCookie(r), token, guestCookieTime)
	pg.answerGuest(w, p, "")
	return nil
}

func (pg *Page) answerGuest(w http.ResponseWriter, p rights.Principal, token string) {
	a := opened{Share: strings.TrimPrefix(p.Name, rights.GuestName), Terminal: p.Guest, Port: p.GuestPort, Token: token}
	if until, ok := p.Life().Deadline(); ok {
		a.ExpiresMs = time.Until(until).Milliseconds()
	}
	if all := pg.opts.Terminals.Rows(p); len(all) == 1 && p.GuestPort == 0 {
		a.Row = &all[0]
	}
	admission.AnswerJSON(w, a)
}

// guestTerminal serves a guest's terminal as AHP would: for one that is parked.
func (pg *Page) guestTerminal(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
	all := pg.opts.Terminals.Rows(p)
	if len(all) != 1 {
		return errNoTerminal
	}
	t, ok := pg.opts.Terminals.Open(p, all[0].ID)
	if !ok {
		return errNoTerminal
	}
	return pg.serveState(w, r, p, t)
}

// withShares serves a path below ahp.SharePath: the page, the request that opens a share,
// or the state of an opened one.
func (pg *Page) withShares(serve admission.Handler) admission.Handler {
	if pg.opts.Guests == nil {
		return func(http.ResponseWriter, *http.Request) *admission.Refusal { return errNoShares }
	}
	return serve
}

// asGuest serves guests alone.
func (pg *Page) asGuest(serve personal) admission.Handler {
	return func(w http.ResponseWriter, r *http.Request) *admission.Refusal {
		p, ok := pg.checks.Guest(r)
		if !ok {
			return admission.ErrNoToken
		}
		return serve(w, r, p)
	}
}
