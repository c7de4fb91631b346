package host

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"mime"
	"net"
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

// openPorts makes the ways to lent ports, and the previews that the options describe.
func (h *Host) openPorts() {
	ways := ports.Options{Terminals: portTerminals{h}, Log: h.log, Audit: func(kind string, p rights.Principal, terminal, detail string) {
		h.audit(kind, remote{principal: p}, rights.AuditEvent{Terminal: terminal, Detail: detail})
	}}
	if h.opts.Nodes != nil {
		ways.Unlapsed, ways.Dial = h.unlapsed, h.opts.Nodes.Dial
	}
	h.ports = ports.New(ways)
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

// ServeNode serves the requests of another node for lent ports of machines here, until
// the stream or ctx ends.
func (h *Host) ServeNode(ctx context.Context, stream net.Conn) { h.ports.ServeNode(ctx, stream) }

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
		p, ok = h.shares.Guest(hash)
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

// Problems of a visitor whose cookie is right.
var (
	errVisitorOver = &preview.Problem{Status: http.StatusForbidden, Text: "Your login, or the link, has ended. Open the preview again at the host's page, or with another link.", Lasts: true}
	errHostOver    = &preview.Problem{Status: http.StatusServiceUnavailable, Text: "The host is going away."}
	errHostLapsed  = &preview.Problem{Status: http.StatusServiceUnavailable, Text: "This node does not reach its cluster."}
)

// findPreview returns a lent port for a visitor. It is preview.Options.Find.
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
	return h.ports.Preview(h.previews, p, label)
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
	p, ok := h.shares.Guest(hash)
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
		if problem, ok := errors.AsType[*preview.Problem](err); ok && problem != ports.ErrPreviewUnseen {
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
	for _, l := range (portTerminals{h}).Lendings(asked.Port) {
		if l.ID == asked.Terminal {
			return l.URI, l.Label(h.previews)
		}
	}
	return "", ""
}
