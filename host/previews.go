package host

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

	"tether/ahp"
	"tether/host/admission"
	"tether/host/preview"
	"tether/host/rights"
	"tether/internal/jsonspan"
)

// A preview is a lent port in the browser of a person who sees the terminal, or of a
// guest with a link for this port. Package preview serves it; here is who may see it.

// openPreviews makes the previews that the options describe.
func (h *Host) openPreviews() {
	o := h.opts.Previews
	if o.Domain == "" {
		return
	}
	o.Find = h.findPreview
	o.Note = func(terminal string, port int, header, text string) {
		h.log.Warn().Str("terminal", terminal).Int("port", port).Str("header", header).Msg(text)
	}
	var err error
	if h.previews, err = preview.New(o); err != nil {
		h.log.Error().Err(err).Msg("previews are off")
		h.opts.NoPreviews = err.Error()
	}
}

// ServesPreview reports whether a request is for a preview, and so for none of the host's
// own doors.
func (h *Host) ServesPreview(r *http.Request) bool { return h.previews != nil && h.previews.Serves(r) }

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
func (h *Host) visitorOf(visitor string) (p rights.Principal, ok bool) {
	if visitor == visitorEverybody {
		return rights.Principal{Role: rights.RoleAdmin}, h.checks.Open()
	}
	raw, err := base64.RawURLEncoding.DecodeString(visitor[min(1, len(visitor)):])
	if err != nil || len(raw) != sha256.Size {
		return p, false
	}
	switch hash := [sha256.Size]byte(raw); visitor[:1] {
	case visitorLogin:
		p, ok = h.logins.FindHash(hash)
	case visitorGuest:
		p, ok = h.guestWith(hash)
	}
	return p, ok && p.May(rights.Page)
}

// browserVisitor returns what previews know of the browser that has sent a request of the
// page.
func (h *Host) browserVisitor(r *http.Request) (visitor string, p rights.Principal, why *admission.Refusal) {
	if h.checks.Open() {
		visitor = visitorEverybody
	} else if cookie, err := r.Cookie(h.checks.LoginCookie(r)); err == nil {
		visitor = visitorText(visitorLogin, sha256.Sum256([]byte(cookie.Value)))
	}
	p, ok := h.visitorOf(visitor)
	if !ok {
		return "", p, admission.ErrNoToken
	}
	return visitor, p, nil
}

// lentAt is a lent port of a terminal.
type lentAt struct {
	uri, terminal string // terminal is its name for people
	port          ahp.LentPort
}

// labelLocked returns the label of a lent port, the same at all nodes. A terminal keeps
// its id while its machine is away, and gets another client's never.
func (h *Host) labelLocked(t *terminal, l *ahp.LentPort) string {
	return h.previews.Label(int(l.Port), t.creator.id, t.id, strconv.FormatInt(l.SinceMs, 10))
}

// lentAs returns the lent port with a label.
func (h *Host) lentAs(label string) (at lentAt, ok bool) {
	port := preview.PortOf(label)
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.everyLocked() {
		if l := t.lentPort(port); l != nil && h.labelLocked(t, l) == label {
			return lentAt{t.uri, t.creator.machineLocked() + "/" + t.name, *l}, true
		}
	}
	return at, false
}

// Problems of a visitor whose cookie is right.
var (
	errVisitorOver   = &preview.Problem{Status: http.StatusForbidden, Text: "Your login, or the link, has ended. Open the preview again at the host's page, or with another link.", Lasts: true}
	errPreviewUnseen = &preview.Problem{Status: http.StatusForbidden, Text: "You may not see this terminal any more.", Lasts: true}
	errPreviewOver   = &preview.Problem{Status: http.StatusNotFound, Text: "This port is not lent any more, or the machine has not come back yet."}
	errPreviewAway   = &preview.Problem{Status: http.StatusServiceUnavailable, Text: "The machine is away: its link to the host is cut."}
	errPreviewOld    = &preview.Problem{Status: http.StatusNotImplemented, Text: "The machine's tether is too old for previews.", Lasts: true}
	errHostOver      = &preview.Problem{Status: http.StatusServiceUnavailable, Text: "The host is going away."}
	errHostLapsed    = &preview.Problem{Status: http.StatusServiceUnavailable, Text: "This node does not reach its cluster."}
)

