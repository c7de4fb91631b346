package page

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tether/host/admission"
	"tether/host/ports"
	"tether/host/preview"
	"tether/host/rights"
	"tether/internal/jsonspan"
)

// A preview is a lent port in the browser of a person who sees the terminal, or of a
// guest with a link for this port. Package preview serves it; here is who may see it.

// openPreviews makes the previews that the options describe.
func (pg *Page) openPreviews() {
	o := pg.opts.Previews
	if o.Domain == "" {
		return
	}
	o.Find = pg.findPreview
	o.Note = func(terminal string, port int, header, text string) {
		pg.opts.Log.Warn().Str("terminal", terminal).Int("port", port).Str("header", header).Msg(text)
	}
	var err error
	if pg.previews, err = preview.New(o); err != nil {
		pg.opts.Log.Error().Err(err).Msg("previews are off")
		pg.opts.NoPreviews = err.Error()
	}
}

// ServesPreview reports whether a request is for a preview, and so for no other door of
// the host.
func (pg *Page) ServesPreview(r *http.Request) bool {
	return pg.previews != nil && pg.previews.Serves(r)
}

// NoPreviews says why there are no previews; shown is true if there are.
func (pg *Page) NoPreviews() (why string, shown bool) {
	return "this host shows no previews: " + pg.opts.NoPreviews, pg.previews != nil
}

// Beginnings of what previews know of a visitor; a hash follows, but for everybody.
const (
	visitorLogin     = "l"
	visitorGuest     = "g"
	visitorEverybody = "e" // at a host without tokens
)

func visitorText(kind string, hash [sha256.Size]byte) string {
	return kind + base64.RawURLEncoding.EncodeToString(hash[:])
}

// visitorOf returns the principal that a preview's cookie stands for, while the login or
// the guest's link that it was made with lasts.
func (pg *Page) visitorOf(visitor string) (p rights.Principal, ok bool) {
	if visitor == visitorEverybody {
		return rights.Principal{Role: rights.RoleAdmin}, pg.checks.Open()
	}
	raw, err := base64.RawURLEncoding.DecodeString(visitor[min(1, len(visitor)):])
	if err != nil || len(raw) != sha256.Size {
		return p, false
	}
	switch hash := [sha256.Size]byte(raw); visitor[:1] {
	case visitorLogin:
		p, ok = pg.logins.FindHash(hash)
	case visitorGuest:
		if pg.opts.Guests == nil {
			return p, false
		}
		p, ok = pg.opts.Guests.Guest(hash)
	}
	return p, ok && p.May(rights.Page)
}

// browserVisitor returns what previews know of the browser that has sent a request of the
// page.
func (pg *Page) browserVisitor(r *http.Request) (visitor string, p rights.Principal, why *admission.Refusal) {
	if pg.checks.Open() {
		visitor = visitorEverybody
	} else if cookie, err := r.Cookie(pg.checks.LoginCookie(r)); err == nil {
		visitor = visitorText(visitorLogin, sha256.Sum256([]byte(cookie.Value)))
	}
	p, ok := pg.visitorOf(visitor)
	if !ok {
		return "", p, admission.ErrNoToken
	}
	return visitor, p, nil
}

// Problems of a visitor whose cookie is right.
var (
	errVisitorOver = &preview.Problem{Status: http.StatusForbidden, Text: "Your login, or the link, has ended. Open the preview again at the host's page, or with another link.", Lasts: true}
	errHostOver    = &preview.Problem{Status: http.StatusServiceUnavailable, Text: "The host is going away."}
	errHostLapsed  = &preview.Problem{Status: http.StatusServiceUnavailable, Text: "This node does not reach its cluster."}
)

// findPreview returns a lent port for a visitor. It is preview.Options.Find.
func (pg *Page) findPreview(_ context.Context, visitor, label string) (*preview.Port, error) {
	switch {
	case pg.opts.Ending():
		return nil, errHostOver
	case pg.opts.Gate.Age() == admission.Lapsed:
		return nil, errHostLapsed
	}
	p, ok := pg.visitorOf(visitor)
	if !ok {
		return nil, errVisitorOver
	}
	return pg.opts.Ports.Preview(pg.previews, p, label)
}

var (
	errBadPreview = &admission.Refusal{Status: http.StatusBadRequest, Text: "not a request of the page for a preview", Quiet: true}
	errNoPreview  = &admission.Refusal{Status: http.StatusNotFound, Text: "this port is not lent any more", Quiet: true}
)

// wanted is a request of the page for a preview.
type wanted struct {
	Terminal string `json:"terminal"` // id; not a guest's, which is known
	Port     int    `json:"port"`
	Path     string `json:"path"` // where it begins; "" means at the top
}

// askedPreview returns what the page asks for, and its origin.
func (pg *Page) askedPreview(w http.ResponseWriter, r *http.Request) (asked wanted, origin string, why *admission.Refusal) {
	origin = r.Header.Get("Origin")
	u, err := url.Parse(origin)
	if kind, _, wrong := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || wrong != nil || kind != "application/json" || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return asked, "", errBadPreview
	}
	if jsonspan.Decode(http.MaxBytesReader(w, r.Body, admission.MaxForm), &asked) != nil {
		return asked, "", errBadPreview
	}
	if why, shown := pg.NoPreviews(); !shown {
		return asked, "", &admission.Refusal{Status: http.StatusNotFound, Text: why, Quiet: true}
	}
	return asked, origin, nil
}

// openPreview answers the page of a logged-in person with a code for a preview.
func (pg *Page) openPreview(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	visitor, p, why := pg.browserVisitor(r)
	if why != nil {
		return why
	}
	asked, origin, why := pg.askedPreview(w, r)
	if why != nil {
		return why
	}
	return pg.invite(w, r, visitor, p, asked, origin)
}

// openGuestPreview answers the page of a guest whose link is for one port.
func (pg *Page) openGuestPreview(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	cookie, err := r.Cookie(pg.checks.GuestCookie(r))
	if err != nil {
		return admission.ErrNoToken
	}
	hash := sha256.Sum256([]byte(cookie.Value))
	p, ok := pg.opts.Guests.Guest(hash)
	if !ok || p.GuestPort == 0 {
		return admission.ErrNoToken
	}
	asked, origin, why := pg.askedPreview(w, r)
	if why != nil {
		return why
	}
	asked.Port = p.GuestPort
	return pg.invite(w, r, visitorText(visitorGuest, hash), p, asked, origin)
}

// invite answers with a code that lets the visitor in.
func (pg *Page) invite(w http.ResponseWriter, r *http.Request, visitor string, p rights.Principal, asked wanted, origin string) *admission.Refusal {
	uri, label := pg.opts.Ports.Label(pg.previews, asked.Port, func(l *ports.Lending) bool { return l.ID == asked.Terminal || p.Guest != "" && l.URI == p.Guest })
	if label == "" {
		return errNoPreview
	}
	if _, err := pg.findPreview(r.Context(), visitor, label); err != nil {
		if problem, ok := errors.AsType[*preview.Problem](err); ok && problem != ports.ErrPreviewUnseen {
			return &admission.Refusal{Status: problem.Status, Text: problem.Text, Quiet: true}
		}
		return errNoPreview
	}
	pg.opts.Audit(rights.AuditSubscribed, r, p, rights.AuditEvent{Terminal: uri, Detail: "a preview of port " + strconv.Itoa(asked.Port)})
	target, code := pg.previews.Invite(visitor, label, origin, asked.Path)
	admission.AnswerJSON(w, map[string]string{"url": target, "code": code})
	return nil
}
