package host

import (
	"net/http"
	"strings"

	"tether/mcp"
)

// ServeHTTP serves a client's WebSocket until it ends, on any path, and otherwise the
// host's other doors: the page for people, the door for agents, and those of Handle.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.ServesPreview(r) {
		h.page.ServeHTTP(w, r)
		return
	}
	r = mcp.AtPath(r)
	if isWebSocket(r) {
		if why := h.admits(r, nil); why != nil {
			h.checks.Refuse(w, r, why)
			return
		}
		h.socket(w, r)
		return
	}
	h.page.ServeHTTP(w, r)
}

// Handle serves a pattern of http.ServeMux beside the host's own. It must be called
// before the host serves. The handler checks its requests itself, and is not asked for
// WebSockets.
func (h *Host) Handle(pattern string, handler http.Handler) { h.page.Handle(pattern, handler) }

func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}
