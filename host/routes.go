package host

import (
	"net/http"
	"path"
	"strings"

	"tether/ahp"
	"tether/host/admission"
	"tether/host/rights"
	"tether/mcp"
)

// ServeHTTP serves a client's WebSocket until it ends, on any path, and otherwise the
// host's other doors: the page for people, the door for agents, and those of Handle.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.ServesPreview(r) {
		h.previews.ServeHTTP(w, r)
		return
	}
	r = mcp.AtPath(r)
	switch at := r.URL.EscapedPath(); {
	case isWebSocket(r):
		if why := h.admits(r, nil); why != nil {
			h.checks.Refuse(w, r, why)
			return
		}
		h.socket(w, r)
	case at == "" || at != "/" && at != path.Clean(at) && at != path.Clean(at)+"/" || strings.HasPrefix(at, "//"):
		h.page(func(http.ResponseWriter, *http.Request) *admission.Refusal { return errNoFile })(w, r) // the mux would redirect it
	default:
		h.mux.ServeHTTP(w, r)
	}
}

// Handle serves a pattern of http.ServeMux beside the host's own. It must be called
// before the host serves. The handler checks its requests itself, and is not asked for
// WebSockets.
func (h *Host) Handle(pattern string, handler http.Handler) { h.mux.Handle(pattern, handler) }

func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// personal is a handler for people whom the host knows.
type personal = func(http.ResponseWriter, *http.Request, rights.Principal) *admission.Refusal

// route adds the host's own doors to the mux.
func (h *Host) route() {
	door := func(pattern string, in func(*http.Request) bool, serve http.HandlerFunc) {
		h.mux.HandleFunc(pattern, h.limited(in, serve))
	}
	page := func(pattern string, serve admission.Handler) { door(pattern, h.isBrowser, h.page(serve)) }
	get := func(path string, serve admission.Handler) { page(path, onlyGET(serve)) }
	person := func(path string, serve personal) { get(path, h.known(serve)) }
	first := func(pattern string, serve admission.Handler) { door(pattern, nil, h.page(serve)) } // of people who log in
	guest := func(pattern string, serve admission.Handler) {
		door(pattern, h.isGuest, h.page(h.withShares(onlyGET(serve))))
	}

	door("/", h.isBrowser, h.other)
	for _, tree := range []string{assetsPath, contentPath, ahp.SharePath} {
		door(strings.TrimSuffix(tree, "/"), h.isBrowser, h.other) // the mux would redirect it
	}
	door(mcpPath, h.agentIsHere, h.agentsOnly)
	for tree, serve := range map[string]http.HandlerFunc{shellsPath: h.shellsDoor(), lentPath: h.lentDoor()} {
		door(tree, h.isBrowser, serve)
		door(tree+"/", h.isBrowser, serve)
	}

	door("/{$}", h.isBrowser, h.clientOr(h.page(onlyGET(h.known(h.index)))))
	get(assetsPath, func(w http.ResponseWriter, r *http.Request) *admission.Refusal {
		return asset(w, strings.TrimPrefix(r.URL.Path, assetsPath))
	})
	first(iconPath, onlyGET(file("icon.svg"))) // browsers ask for it on each page, those of text too
	first("POST "+launchPath, h.makeLink)
	first(launchPath, onlyGET(file("launch.html"))) // it logs nobody in: previews and scanners open links before people do
	first("POST "+loginPath, h.login)
	first(loginPath, onlyGET(h.known(h.index)))
	page("POST "+logoutPath, h.logout)
	person(logoutPath, h.index)
	person(eventsPath, func(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
		h.asking(w, r, p, h.events)
		return nil
	})
	person(plainPath, func(w http.ResponseWriter, _ *http.Request, p rights.Principal) *admission.Refusal {
		h.plain(w, p)
		return nil
	})
	person(peoplePath, noGuests(func(w http.ResponseWriter, _ *http.Request, _ rights.Principal) *admission.Refusal {
		return asset(w, "people.html")
	}))
	person(entryPath, noGuests(h.entries))
	page("POST "+endPath, h.endEntry)
	person(endPath, noGuests(func(http.ResponseWriter, *http.Request, rights.Principal) *admission.Refusal { return errOnlyPOST }))
	page("POST "+previewsPath, h.openPreview)
	person(previewsPath, noGuests(func(http.ResponseWriter, *http.Request, rights.Principal) *admission.Refusal { return errOnlyPOST }))
	get(workerPath, file("sw.js"))
	person(pushPath, noGuests(h.pushKey))
	page("POST "+pushPath, h.choosePush)
	person(contentPath, func(http.ResponseWriter, *http.Request, rights.Principal) *admission.Refusal { return errNoTerminal })
	person(contentPath+"{id}", h.content(".txt", h.download))
	person(contentPath+"{id}/state", h.content("", h.serveState))
	person(contentPath+"{id}/problems", h.content("", h.pageProblems))
	person(contentPath+"{id}/runs", noGuests(h.runsOf))

	guest(ahp.SharePath, func(http.ResponseWriter, *http.Request) *admission.Refusal { return errNoPath })
	guest(ahp.SharePath+"{$}", file("guest.html"))
	door("POST "+admission.OpenPath, h.isGuest, h.page(h.withShares(h.openShare)))
	door("POST "+guestPreviewPath, h.isGuest, h.page(h.withShares(h.openGuestPreview)))
	guest(ahp.SharePath+"state", h.asGuest(func(w http.ResponseWriter, _ *http.Request, p rights.Principal) *admission.Refusal {
		h.answerGuest(w, p, "")
		return nil
	}))
	guest(ahp.SharePath+"terminal", h.asGuest(h.guestTerminal))
}

