package host

import (
	"context"
	"net/http"
	"strings"

	"tether/host/admission"
	"tether/host/link"
	"tether/host/rights"
	"tether/jsonrpc/wsconn"
	"tether/mcp"
)

// ServeHTTP serves a client's WebSocket until it ends, on any path, and otherwise the
// host's other doors: the page for people, the door for agents, and those of
// page.Page.Handle.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.page.ServesPreview(r) {
		h.page.ServeHTTP(w, r)
		return
	}
	r = mcp.AtPath(r)
	if isWebSocket(r) {
		if why := h.gate.Admits(r, nil); why != nil {
			h.checks.Refuse(w, r, why)
			return
		}
		h.socket(w, r)
		return
	}
	h.page.ServeHTTP(w, r)
}

func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// socket serves a client's WebSocket until it ends, on any path. A request without a
// token is answered 401, one with a wrong token 403, both before the upgrade, and 429
// after many wrong ones from the same place. A right token always passes.
func (h *Host) socket(w http.ResponseWriter, r *http.Request) {
	p, refusal := h.checks.Admit(r)
	switch {
	case refusal != nil:
		h.checks.Refuse(w, r, refusal)
		return
	case r.URL.Path == mcp.Path:
		h.agents.ServeSocket(w, r, p)
		return
	}
	if why := h.full(p); why != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, why.Error(), http.StatusServiceUnavailable)
		return
	}
	in := h.messages.NewReceiver(p.Name)
	ch, err := wsconn.Accept(w, r, wsconn.Options{ReadLimit: h.opts.MaxFrame, OriginChecked: true, Memory: in, WriteTimeout: h.opts.StallTime})
	if err != nil {
		h.log.Info().Str("remote", r.RemoteAddr).Err(err).Msg("upgrade failed")
		return
	}
	// Not with h.ctx: Close ends each connection with a close message, and the end of its
	// context would come before that.
	_ = h.serve(context.Background(), ch, remote{name: r.RemoteAddr, principal: p, socket: link.BoundSending(ch.Socket()), receiver: in}) // logged there
}

// logRefusal logs and records a refused request.
func (h *Host) logRefusal(r *http.Request, why *admission.Refusal) {
	h.log.Warn().Str("remote", r.RemoteAddr).Int("status", why.Status).Str("reason", why.Text).Msg("connection refused")
	h.audit(rights.AuditRefused, remote{name: r.RemoteAddr}, rights.AuditEvent{Detail: why.Text})
}

// Noted reports whether one more refused request of a place is to be logged, as
// Checks.Noted does. It is for handlers beside the Host.
func (h *Host) Noted(r *http.Request) bool { return h.checks.Noted(r, admission.ErrForeignSite) }
