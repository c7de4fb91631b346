package main

import (
	"context"
	"net/http"
	"strings"

	"tether/host"
	"tether/host/cluster"
	"tether/host/devices"
	"tether/host/oidc"
	"tether/pairing"
)

// whileReached serves requests, but refuses all of them while the node does not reach its
// cluster.
func whileReached(h http.Handler, n *cluster.Node) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n != nil && !n.Reached() {
			http.Error(w, "this node does not reach its cluster and admits nobody: try another one", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// healthz answers load balancers and service managers that the process serves, and readyz
// that it accepts new clients. They need no token, and reveal nothing else.
func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n")) // fails only with the connection
}

func readyz(ctx context.Context, n *cluster.Node) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case ctx.Err() != nil:
			http.Error(w, "the host is going away", http.StatusServiceUnavailable)
		case n != nil && !n.Reached():
			http.Error(w, "NATS is not reached: this node admits nobody new", http.StatusServiceUnavailable)
		default:
			healthz(w, r)
		}
	}
}

// route adds the doors beside the host's own to it, those for pairing and of the identity
// provider unless they are nil. Pairing is served below every path, where a proxy may
// have put the host.
func route(ctx context.Context, h *host.Host, door *devices.Door, idp *provider, n *cluster.Node) http.Handler {
	h.Page().Handle("GET /healthz", http.HandlerFunc(healthz))
	h.Page().Handle("GET /readyz", readyz(ctx, n))
	if idp != nil {
		logins := whileReached(idp, n)
		h.Page().Handle(oidc.Path, logins)
		h.Page().Handle(oidc.Path+"/", logins)
		h.Page().Handle(oidc.Path+"/logout", idp) // ends rights, so it is always served
	}
	if door == nil {
		return h
	}
	h.Page().Handle(pairing.Path, whileReached(door, n))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, what, ok := strings.Cut(r.URL.Path, pairing.Path); ok && !h.Page().ServesPreview(r) {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = pairing.Path+what, ""
		}
		h.ServeHTTP(w, r)
	})
}
