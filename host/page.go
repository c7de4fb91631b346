package host

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"tether/agenttools"
	"tether/host/admission"
	"tether/host/rights"
	"tether/host/web"
	"tether/screen"
)

// Paths of the page.
const (
	launchPath  = "/launch"
	loginPath   = "/login"
	logoutPath  = "/logout"
	eventsPath  = "/events"
	assetsPath  = "/assets/"
	plainPath   = "/plain"
	contentPath = "/terminals/"
	iconPath    = "/favicon.ico"
)

// contentPolicy lets the page run only its own scripts and talk only to this host.
// xterm.js makes style sheets while it runs, which is why styles may be inline.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; worker-src 'self'; manifest-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const (
	maxForm    = 4 << 10 // bytes that a browser sends
	maxRenders = 4       // terminals that are rendered as text at a time: each may take some MB for a moment; others wait
)

var (
	errNoPage   = &admission.Refusal{Status: http.StatusForbidden, Text: "this token is not for people: its role allows no page"}
	errUsedLink = &admission.Refusal{Status: http.StatusForbidden, Text: "this link was already used or has expired; tether-host link makes another"}
)

// PageHeaders sets headers that keep other pages from using this answer, and this answer
// from loading anything from elsewhere.
func PageHeaders(header http.Header) {
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin") // with none, forms would be sent without an origin
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}

