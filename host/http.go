package host

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"tether/jsonrpc/wsconn"
)

// writeTimeout is the longest that one write to a socket may take, however slowly it goes on.
const writeTimeout = 10 * time.Minute

// ServeHTTP upgrades a client's request to a WebSocket and serves it until it ends. Any path will do. Who has no token
// is answered 401, who has a wrong one 403, both before the upgrade; a plain request with the token gets 426.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status, text := h.admit(r); status != 0 {
		h.log.Info().Str("remote", r.RemoteAddr).Int("status", status).Msg("connection refused")
		if status == http.StatusUpgradeRequired {
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
		}
		http.Error(w, text, status)
		return
	}
	if h.full() {
		http.Error(w, errTooManyConnections.Error(), http.StatusServiceUnavailable)
		return
	}
	tracked := &trackedWriter{ResponseWriter: w}
	ch, err := wsconn.Accept(tracked, r, wsconn.Options{
		ReadLimit: h.opts.MaxFrame, OriginChecked: true,
		WriteTimeout: writeTimeout, // the guard knows better who has stalled
	})
	if err != nil {
		h.log.Info().Str("remote", r.RemoteAddr).Err(err).Msg("upgrade failed")
		return
	}
	_ = h.serve(h.ctx, ch, remote{name: r.RemoteAddr, taken: tracked.progress()}) // logged there
}

// admit decides about a request before the upgrade; 0 lets it in.
func (h *Host) admit(r *http.Request) (status int, text string) {
	switch token, ok := requestToken(r); {
	case !h.originAllowed(r):
		return http.StatusForbidden, "this page may not connect to this host"
	case h.opts.Token == "":
	case !ok:
		return http.StatusUnauthorized, "a token is needed, as ?tkn= or as Authorization: Bearer"
	case !sameToken(token, h.opts.Token):
		return http.StatusForbidden, "wrong token"
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return http.StatusUpgradeRequired, "this is an agent host; connect with a WebSocket"
	}
	return 0, ""
}

// requestToken is the token a request shows. A token given twice counts as none: it is a sign of tampering with the URL.
func requestToken(r *http.Request) (token string, ok bool) {
	if values := r.URL.Query()["tkn"]; len(values) > 0 {
		return values[0], len(values) == 1 && values[0] != ""
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// sameToken compares in a time that tells neither content nor length.
func sameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// originAllowed reports whether the request may come from the web page it comes from. A page is this host's own if its
// origin is the host it asks for and that is an address or localhost: with a name, a page of the attacker's could make
// its own name resolve to this machine (DNS rebinding).
func (h *Host) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
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
