package host

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tether/ahp"
	"tether/internal/bounded"
	"tether/internal/loopback"
	"tether/jsonrpc/wsconn"
)

// socket serves a client's WebSocket until it ends, on any path. A request without a
// token is answered 401, one with a wrong token 403, both before the upgrade, and 429
// after many wrong ones from the same place. A right token always passes.
func (h *Host) socket(w http.ResponseWriter, r *http.Request) {
	p, refusal := h.admit(r)
	switch {
	case refusal != nil:
		h.refuse(w, r, refusal)
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
func (h *Host) asking(w http.ResponseWriter, r *http.Request, p Principal, serve func(http.ResponseWriter, *http.Request, Principal)) {
	done, ok := h.ask(p)
	if !ok {
		h.refuse(w, r, errAsksTooMuch)
		return
	}
	defer done()
	serve(w, r, p)
}

// refusal says why a request is refused. Only refuse answers and logs it.
type refusal struct {
	status int
	text   string
	quiet  bool // there may be many: do not log it
}

var (
	errForeignPage = &refusal{status: http.StatusForbidden, text: "this web page may not connect to this host"}
	errNoToken     = &refusal{status: http.StatusUnauthorized, text: "a token is required, as ?tkn= or as Authorization: Bearer"}
	errWrongToken  = &refusal{status: http.StatusForbidden, text: "the token is wrong, revoked or expired"}
	errAsksTooMuch = &refusal{status: http.StatusServiceUnavailable, text: "too many requests at a time with tokens of this name", quiet: true}
	errGuessing    = &refusal{status: http.StatusTooManyRequests, text: "too many wrong tokens from this address; try again later"}
)

func (h *Host) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	if h.recorded(r, why) {
		h.log.Warn().Str("remote", r.RemoteAddr).Int("status", why.status).Str("reason", why.text).Msg("connection refused")
		h.audit(AuditRefused, remote{name: r.RemoteAddr}, AuditEvent{Detail: why.text})
	}
	w.Header().Set("Connection", "close") // a refused client keeps no connection
	switch why.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(int(guessEvery.Seconds())))
	}
	http.Error(w, why.text, why.status)
}

// recorded reports whether a refusal should be logged. Wrong tokens are limited by
// authLimit; log lines about other refusals of one place, such as requests without a
// token, are limited in the same way.
func (h *Host) recorded(r *http.Request, why *refusal) bool {
	if why.quiet || why == errWrongToken || why.status == http.StatusTooManyRequests {
		return !why.quiet
	}
	return h.logLimit.Allow(PlaceOf(r.RemoteAddr))
}

// Noted reports whether one more refused request of a place is to be logged, as recorded
// does. It is for handlers beside the Host.
func (h *Host) Noted(r *http.Request) bool { return h.recorded(r, errForeignSite) }

// admit returns the principal of a request, or why it is refused.
func (h *Host) admit(r *http.Request) (Principal, *refusal) {
	if !h.originAllowed(r) {
		return Principal{}, errForeignPage
	}
	if strings.HasPrefix(r.URL.Path, ahp.SharePath) { // a login does not count here, and a guest not elsewhere
		if p, ok := h.guest(r); ok {
			return p, nil
		}
		return Principal{}, errNoToken
	}
	if h.opts.Token == "" && h.opts.Access == nil {
		if !h.nameAllowed(r) {
			return Principal{}, errForeignName
		}
		return Principal{Role: RoleAdmin}, nil
	}
	token, ok := requestToken(r)
	if ok && fromOtherPage(r) {
		return Principal{}, errForeignPage
	}
	if !ok {
		// The page of this host, after a login. Other pages do not send this cookie, and
		// cannot have the host's name.
		if p, known := h.browser(r); known && h.nameAllowed(r) && p.may(rightPage) {
			return p, nil
		}
		return Principal{}, errNoToken
	}
	return h.authenticate(r.RemoteAddr, token)
}

