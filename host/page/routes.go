package page

import (
	"net/http"
	"path"
	"strings"

	"tether/ahp"
	"tether/host/admission"
	"tether/host/rights"
	"tether/mcp"
)

// Doors are the doors of a host beside the page. Each admits its own requests.
type Doors struct {
	Agents    http.HandlerFunc           // at mcp.Path
	AgentHere func(r *http.Request) bool // an agent that has sent one before
	Ended     []Ended                    // what administrators end
}

// Paths of the page.
const (
	launchPath  = "/launch"
	loginPath   = "/login"
	logoutPath  = "/logout"
	eventsPath  = "/events"
	assetsPath  = "/assets/"
	plainPath   = "/plain"
	peoplePath  = "/people"
	contentPath = "/terminals/"
	iconPath    = "/favicon.ico"
	// Paths at which the page gets a code for a preview.
	previewsPath     = "/previews"
	guestPreviewPath = ahp.SharePath + "preview"
)

// ServeHTTP serves previews and all doors, but no WebSockets besides those of previews.
func (pg *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if pg.ServesPreview(r) {
		pg.previews.ServeHTTP(w, r)
		return
	}
	if at := r.URL.EscapedPath(); at == "" || at != "/" && at != path.Clean(at) && at != path.Clean(at)+"/" || strings.HasPrefix(at, "//") {
		pg.page(func(http.ResponseWriter, *http.Request) *admission.Refusal { return errNoFile })(w, r) // the mux would redirect it
		return
	}
	pg.mux.ServeHTTP(w, r)
}

// Handle serves a pattern of http.ServeMux beside the host's own. It must be called
// before the host serves. The handler checks its requests itself, and is not asked for
// WebSockets.
func (pg *Page) Handle(pattern string, handler http.Handler) { pg.mux.Handle(pattern, handler) }

// personal is a handler for people whom the host knows.
type personal = func(http.ResponseWriter, *http.Request, rights.Principal) *admission.Refusal

// route adds the host's own doors to the mux.
func (pg *Page) route() {
	door := func(pattern string, in func(*http.Request) bool, serve http.HandlerFunc) {
		pg.mux.HandleFunc(pattern, pg.limited(in, serve))
	}
	page := func(pattern string, serve admission.Handler) { door(pattern, pg.isBrowser, pg.page(serve)) }
	get := func(path string, serve admission.Handler) { page(path, onlyGET(serve)) }
	person := func(path string, serve personal) { get(path, pg.known(serve)) }
	first := func(pattern string, serve admission.Handler) { door(pattern, nil, pg.page(serve)) } // of people who log in
	guest := func(pattern string, serve admission.Handler) {
		door(pattern, pg.isGuest, pg.page(pg.withShares(onlyGET(serve))))
	}

	door("/", pg.isBrowser, pg.other)
	for _, tree := range []string{assetsPath, contentPath, ahp.SharePath} {
		door(strings.TrimSuffix(tree, "/"), pg.isBrowser, pg.other) // the mux would redirect it
	}
	door(mcp.Path, pg.opts.Doors.AgentHere, pg.opts.Doors.Agents)
	for _, e := range pg.opts.Doors.Ended {
		door(e.Path, pg.isBrowser, pg.forAdministrators(e))
		door(e.Path+"/", pg.isBrowser, pg.forAdministrators(e))
	}

	door("/{$}", pg.isBrowser, pg.clientOr(pg.page(onlyGET(pg.known(pg.index)))))
	get(assetsPath, func(w http.ResponseWriter, r *http.Request) *admission.Refusal {
		return asset(w, strings.TrimPrefix(r.URL.Path, assetsPath))
	})
	first(iconPath, onlyGET(file("icon.svg"))) // browsers ask for it on each page, those of text too
	first("POST "+launchPath, pg.makeLink)
	first(launchPath, onlyGET(file("launch.html"))) // it logs nobody in: previews and scanners open links before people do
	first("POST "+loginPath, pg.login)
	first(loginPath, onlyGET(pg.known(pg.index)))
	page("POST "+logoutPath, pg.logout)
	person(logoutPath, pg.index)
	person(eventsPath, pg.counted(pg.events))
	person(plainPath, func(w http.ResponseWriter, _ *http.Request, p rights.Principal) *admission.Refusal {
		pg.plain(w, p)
		return nil
	})
	person(peoplePath, noGuests(func(w http.ResponseWriter, _ *http.Request, _ rights.Principal) *admission.Refusal {
		return asset(w, "people.html")
	}))
	person(entryPath, noGuests(pg.entries))
	page("POST "+endPath, pg.endEntry)
	person(endPath, noGuests(func(http.ResponseWriter, *http.Request, rights.Principal) *admission.Refusal { return errOnlyPOST }))
	page("POST "+previewsPath, pg.openPreview)
	person(previewsPath, noGuests(func(http.ResponseWriter, *http.Request, rights.Principal) *admission.Refusal { return errOnlyPOST }))
	get(workerPath, file("sw.js"))
	person(pushPath, noGuests(pg.pushKey))
	page("POST "+pushPath, pg.choosePush)
	person(contentPath, func(http.ResponseWriter, *http.Request, rights.Principal) *admission.Refusal { return errNoTerminal })
	person(contentPath+"{id}", pg.counted(pg.content(".txt", pg.download)))
	person(contentPath+"{id}/state", pg.counted(pg.content("", pg.serveState)))
	person(contentPath+"{id}/problems", pg.counted(pg.content("", pg.problems)))
	person(contentPath+"{id}/runs", noGuests(pg.counted(pg.runs)))

	guest(ahp.SharePath, func(http.ResponseWriter, *http.Request) *admission.Refusal { return errNoPath })
	guest(ahp.SharePath+"{$}", file("guest.html"))
	door("POST "+admission.OpenPath, pg.isGuest, pg.page(pg.withShares(pg.openShare)))
	door("POST "+guestPreviewPath, pg.isGuest, pg.page(pg.withShares(pg.openGuestPreview)))
	guest(ahp.SharePath+"state", pg.asGuest(func(w http.ResponseWriter, _ *http.Request, p rights.Principal) *admission.Refusal {
		pg.answerGuest(w, p, "")
		return nil
	}))
	guest(ahp.SharePath+"terminal", pg.asGuest(pg.counted(pg.guestTerminal)))
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

// limited serves requests that the node admits, until rights have lapsed. While rights
// are old, only those of in are served.
func (pg *Page) limited(in func(*http.Request) bool, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if why := pg.opts.Gate.Admits(r, in); why != nil {
			pg.checks.Refuse(w, r, why)
			return
		}
		ctx, done := pg.opts.Gate.Unlapsed(r.Context())
		defer done()
		serve(w, r.WithContext(ctx))
	}
}