// findPreview returns the way to a lent port for a visitor. It is preview.Options.Find.
func (h *Host) findPreview(_ context.Context, visitor, label string) (*preview.Port, error) {
	switch {
	case h.draining.Load() || h.ctx.Err() != nil:
		return nil, errHostOver
	case Rights(h.rights.Load()) == RightsLapsed:
		return nil, errHostLapsed
	}
	p, ok := h.visitorOf(visitor)
	if !ok {
		return nil, errVisitorOver
	}
	at, ok := h.lentAs(label)
	if !ok {
		return nil, errPreviewOver
	}
	way, err := h.Port(p, at.uri, int(at.port.Port))
	if err != nil {
		return nil, previewProblem(err)
	}
	return &preview.Port{Number: int(at.port.Port), Write: at.port.Write, Name: at.terminal, Live: p.Life(), Way: previewWay{way}}, nil
}

// previewWay is a way to a port whose errors are for people.
type previewWay struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w previewWay) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := w.inner.RoundTrip(r)
	if err != nil {
		return nil, previewProblem(err)
	}
	return a, nil
}

// previewProblem says for people what is wrong with the way to a port.
func previewProblem(err error) error {
	switch {
	case errors.Is(err, ErrPortUnseen):
		return errPreviewUnseen
	case errors.Is(err, ErrPortNotLent):
		return errPreviewOver
	case errors.Is(err, ErrPortAway):
		return errPreviewAway
	case errors.Is(err, ErrPortOld):
		return errPreviewOld
	}
	return err
}

var (
	errBadPreview = &admission.Refusal{Status: http.StatusBadRequest, Text: "not a request of the page for a preview", Quiet: true}
	errNoPreview  = &admission.Refusal{Status: http.StatusNotFound, Text: "this port is not lent any more", Quiet: true}
)

// wanted is a request of the page for a preview.
type wanted struct {
	Terminal string `json:"terminal"` // id; a guest's is known
	Port     int    `json:"port"`
	Path     string `json:"path"` // where it begins; "" means at the top
}

// askedPreview returns what the page asks for, and its origin.
func (h *Host) askedPreview(w http.ResponseWriter, r *http.Request) (asked wanted, origin string, why *admission.Refusal) {
	origin = r.Header.Get("Origin")
	u, err := url.Parse(origin)
	if kind, _, wrong := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || wrong != nil || kind != "application/json" || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return asked, "", errBadPreview
	}
	if jsonspan.Decode(http.MaxBytesReader(w, r.Body, admission.MaxForm), &asked) != nil {
		return asked, "", errBadPreview
	}
	if h.previews == nil {
		return asked, "", &admission.Refusal{Status: http.StatusNotFound, Text: "this host shows no previews: " + h.opts.NoPreviews, Quiet: true}
	}
	return asked, origin, nil
}

// openPreview answers the page of a logged-in person with a code for a preview.
func (h *Host) openPreview(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	visitor, p, why := h.browserVisitor(r)
	if why != nil {
		return why
	}
	asked, origin, why := h.askedPreview(w, r)
	if why != nil {
		return why
	}
	return h.invite(w, r, visitor, p, asked, origin)
}

// openGuestPreview answers the page of a guest whose link is for one port.
func (h *Host) openGuestPreview(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	cookie, err := r.Cookie(h.checks.GuestCookie(r))
	if err != nil {
		return admission.ErrNoToken
	}
	hash := sha256.Sum256([]byte(cookie.Value))
	p, ok := h.guestWith(hash)
	if !ok || p.GuestPort == 0 {
		return admission.ErrNoToken
	}
	asked, origin, why := h.askedPreview(w, r)
	if why != nil {
		return why
	}
	asked.Terminal, asked.Port = idOf(p.Guest), p.GuestPort
	return h.invite(w, r, visitorText(visitorGuest, hash), p, asked, origin)
}

// invite answers with a code that lets the visitor in.
func (h *Host) invite(w http.ResponseWriter, r *http.Request, visitor string, p rights.Principal, asked wanted, origin string) *admission.Refusal {
	uri, label := h.labelOf(asked)
	if label == "" {
		return errNoPreview
	}
	if _, err := h.findPreview(r.Context(), visitor, label); err != nil {
		if problem, ok := errors.AsType[*preview.Problem](err); ok && problem != errPreviewUnseen {
			return &admission.Refusal{Status: problem.Status, Text: problem.Text, Quiet: true}
		}
		return errNoPreview
	}
	h.audit(rights.AuditSubscribed, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Terminal: uri, Detail: "a preview of port " + strconv.Itoa(asked.Port)})
	target, code := h.previews.Invite(visitor, label, origin, asked.Path)
	admission.AnswerJSON(w, map[string]string{"url": target, "code": code})
	return nil
}

// labelOf returns the label of a terminal's lent port, "" if there is none.
func (h *Host) labelOf(asked wanted) (uri, label string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.byID[asked.Terminal]
	if t == nil {
		return "", ""
	}
	if l := t.lentPort(asked.Port); l != nil {
		return t.uri, h.labelLocked(t, l)
	}
	return "", ""
}