// limited returns a refusal for a place that has sent too many wrong secrets, nil for
// others. Only the first refusal of a row is logged.
func limited(g *bounded.Rates, remote string) *refusal {
	spent, first := g.Spent(PlaceOf(remote))
	if !spent {
		return nil
	}
	why := *errGuessing
	why.quiet = !first
	return &why
}

// authenticate returns the principal of a token. A token that the host knows is accepted
// at once, whatever else came from the same place: tokens have 128 bits or more, so
// guessing is hopeless even without the limit. The limit bounds the cost of wrong tokens:
// after too many from one place, the file of tokens is not read for that place, and a new
// token works only after the host has read the file by itself, at most a second later.
func (h *Host) authenticate(place, token string) (Principal, *refusal) {
	p, why := h.principalOf(place, token)
	p.token = sha256.Sum256([]byte(token))
	return p, why
}

func (h *Host) principalOf(place, token string) (Principal, *refusal) {
	if h.opts.Token != "" && sameToken(token, h.opts.Token) {
		return Principal{Role: RoleAdmin}, nil
	}
	if p, ok := h.knownGuest(token); ok {
		return p, nil
	}
	if h.opts.Access != nil {
		if p, ok := h.opts.Access.Known(token); ok {
			return p, nil
		}
	}
	if why := limited(&h.authLimit, place); why != nil {
		return Principal{}, why
	}
	if h.opts.Access != nil {
		if p, ok := h.opts.Access.Authenticate(token); ok {
			return p, nil
		}
	}
	h.wrong(place)
	return Principal{}, errWrongToken
}

// fromOtherPage reports whether a browser says that another page made it send the
// request, without an Origin, which was checked before. Requests for images, frames and
// links of any page are such. Their secrets are not checked: otherwise a page could use
// up the wrong tokens that its visitor's address may send.
func fromOtherPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin": // no browser, the person, or this host's own page
		return false
	}
	return r.Header.Get("Origin") == ""
}

// requestToken returns the token of a request. A token that is given twice counts as
// none, because somebody may have tampered with the URL.
func requestToken(r *http.Request) (token string, ok bool) {
	if values := r.URL.Query()["tkn"]; len(values) > 0 {
		return values[0], len(values) == 1 && values[0] != ""
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// sameToken compares tokens in a time that reveals neither content nor length.
func sameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// originAllowed reports whether the web page that has sent the request may do so. A page
// is this host's own if its origin is the host of the request and that is an address or
// localhost: a name could be an attacker's that resolves to this machine (DNS rebinding).
// Where browsers use https, a page that came by http is refused, since anybody on its way
// could have written it; only this machine's own pages have not been on the way.
func (h *Host) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme == "http" && h.https(r) && !loopback.Is(u.Hostname()) {
		return false
	}
	if slices.ContainsFunc(h.opts.Origins, func(o string) bool { return strings.EqualFold(o, u.Host) }) {
		return true
	}
	return strings.EqualFold(u.Host, r.Host) && isAddress(u.Hostname())
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}

// answerJSON answers with JSON.
func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only with the connection
}

// serveState serves /terminals/ID/state, and the same for guests: a terminal's state in
// the form of AHP. The page needs it for parked terminals, which are not in AHP's
// catalogue.
func (h *Host) serveState(w http.ResponseWriter, r *http.Request, p Principal, at lookedAt) *refusal {
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
	h.audit(AuditSubscribed, remote{name: r.RemoteAddr, principal: p}, AuditEvent{Terminal: s.uri, Detail: "the page"})
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
	s = snapshot{uri: t.uri, seq: h.seq, version: ahp.Versions()[0], state: t.state}
	var from int64
	if s.parts, from = t.content.viewSince(min(limit, maxSnapshots), since); since > t.content.base { // earlier output is hidden from this person
		s.state.Meta.Screen = t.unknownScreenLocked()
	} else {
		s.state.Meta.Screen = t.snapScreenLocked(from)
	}
	return s, true
}
