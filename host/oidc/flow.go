package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	openid "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"tether/host/page"
	"tether/host/rights"
	"tether/pairing"
)

// maxQuery bounds the state and the code with which a browser returns, in bytes.
const maxQuery = 4 << 10

// refusal says why nobody was logged in. Its text is for the person; it contains nothing
// that the provider or the browser has sent.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

var (
	errUnknownAttempt = &refusal{http.StatusForbidden, "this login was not begun in this browser, or more than ten minutes ago: log in again, and allow cookies for this page"}
	errSaidNo         = &refusal{http.StatusForbidden, "the identity provider did not log you in"}
	errAway           = &refusal{http.StatusBadGateway, "the identity provider cannot be reached: try again in a moment"}
	errUnbelieved     = &refusal{http.StatusForbidden, "the identity provider's answer was not valid; an administrator finds the reason in the host's log"}
	errManyLogins     = &refusal{http.StatusServiceUnavailable, "too many people are logging in: try again in a moment"}
	errManyLogouts    = &refusal{http.StatusServiceUnavailable, "too many logouts at a time: try again in a moment"}
	errStranger       = &refusal{http.StatusForbidden, "your account may not use this host: its e-mail address or its groups are not among those that the host accepts"}
	errEnded          = &refusal{http.StatusForbidden, "an administrator has ended your access to this host"}
)

// ServeHTTP serves the paths below Path, and answers 404 for others.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.nodes != nil {
		p.pass(w, r)
		return
	}
	p.serve(w, r)
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	page.PageHeaders(w.Header())
	w.Header().Set("Referrer-Policy", "no-referrer") // the address of the callback contains a code
	what, cli := strings.CutPrefix(r.URL.Path, pairing.LoginPath+"/")
	switch {
	case r.URL.Path == logoutPath && r.Method == http.MethodPost:
		p.logout(w, r)
	case cli && what == "allow" && r.Method == http.MethodPost:
		p.finish(w, r, p.allow(w, r))
	case cli && r.Method == http.MethodPost:
		p.serveCLI(w, r, what)
	case r.Method != http.MethodGet:
		http.Error(w, "this path accepts only GET", http.StatusMethodNotAllowed)
	case r.URL.Path == Path:
		p.finish(w, r, p.send(w, r, nil))
	case r.URL.Path == pairing.LoginPath:
		p.finish(w, r, p.beginCLI(w, r))
	case r.URL.Path == callbackPath:
		p.finish(w, r, p.back(w, r))
	default:
		http.NotFound(w, r)
	}
}

// finish tells the person why a login has failed.
func (p *Provider) finish(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		return
	}
	why := errAway
	switch refused, ok := errors.AsType[*refusal](err); {
	case ok:
		why = refused
	case errors.Is(err, errBusy):
		why = errManyLogins
	}
	if p.opts.Noted(r) {
		p.log.Warn().Str("remote", r.RemoteAddr).Err(err).Msg("login refused")
		p.audit(rights.AuditRefused, r.RemoteAddr, "", "login by the identity provider: "+why.text)
	}
	p.opts.OnRefused(w, r, why.status, why.text)
}

// send sends the browser to the provider, to log in the browser or, with cli, the command
// line.
func (p *Provider) send(w http.ResponseWriter, r *http.Request, cli *purpose) error {
	d := p.description()
	if d == nil {
		ctx, done, err := p.ask(r, &p.logins)
		if err != nil {
			return err
		}
		defer done()
		if d, err = p.discover(ctx); err != nil {
			return err
		}
	}
	how := []oauth2.AuthCodeOption{}
	again := cli == nil && r.URL.Query().Has("again")
	if again { // an existing login at the provider is not enough; max_age makes it say when the person has logged in
		how = append(how, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	a := attempt{CLI: cli, Again: again, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Expires: time.Now().Add(attemptTime)}
	p.setAttempt(w, r, &a)
	http.Redirect(w, r, d.oauth.AuthCodeURL(a.State, append(how, openid.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))...), http.StatusSeeOther)
	return nil
}

// back handles a browser that returns from the provider, and logs its person in.
func (p *Provider) back(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	a, ok := p.attemptOf(r)
	if len(r.URL.RawQuery) > maxQuery || !ok || subtle.ConstantTimeCompare([]byte(a.State), []byte(q.Get("state"))) != 1 {
		return errUnknownAttempt
	}
	p.setAttempt(w, r, nil)
	if q.Get("code") == "" {
		return errSaidNo
	}
	ctx, done, err := p.ask(r, &p.logins)
	if err != nil {
		return err
	}
	defer done()
	who, token, err := p.exchange(ctx, q.Get("code"), &a)
	if err != nil {
		return err
	}
	if a.CLI != nil {
		return p.askConfirm(w, *a.CLI, who, token)
	}
	principal, secret, err := p.open(who, token)
	if err != nil {
		return err
	}
	p.audit(rights.AuditConnected, r.RemoteAddr, principal.Name, "the page, by the identity provider")
	p.opts.OnLogin(w, r, principal, secret, a.proof(who))
	return nil
}

// maxAuthAge is how long before its ID token a person may have logged in at the provider,
// for a login that asked for that.
const maxAuthAge = time.Minute

// proof returns what the provider's answer to an attempt proves about the person's
// presence.
func (a *attempt) proof(who claims) rights.Proof {
	switch at := time.Unix(int64(who.AuthTime), 0); {
	case !a.Again:
		return rights.ProofNone
	case who.AuthTime == 0 || who.issued.Sub(at) > maxAuthAge:
		return rights.ProofMissing
	}
	return rights.ProofNow
}

// exchange exchanges the code at the provider and returns the claims of the person who
// has logged in.
func (p *Provider) exchange(ctx context.Context, code string, a *attempt) (claims, *oauth2.Token, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return claims{}, nil, err
	}
	token, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			return claims{}, nil, fmt.Errorf("%w: the code was not taken: %s", errUnbelieved, describe(refused))
		}
		return claims{}, nil, fmt.Errorf("exchange the code: %w", err)
	}
	who, err := p.identify(ctx, d, token, a.Nonce)
	if err != nil {
		return claims{}, nil, err
	}
	return who, token, nil
}

// describe describes a provider's refusal for the log: its code, if that is valid, and
// the status.
func describe(e *oauth2.RetrieveError) string {
	code := e.ErrorCode
	for _, c := range code {
		if c < 0x21 || c > 0x7e {
			code = "?"
		}
	}
	if e.Response == nil {
		return fmt.Sprintf("%.40q", code)
	}
	return fmt.Sprintf("%.40q, status %d", code, e.Response.StatusCode)
}

func (p *Provider) audit(kind, from, name, detail string) {
	if p.opts.Audit == nil {
		return
	}
	ev := rights.AuditEvent{At: time.Now().UTC(), Type: kind, Remote: from, Name: name, Detail: detail}
	if kind != rights.AuditRefused {
		ev.Role = rights.RoleObserver
	}
	p.opts.Audit(ev)
}