// logout logs a browser out.
func (h *Host) logout(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	if cookie, err := r.Cookie(h.checks.LoginCookie(r)); err == nil {
		h.logins.logout(cookie.Value)
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// index is the page, plain where it was built without Node.
func (h *Host) index(w http.ResponseWriter, _ *http.Request, p rights.Principal) *admission.Refusal {
	if h.scripts {
		return asset(w, "index.html")
	}
	h.plain(w, p)
	return nil
}

// person returns the principal of a request for the page, by cookie or by token.
func (h *Host) person(r *http.Request) (rights.Principal, *admission.Refusal) {
	p, ok := h.browser(r)
	if !ok {
		var why *admission.Refusal
		if p, why = h.admit(r); why != nil {
			return p, why
		}
	}
	if !p.May(rights.Page) {
		return p, errNoPage
	}
	return p, nil
}

// makeLink answers a request that has a token with a link that logs a browser in. A
// cookie is not enough: otherwise a browser could renew its login for ever.
func (h *Host) makeLink(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	r.Header.Del("Cookie")
	p, why := h.person(r)
	if why == nil && p.Guest != "" {
		why = errNoGuests
	}
	if why != nil {
		return why
	}
	answerJSON(w, map[string]string{"path": h.Launch(p)})
	return nil
}

// followLink logs a browser in by the code of a link, which its person has confirmed at
// the link's page.
func (h *Host) followLink(w http.ResponseWriter, r *http.Request, code string) *admission.Refusal {
	p, ok := h.logins.follow(code)
	if !ok {
		if _, known := h.browser(r); known { // the button was pressed twice
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return nil
		}
		if why := h.checks.GuessingLinks(r.RemoteAddr); why != nil {
			return why
		}
		h.checks.WrongLink(r.RemoteAddr)
		h.askAgain(w, r, "link", errUsedLink)
		return nil
	}
	h.audit(rights.AuditConnected, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Detail: "the page, by link"})
	h.admitBrowser(w, r, p, h.shown(p))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// goOn sends a browser that was just logged in to the page. It does so with a page of
// this host, because the browser sends the cookie only with requests that begin there.
func goOn(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>tether-host</title><p><a href="/">Continue</a>`)
}

// login logs a browser in by the token in the form, or by the code of a link.
func (h *Host) login(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	if r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") != "same-origin" {
		return admission.ErrForeignSite
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if code := strings.TrimSpace(r.PostFormValue("code")); code != "" {
		return h.followLink(w, r, code)
	}
	p, why := h.authenticate(r.RemoteAddr, strings.TrimSpace(r.PostFormValue("token")))
	if why == nil && (!p.May(rights.Page) || p.Guest != "") {
		why = errNoPage
	}
	if why != nil {
		h.askAgain(w, r, "login", why)
		return nil
	}
	h.audit(rights.AuditConnected, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Detail: "the page, by token"})
	h.admitBrowser(w, r, p, h.shown(p))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// askAgain tells a person why a link or a token did not log them in, and asks for another
// token.
func (h *Host) askAgain(w http.ResponseWriter, r *http.Request, how string, why *admission.Refusal) {
	if h.checks.Noted(r, why) {
		h.log.Warn().Str("remote", r.RemoteAddr).Int("status", why.Status).Msg(how + " refused")
		h.audit(rights.AuditRefused, remote{name: r.RemoteAddr}, rights.AuditEvent{Detail: how + ": " + why.Text})
	}
	h.loginPage(w, why.Status, why.Text)
}

// asset serves a file of the page.
func asset(w http.ResponseWriter, name string) *admission.Refusal {
	file, err := web.Files().Open(path.Clean(name))
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // independent of the system's table
	case ".mjs", ".js":
		kind = "text/javascript; charset=utf-8"
	case ".css":
		kind = "text/css; charset=utf-8"
	case ".png":
		kind = "image/png"
	case ".webmanifest":
		kind = "application/manifest+json"
	case ".html":
		kind = "text/html; charset=utf-8"
	case ".svg":
		kind = "image/svg+xml"
	}
	if err == nil {
		defer file.Close()
	}
	if err != nil || kind == "" {
		return errNoFile
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.Copy(w, file) // in pieces, because a slow reader needs no token; fails only with the connection
	return nil
}

var (
	errClientGone = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "the client has gone", Quiet: true}
	errNoFile     = &admission.Refusal{Status: http.StatusNotFound, Text: "no such file", Quiet: true}
	errNoTerminal = &admission.Refusal{Status: http.StatusNotFound, Text: "no such terminal", Quiet: true}
	errUnreadable = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "the terminal cannot be read", Quiet: true}
)

// content serves the terminal that the path names, by its id and the suffix.
func (h *Host) content(suffix string, serve func(http.ResponseWriter, *http.Request, rights.Principal, lookedAt) *admission.Refusal) personal {
	return func(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
		done, ok := h.ask(p)
		if !ok {
			return admission.ErrBusy
		}
		defer done()
		id, ok := strings.CutSuffix(r.PathValue("id"), suffix)
		t, err := catalogue{h, &p}.Open(id)
		if err != nil || !ok {
			return errNoTerminal
		}
		t.(lookedAt).looked()
		return serve(w, r, p, t.(lookedAt))
	}
}

// maxPageProblems is how many problems the page gets at once; the counts say how many
// there are.
const maxPageProblems = 300

// pageProblems serves /terminals/ID/problems: the answer of the MCP tool problems. All
// people at the page share one matching, since they see the same output.
func (h *Host) pageProblems(w http.ResponseWriter, r *http.Request, p rights.Principal, at lookedAt) *admission.Refusal {
	if h.problemLooks.first(p.Name + " " + at.t.id) { // the page asks repeatedly
		h.audit(rights.AuditSubscribed, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Terminal: at.t.uri, Detail: "problems"})
	}
	key := at.t.id
	if at.from > 0 { // others see more of the output
		key = fmt.Sprint(key, " from ", at.from)
	} else {
		at.p = nil // the findings stay when this person may not see the terminal any more
	}
	a, err := h.matching.Ask(r.Context(), key, at, 0, maxPageProblems)
	if err != nil {
		return errUnreadable
	}
	answerJSON(w, a)
	return nil
}

// download serves a terminal as text.
func (h *Host) download(w http.ResponseWriter, r *http.Request, p rights.Principal, t lookedAt) *admission.Refusal {
	i, sending := t.Info(), &h.messages.sending
	n := int(min(i.End-i.Start, int64(sending.part)))
	if sending.take(r.Context(), p.Name, n) != nil {
		return errClientGone
	}
	defer sending.give(p.Name, n) // after the client has read it
	done, err := h.renders.Take(r.Context())
	if err != nil {
		return errClientGone
	}
	text, err := func() (string, error) {
		defer done() // even if the text causes a panic, which costs only this answer
		return plainText(r.Context(), t)
	}()
	if err != nil {
		return errUnreadable
	}
	h.audit(rights.AuditSubscribed, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Terminal: t.t.uri, Detail: "as text"})
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.URL.Query().Has("download") {
		w.Header().Set("Content-Disposition", `attachment; filename="`+t.t.id+`.txt"`)
	}
	_, _ = io.WriteString(w, text) // fails only with the connection
	return nil
}

// plainText renders the recorded text of a terminal.
func plainText(ctx context.Context, t agenttools.Terminal) (string, error) {
	i := t.Info()
	rd, err := t.Read(i.Start)
	if err != nil {
		return "", err
	}
	defer rd.Close()
	s := screen.New(i.Cols, i.Rows)
	buf := make([]byte, 32<<10)
	for off := i.Start; off < i.End && ctx.Err() == nil; {
		ev, ok, err := rd.TryNext(buf)
		if errors.Is(err, io.EOF) || err == nil && !ok {
			break
		}
		if err != nil {
			return "", err
		}
		s.Write(ev.Data)
		if ev.Resized != nil {
			s.Resize(ev.Resized[0], ev.Resized[1])
		}
		off = ev.Off
	}
	text, _ := s.History()
	return text, ctx.Err()
}

// plainPage lists terminals without scripts: for a browser that runs none, or at a host
// that was built without Node.
var plainPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("plain").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="refresh" content="5">
<title>tether-host</title><link rel="stylesheet" href="/assets/plain.css"></head><body>
<header><h1>tether<span>host</span></h1><form method="post" action="/logout"><button>Log out</button></form></header>
{{define "row"}}<li><a href="/terminals/{{.ID}}.txt">{{.Name}}</a> <span class="state {{.State}}">{{or .Awaits .State}}{{with .ExitCode}} {{.}}{{end}}</span>
<small>{{with .Label}}{{.}} · {{end}}{{with .URL}}{{.}} · {{end}}held by {{.Claim}}{{if ne .Title .Name}} · {{.Title}}{{end}}{{with .Running}} · runs <code>{{.}}</code>{{end}}{{with .Cwd}} · {{.}}{{end}}{{with .Kept}} · {{.}}{{end}}</small></li>
{{end}}{{range .}}<section><h2>{{.Machine}}</h2><ul>{{range .Live}}{{template "row" .}}{{end}}</ul>
{{with .Exited}}<h3>exited</h3><ul>{{range .}}{{template "row" .}}{{end}}</ul>{{end}}</section>
{{else}}<p>No terminals are shared now. On a machine, <code>tether pair</code> and <code>tether run</code> change that.</p>{{end}}
</body></html>
`))
})