// page serves requests that come by a name of this host's and from no other page, and
// answers refusals.
func (pg *Page) page(serve admission.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		pg.headers(w.Header())
		why := pg.checks.FromHere(r)
		if why == nil {
			why = serve(w, r)
		}
		if why != nil {
			pg.checks.Refuse(w, r, why)
		}
	}
}

// known serves people whom the host knows, and asks others to log in where people come
// first.
func (pg *Page) known(serve personal) admission.Handler {
	return func(w http.ResponseWriter, r *http.Request) *admission.Refusal {
		p, why := pg.person(r)
		switch {
		case why == nil:
			return serve(w, r, p)
		case why == admission.ErrNoToken && (r.URL.Path == "/" || r.URL.Path == plainPath || r.URL.Path == peoplePath):
			status := http.StatusUnauthorized
			if admission.Followed(r) {
				status = http.StatusOK // the person is where they ought to be: no error in the browser's console
			}
			pg.loginPage(w, status, "")
			return nil
		}
		return why
	}
}

// counted serves a request that may take long, unless its principal has as many of them
// as one name may have.
func (pg *Page) counted(serve personal) personal {
	return func(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
		done, ok := pg.opts.Ask(p)
		if !ok {
			return admission.ErrBusy
		}
		defer done()
		return serve(w, r, p)
	}
}

// isBrowser and isGuest report whether a request comes from a browser that is logged in,
// and from a guest who has opened a link.
func (pg *Page) isBrowser(r *http.Request) bool { _, in := pg.checks.Browser(r); return in }
func (pg *Page) isGuest(r *http.Request) bool   { _, in := pg.checks.Guest(r); return in }

func noGuests(serve personal) personal {
	return func(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
		if p.Guest != "" {
			return errNoGuests
		}
		return serve(w, r, p)
	}
}

// clientOr serves programs that look for the agent host with a token, and others by page.
func (pg *Page) clientOr(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := admission.RequestToken(r); ok {
			pg.other(w, r)
			return
		}
		page(w, r)
	}
}

// other answers requests that need a WebSocket. A browser asks for files by itself, so
// that it gets the answer that it understands.
func (pg *Page) other(w http.ResponseWriter, r *http.Request) {
	_, why := pg.checks.Admit(r)
	if _, program := admission.RequestToken(r); why == nil && !program {
		why = errNoFile
	}
	if why != nil {
		pg.checks.Refuse(w, r, why)
		return
	}
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Connection", "Upgrade")
	http.Error(w, "this is an agent host; connect with a WebSocket", http.StatusUpgradeRequired)
}
