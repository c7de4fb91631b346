package host

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"

	"tether/ahp"
	"tether/host/admission"
	"tether/host/rights"
	"tether/jsonrpc/wsconn"
)

// socket serves a client's WebSocket until it ends, on any path. A request without a
// token is answered 401, one with a wrong token 403, both before the upgrade, and 429
// after many wrong ones from the same place. A right token always passes.
func (h *Host) socket(w http.ResponseWriter, r *http.Request) {
	p, refusal := h.admit(r)
	switch {
	case refusal != nil:
		h.checks.Refuse(w, r, refusal)
		return
	case r.URL.Path == mcpPath:
		h.asking(w, r, p, h.mcpLines)
		return
	}
	if why := h.full(p); why != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, why.Error(), http.StatusServiceUnavailable)
		return
	}
	in := h.newRecvMemory(p)
	ch, err := wsconn.Accept(w, r, wsconn.Options{ReadLimit: h.opts.MaxFrame, OriginChecked: true, Memory: in, WriteTimeout: h.opts.StallTime})
	if err != nil {
		h.log.Info().Str("remote", r.RemoteAddr).Err(err).Msg("upgrade failed")
		return
	}
	// Not with h.ctx: Close ends each connection with a close message, and the end of its
	// context would come before that.
	_ = h.serve(context.Background(), ch, remote{name: r.RemoteAddr, principal: p, socket: boundSending(ch.Socket()), recvMemory: in}) // logged there
}

// asking serves a request that may take long, unless its principal has as many of them as
// one name may have.
func (h *Host) asking(w http.ResponseWriter, r *http.Request, p rights.Principal, serve func(http.ResponseWriter, *http.Request, rights.Principal)) {
	done, ok := h.ask(p)
	if !ok {
		h.checks.Refuse(w, r, admission.ErrBusy)
		return
	}
	defer done()
	serve(w, r, p)
}

// logRefusal logs and records a refused request.
func (h *Host) logRefusal(r *http.Request, why *admission.Refusal) {
	h.log.Warn().Str("remote", r.RemoteAddr).Int("status", why.Status).Str("reason", why.Text).Msg("connection refused")
	h.audit(rights.AuditRefused, remote{name: r.RemoteAddr}, rights.AuditEvent{Detail: why.Text})
}

// Noted reports whether one more refused request of a place is to be logged, as
// Checks.Noted does. It is for handlers beside the Host.
func (h *Host) Noted(r *http.Request) bool { return h.checks.Noted(r, admission.ErrForeignSite) }

// admit returns the principal of a request, or why it is refused.
func (h *Host) admit(r *http.Request) (rights.Principal, *admission.Refusal) {
	if !h.checks.OriginAllowed(r) {
		return rights.Principal{}, admission.ErrForeignPage
	}
	if strings.HasPrefix(r.URL.Path, ahp.SharePath) { // a login does not count here, and a guest not elsewhere
		if p, ok := h.guest(r); ok {
			return p, nil
		}
		return rights.Principal{}, admission.ErrNoToken
	}
	if h.opts.Token == "" && h.opts.Access == nil {
		if !h.checks.NameAllowed(r) {
			return rights.Principal{}, admission.ErrForeignName
		}
		return rights.Principal{Role: rights.RoleAdmin}, nil
	}
	token, ok := admission.RequestToken(r)
	if ok && admission.FromOtherPage(r) {
		return rights.Principal{}, admission.ErrForeignPage
	}
	if !ok {
		// The page of this host, after a login. Other pages do not send this cookie, and
		// cannot have the host's name.
		if p, known := h.browser(r); known && h.checks.NameAllowed(r) && p.May(rights.Page) {
			return p, nil
		}
		return rights.Principal{}, admission.ErrNoToken
	}
	return h.authenticate(r.RemoteAddr, token)
}

// authenticate returns the principal of a token. A token that the host knows is accepted
// at once, whatever else came from the same place: tokens have 128 bits or more, so
// guessing is hopeless even without the limit. The limit bounds the cost of wrong tokens:
// after too many from one place, the file of tokens is not read for that place, and a new
// token works only after the host has read the file by itself, at most a second later.
func (h *Host) authenticate(place, token string) (rights.Principal, *admission.Refusal) {
	p, why := h.principalOf(place, token)
	p.Token = sha256.Sum256([]byte(token))
	return p, why
}

func (h *Host) principalOf(place, token string) (rights.Principal, *admission.Refusal) {
	if h.opts.Token != "" && sameToken(token, h.opts.Token) {
		return rights.Principal{Role: rights.RoleAdmin}, nil
	}
	if p, ok := h.knownGuest(token); ok {
		return p, nil
	}
	if h.opts.Access != nil {
		if p, ok := h.opts.Access.Known(token); ok {
			return p, nil
		}
	}
	if why := h.checks.Guessing(place); why != nil {
		return rights.Principal{}, why
	}
	if h.opts.Access != nil {
		if p, ok := h.opts.Access.Authenticate(token); ok {
			return p, nil
		}
	}
	h.checks.Wrong(place)
	return rights.Principal{}, admission.ErrWrongToken
}

// sameToken compares tokens in a time that reveals neither content nor length.
func sameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// answerJSON answers with JSON.
func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only with the connection
}

// serveState serves /terminals/ID/state, and the same for guests: a terminal's state in
// the form of AHP. The page needs it for parked terminals, which are not in AHP's
// catalogue.
func (h *Host) serveState(w http.ResponseWriter, r *http.Request, p rights.Principal, at lookedAt) *admission.Refusal {
	i, sending := at.Info(), &h.messages.sending
	n := int(min(2*(i.End-i.Start)+64<<10, int64(sending.part))) // escaped text, and the screen before it
	if sending.take(r.Context(), p.Name, n) != nil {
		return errClientGone
	}
	defer sending.give(p.Name, n) // after the client has read it
	s, ok := at.state(n)
	if !ok {
		return errNoTerminal
	}
	h.audit(rights.AuditSubscribed, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Terminal: s.uri, Detail: "the page"})
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.append(nil)) // fails only with the connection
	return nil
}

// state returns the terminal's present state, with at most about limit bytes of text; ok
// is false if the principal does not see it any more.
func (l lookedAt) state(limit int) (s snapshot, ok bool) {
	h, t := l.h, l.t
	h.mu.Lock()
	defer h.mu.Unlock()
	since, ok := catalogue{h, l.p}.fromLocked(t)
	if !ok || t.gone() {
		return s, false
	}
	s = snapshot{uri: t.uri, seq: h.envelopes.Newest(), version: ahp.Versions()[0], state: *t.state}
	if s.text = t.out.View(min(limit, maxSnapshots), since); since > t.out.Base() { // earlier output is hidden from this person
		s.state.Meta.Screen = t.out.UnknownScreen()
	} else {
		s.state.Meta.Screen = t.out.Screen(s.text.From)
	}
	return s, true
}