var (
	errOnlyGET  = &admission.Refusal{Status: http.StatusMethodNotAllowed, Text: "this path accepts only GET", Quiet: true}
	errNoPath   = &admission.Refusal{Status: http.StatusNotFound, Text: "no such page", Quiet: true}
	errOnlyPOST = &admission.Refusal{Status: http.StatusMethodNotAllowed, Text: "this path accepts only POST", Quiet: true}
)

func onlyGET(serve admission.Handler) admission.Handler {
	return func(w http.ResponseWriter, r *http.Request) *admission.Refusal {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return errOnlyGET
		}
		return serve(w, r)
	}
}

// file serves a file of the page to everybody.
func file(name string) admission.Handler {
	return func(w http.ResponseWriter, _ *http.Request) *admission.Refusal { return asset(w, name) }
}

// limited serves requests that the node admits, until rights have lapsed. While rights
// are old, only those of in are served.
func (h *Host) limited(in func(*http.Request) bool, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if why := h.admits(r, in); why != nil {
			h.checks.Refuse(w, r, why)
			return
		}
		ctx, done := h.unlapsed(r.Context())
		defer done()
		serve(w, r.WithContext(ctx))
	}
}

// page serves requests that come by a name of this host's and from no other page, and
// answers refusals.
func (h *Host) page(serve admission.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.pageHeaders(w.Header())
		why := h.checks.FromHere(r)
		if why == nil {
			why = serve(w, r)
		}
		if why != nil {
			h.checks.Refuse(w, r, why)
		}
	}
}

// known serves people whom the host knows, and asks others to log in where people come
// first.
func (h *Host) known(serve personal) admission.Handler {
	return func(w http.ResponseWriter, r *http.Request) *admission.Refusal {
		p, why := h.person(r)
		switch {
		case why == nil:
			return serve(w, r, p)
		case why == admission.ErrNoToken && (r.URL.Path == "/" || r.URL.Path == plainPath || r.URL.Path == peoplePath):
			status := http.StatusUnauthorized
			if admission.Followed(r) {
				status = http.StatusOK // the person is where they ought to be: no error in the browser's console
			}
			h.loginPage(w, status, "")
			return nil
		}
		return why
	}
}

func noGuests(serve personal) personal {
	return func(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
		if p.Guest != "" {
			return errNoGuests
		}
		return serve(w, r, p)
	}
}

// clientOr serves programs that look for the agent host with a token, and others by page.
func (h *Host) clientOr(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := admission.RequestToken(r); ok {
			h.other(w, r)
			return
		}
		page(w, r)
	}
}

// other answers requests that need a WebSocket. A browser asks for files by itself, so
// that it gets the answer that it understands.
func (h *Host) other(w http.ResponseWriter, r *http.Request) {
	_, why := h.admit(r)
	if _, program := admission.RequestToken(r); why == nil && !program {
		why = errNoFile
	}
	if why != nil {
		h.checks.Refuse(w, r, why)
		return
	}
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Connection", "Upgrade")
	http.Error(w, "this is an agent host; connect with a WebSocket", http.StatusUpgradeRequired)
}

// agentsOnly is the door for agents.
func (h *Host) agentsOnly(w http.ResponseWriter, r *http.Request) {
	p, why := h.admit(r)
	if why != nil {
		h.checks.Refuse(w, r, why)
		return
	}
	h.asking(w, r, p, h.mcpHTTP)
}
