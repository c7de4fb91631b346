package page

import (
	"crypto/sha256"
	"html/template"
	"io"
	"net/http"
	"strings"
	"sync"

	"tether/host/admission"
	"tether/host/login"
	"tether/host/rights"
)

var (
	errNoPage   = &admission.Refusal{Status: http.StatusForbidden, Text: "this token is not for people: its role allows no page"}
	errUsedLink = &admission.Refusal{Status: http.StatusForbidden, Text: "this link was already used or has expired; tether-host link makes another"}
)

// logout logs a browser out.
func (pg *Page) logout(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	if cookie, err := r.Cookie(pg.checks.LoginCookie(r)); err == nil {
		pg.logins.Logout(cookie.Value)
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// index is the page, plain where it was built without Node.
func (pg *Page) index(w http.ResponseWriter, _ *http.Request, p rights.Principal) *admission.Refusal {
	if pg.opts.Scripts {
		return asset(w, "index.html")
	}
	pg.plain(w, p)
	return nil
}

// person returns the principal of a request for the page, by cookie or by token.
func (pg *Page) person(r *http.Request) (rights.Principal, *admission.Refusal) {
	p, ok := pg.checks.Browser(r)
	if !ok {
		var why *admission.Refusal
		if p, why = pg.checks.Admit(r); why != nil {
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
func (pg *Page) makeLink(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	r.Header.Del("Cookie")
	p, why := pg.person(r)
	if why == nil && p.Guest != "" {
		why = errNoGuests
	}
	if why != nil {
		return why
	}
	admission.AnswerJSON(w, map[string]string{"path": pg.Launch(p)})
	return nil
}

// followLink logs a browser in by the code of a link, which its person has confirmed at
// the link's page.
func (pg *Page) followLink(w http.ResponseWriter, r *http.Request, code string) *admission.Refusal {
	p, ok := pg.logins.Follow(code)
	if !ok {
		if _, known := pg.checks.Browser(r); known { // the button was pressed twice
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return nil
		}
		if why := pg.checks.GuessingLinks(r.RemoteAddr); why != nil {
			return why
		}
		pg.checks.WrongLink(r.RemoteAddr)
		pg.askAgain(w, r, "link", errUsedLink)
		return nil
	}
	pg.opts.Audit(rights.AuditConnected, r, p, rights.AuditEvent{Detail: "the page, by link"})
	pg.admitBrowser(w, r, p, pg.shown(p))
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
func (pg *Page) login(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	if r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") != "same-origin" {
		return admission.ErrForeignSite
	}
	r.Body = http.MaxBytesReader(w, r.Body, admission.MaxForm)
	if code := strings.TrimSpace(r.PostFormValue("code")); code != "" {
		return pg.followLink(w, r, code)
	}
	p, why := pg.checks.Authenticate(r.RemoteAddr, strings.TrimSpace(r.PostFormValue("token")))
	if why == nil && (!p.May(rights.Page) || p.Guest != "") {
		why = errNoPage
	}
	if why != nil {
		pg.askAgain(w, r, "login", why)
		return nil
	}
	pg.opts.Audit(rights.AuditConnected, r, p, rights.AuditEvent{Detail: "the page, by token"})
	pg.admitBrowser(w, r, p, pg.shown(p))
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// askAgain tells a person why a link or a token did not log them in, and asks for another
// token.
func (pg *Page) askAgain(w http.ResponseWriter, r *http.Request, how string, why *admission.Refusal) {
	if pg.checks.Noted(r, why) {
		pg.opts.Log.Warn().Str("remote", r.RemoteAddr).Int("status", why.Status).Msg(how + " refused")
		pg.opts.Audit(rights.AuditRefused, r, rights.Principal{}, rights.AuditEvent{Detail: how + ": " + why.Text})
	}
	pg.loginPage(w, why.Status, why.Text)
}

// Launch returns the path, with its fragment, of a link that logs one browser in as p,
// once its person has pressed the button there. It works once, within ten minutes. The
// caller must have verified that p asks for it.
func (pg *Page) Launch(p rights.Principal) string { return launchPath + "#" + pg.logins.Launch(p) }

// admitBrowser logs the browser in.
func (pg *Page) admitBrowser(w http.ResponseWriter, r *http.Request, p rights.Principal, proof rights.Proof) {
	pg.checks.SetCookie(w, r, pg.checks.LoginCookie(r), pg.logins.Login(p, proof), login.Time)
}

// LogIn logs a browser in as p, until p's Live ends, and shows it the page. The caller
// must have verified that p asks for it; token is the token that admits p. LogIn does not
// write the audit record.
func (pg *Page) LogIn(w http.ResponseWriter, r *http.Request, p rights.Principal, token string, proof rights.Proof) {
	p.Token = sha256.Sum256([]byte(token))
	PageHeaders(w.Header())
	pg.admitBrowser(w, r, p, proof)
	goOn(w)
}

// shown returns what the token of p, or a link that was made with it, proves about the
// person: nothing, if a login at an identity provider has left it on the person's disk.
func (pg *Page) shown(p rights.Principal) rights.Proof {
	if pg.opts.Register != nil && pg.opts.Register.Session(p.Token) {
		return rights.ProofNone
	}
	return rights.ProofNow
}

// LoginRefused shows a person why a login at an identity provider failed, with the ways
// to log in.
func (pg *Page) LoginRefused(w http.ResponseWriter, status int, why string) {
	PageHeaders(w.Header())
	pg.loginPage(w, status, why)
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

func (pg *Page) loginPage(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginForm().Execute(w, struct {
		Why      string
		Provider *LoginProvider
	}{why, pg.opts.Provider}) // fails only with the connection
}