// plainGroup has the terminals of a machine on the plain page.
type plainGroup struct {
	Machine      string
	Live, Exited []row
}

func (h *Host) plain(w http.ResponseWriter, p rights.Principal) {
	var groups []plainGroup
	for _, r := range h.rows(p) {
		for _, s := range []*string{&r.Name, &r.Title, &r.Running, &r.Cwd, &r.Machine, &r.Claim} {
			*s = screen.Clean(*s)
		}
		if n := len(groups); n == 0 || groups[n-1].Machine != r.Machine {
			groups = append(groups, plainGroup{Machine: r.Machine})
		}
		g := &groups[len(groups)-1]
		if r.State == "exited" {
			g.Exited = append(g.Exited, r)
			continue
		}
		if r.State == "away" {
			r.State = "offline"
		}
		r.Awaits = strings.ReplaceAll(r.Awaits, "_", " ")
		g.Live = append(g.Live, r)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = plainPage().Execute(w, groups) // fails only with the connection
}

// loginForm shows the ways to log in, and why the last attempt failed.
var loginForm = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tether-host: log in</title><link rel="stylesheet" href="/assets/plain.css"></head><body class="login"><main>
<h1>tether<span>host</span></h1>{{with .Why}}<p class="wrong" role="alert">{{.}}</p>{{end}}
{{with .Provider}}<p><a class="button" href="{{.Path}}">Log in with {{.Name}}</a></p>
{{end}}<p>{{if .Provider}}Or open{{else}}Open{{end}} the link that <code>tether-host</code> printed when it started, or that <code>tether-host link</code> prints. Or log in with a token of an
observer or administrator:</p>
<form method="post" action="/login"><label for="token">Token</label><input id="token" name="token" type="password" autocomplete="current-password" required{{if not .Provider}} autofocus{{end}}>
<button>Log in</button></form></main></body></html>
`))
})

func (h *Host) loginPage(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginForm().Execute(w, struct {
		Why      string
		Provider *LoginProvider
	}{why, h.opts.Provider}) // fails only with the connection
}
