package device

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tether/ahp/client"
	"tether/internal/retry"
	"tether/pairing"
)

// ErrNoLogin is returned by Client.Login for a host at which nobody can log in through an
// identity provider.
var ErrNoLogin = errors.New("nobody can log in at this host by an identity provider")

// Login is one login of a person at a host, through a browser. Only the program that
// began it can finish it.
type Login struct {
	client   *Client
	page     string
	verifier string
	state    string
}

// Login begins a login. It returns ErrNoLogin if the host offers none.
func (c *Client) Login(ctx context.Context) (*Login, error) {
	var page pairing.LoginPage
	err := c.login(ctx, requestTime, "page", "", struct{}{}, &page)
	if _, refused := errors.AsType[*refusedError](err); refused {
		return nil, ErrNoLogin
	}
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(page.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errAnswer
	}
	return &Login{client: c, page: page.URL, verifier: rand.Text() + rand.Text(), state: rand.Text()}, nil
}

// Link returns the page that a browser on this machine opens. port is the loopback port
// at which the caller listens for Returned.
func (l *Login) Link(port int) string {
	return l.page + "?" + url.Values{"port": {strconv.Itoa(port)}, "state": {l.state}, "challenge": {pairing.LoginChallenge(l.verifier)}}.Encode()
}

// Returned reads the request with which the browser comes back to the loopback port, and
// returns the code in it; ok is false for any other request.
func (l *Login) Returned(r *http.Request) (code string, ok bool) {
	q := r.URL.Query()
	return q.Get("code"), r.Method == http.MethodGet && q.Get("state") == l.state && q.Get("code") != ""
}

// Exchange exchanges the code of Returned for a token.
func (l *Login) Exchange(ctx context.Context, code string) (pairing.LoggedIn, error) {
	var in pairing.LoggedIn
	err := l.client.login(ctx, requestTime, "token", "", pairing.LoginClaim{Code: code, Verifier: l.verifier}, &in)
	return in, err
}

// Typed is a login by a code that the person types into a page, in any browser.
type Typed struct {
	*Login
	Code, Page string
	id         string
}

// Type asks the host for a code.
func (l *Login) Type(ctx context.Context) (*Typed, error) {
	var begun pairing.LoginBegun
	if err := l.client.login(ctx, requestTime, "begin", "", pairing.LoginBegin{Challenge: pairing.LoginChallenge(l.verifier)}, &begun); err != nil {
		return nil, err
	}
	return &Typed{Login: l, Code: begun.Code, Page: l.page, id: begun.ID}, nil
}

// Wait blocks until the person has typed the code and allowed this login. Errors:
// ErrExpired, ctx's, or a failure to ask.
func (t *Typed) Wait(ctx context.Context) (in pairing.LoggedIn, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pairing.LoginTime, ErrExpired)
	defer cancel()
	for {
		began := time.Now()
		err := t.client.login(ctx, pairing.WaitTime+waitMargin, "token", "", pairing.LoginClaim{ID: t.id, Verifier: t.verifier}, &in)
		switch {
		case ctx.Err() != nil:
			return in, context.Cause(ctx)
		case err != nil && !errors.Is(err, client.ErrUnreachable) && !passes(err): // a host may restart, and a network go away
			return in, err
		case in.Token != "":
			return in, nil
		}
		if !retry.Wait(ctx, pause-min(pause, time.Since(began))) {
			return in, context.Cause(ctx)
		}
	}
}

// Approve approves the pairing of the machine that shows that code. The machine then
// belongs to the person whose login's token it is.
func (c *Client) Approve(ctx context.Context, token, code string) error {
	return c.login(ctx, requestTime, "approve", token, pairing.LoginApprove{Code: code}, &struct{}{})
}

// Logout ends the login with that token.
func (c *Client) Logout(ctx context.Context, token string) error {
	return c.login(ctx, requestTime, "logout", token, struct{}{}, &struct{}{})
}

// login sends a request to a path below pairing.LoginPath, with a bound on its time.
func (c *Client) login(ctx context.Context, within time.Duration, what, token string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.do(ctx, http.MethodPost, pairing.LoginPath+"/"+what, token, in, out)
}
