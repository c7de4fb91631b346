package main

import (
	"context"
	"net/http"

	"tether/host/cluster"
)

// whileReached serves requests, but refuses all of them while the node does not reach its cluster.
func whileReached(h http.Handler, n *cluster.Node) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n != nil && !n.Reached() {
			http.Error(w, "this node does not reach its cluster and admits nobody: try another one", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// withHealth answers load balancers and service managers: /healthz says that the process serves, /readyz that it accepts new clients. They
// need no token, and reveal nothing else.
func withHealth(ctx context.Context, h http.Handler, n *cluster.Node) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != "" {
			h.ServeHTTP(w, r)
			return
		}
		switch r.URL.Path {
		case "/healthz":
		case "/readyz":
			switch {
			case ctx.Err() != nil:
				http.Error(w, "the host is going away", http.StatusServiceUnavailable)
				return
			case n != nil && !n.Reached():
				http.Error(w, "NATS is not reached: this node admits nobody new", http.StatusServiceUnavailable)
				return
			}
		default:
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte("ok\n")) // fails only with the connection
	})
}
