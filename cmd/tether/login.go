package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/device"
	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/ahp/client"
	"tether/cmd/tether/internal/display"
	"tether/pairing"
	"tether/platform/browser"
	"tether/platform/dirs"
)

// maxLogin bounds how long a login is kept; a host may say anything.
const maxLogin = 366 * 24 * time.Hour

func loginCommand(a *app) *cobra.Command {
	var code bool
	c := &cobra.Command{
		Use: "login HOST|URL", Short: "log in at a host with your company's identity provider", Args: someArgs(1, 1, "a host's URL, or the name of a paired one"),
		Long: `log in at a host with your company's identity provider, in your browser.

After that, tether watch shows what is shared with you at the host, and tether pair
lets this machine in as yours, without an administrator. Without a desktop, or with
--code, the command shows a code to type into the host's page in any browser.`,
		RunE: func(c *cobra.Command, args []string) error {
			d, e, err := a.loginEndpoint(c, args[0])
			if err != nil {
				return err
			}
			in, err := a.logIn(c.Context(), e, code)
			if err != nil {
				return loginError(err)
			}
			until := time.Now().Add(time.Duration(min(max(in.ExpiresMs, 0), maxLogin.Milliseconds())) * time.Millisecond)
			if err := hosts.SaveLogin(d, hosts.Login{URL: e.URL, Token: in.Token, Person: in.Person, Until: until}); err != nil {
				return fmt.Errorf("save the login: %w", err)
			}
			fmt.Fprintf(a.stdout, "logged in to %s as %s, until %s\n", display.Printable(e.URL, 0), display.Printable(in.Person, 80), until.Format("15:04"))
			return nil
		},
	}
	c.Flags().BoolVar(&code, "code", false, "show a code to type in any browser, instead of opening one here")
	return c
}

func logoutCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "logout HOST|URL", Short: "log out at a host", Args: someArgs(1, 1, "a host's URL, or the name of a paired one"),
		RunE: func(c *cobra.Command, args []string) error {
			d, e, err := a.loginEndpoint(c, args[0])
			if err != nil {
				return err
			}
			l, ok, err := hosts.LoginAt(d, e.URL)
			if err == nil && ok {
				if err := endLogin(c.Context(), e, l.Token); err != nil {
					a.notice("the host was not informed: %v; the login ends there at %s", err, l.Until.Local().Format("15:04"))
				}
			}
			if err := hosts.DropLogin(d, e.URL); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "logged out of %s\n", display.Printable(e.URL, 0))
			return nil
		},
	}
}

// loginEndpoint returns the host's endpoint without a credential, which a login does not
// need.
func (a *app) loginEndpoint(c *cobra.Command, where string) (d dirs.Dirs, e client.Endpoint, err error) {
	if err := refuseToken(c, where); err != nil {
		return d, e, err
	}
	if d, err = dirs.Get(); err != nil {
		return d, e, err
	}
	e, found, err := hosts.Endpoint(d, where)
	switch {
	case err != nil || found:
	case strings.Contains(where, "://"):
		e.URL, err = hosts.URL(where)
	default:
		err = notPaired(where)
	}
	e.Token, e.Credential, e.Also = "", nil, nil // a login is known at one node
	return d, e, err
}

// endLogin makes the host forget a login.
func endLogin(ctx context.Context, e client.Endpoint, token string) error {
	host, err := device.New(e, nil)
	if err != nil {
		return err
	}
	defer host.Close()
	return host.Logout(ctx, token)
}

// logIn leads the person through their browser, and returns when the host has let them
// in.
func (a *app) logIn(ctx context.Context, e client.Endpoint, code bool) (in pairing.LoggedIn, err error) {
	host, err := device.New(e, nil)
	if err != nil {
		return in, err
	}
	defer host.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, pairing.LoginTime, device.ErrExpired)
	defer cancel()
	login, err := host.Login(ctx)
	if err != nil {
		return in, err
	}
	if !code {
		in, err = a.logInHere(ctx, login)
		if !errors.Is(err, browser.ErrNone) {
			return in, err
		}
	}
	typed, err := login.Type(ctx)
	if err != nil {
		return in, err
	}
	fmt.Fprintf(a.stdout, "open  %s\ncode  %s\n", display.Printable(typed.Page, 0), display.Printable(typed.Code, 20))
	a.notice("waiting up to %d minutes; Ctrl-C cancels", int(pairing.LoginTime.Minutes()))
	return typed.Wait(ctx)
}

// logInHere opens a browser on this machine, which the host sends back to a port that
// only this machine reaches. It returns browser.ErrNone if there is no desktop.
func (a *app) logInHere(ctx context.Context, login *device.Login) (in pairing.LoggedIn, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return in, err
	}
	came := make(chan string, 1)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, ok := login.Returned(r)
		if !ok {
			http.Error(w, "this is not the login that tether waits for", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "You can close this page and go back to your terminal.\n")
		select {
		case came <- code:
		default: // the browser has come before
		}
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		// The browser has its page before the port closes.
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = server.Shutdown(stop)
		cancel()
		_ = server.Close()
		<-served
	}()
	link := login.Link(listener.Addr().(*net.TCPAddr).Port)
	if err := browser.Open(link); err != nil {
		if errors.Is(err, browser.ErrNone) {
			return in, err
		}
		a.notice("no browser could be opened: %v", err)
	}
	a.notice("log in in your browser, on this machine: %s", display.Printable(link, 0))
	select {
	case code := <-came:
		return login.Exchange(ctx, code)
	case <-ctx.Done():
		return in, context.Cause(ctx)
	}
}

// loginError returns the error of a failed login with a code and a hint.
func loginError(err error) error {
	switch {
	case errors.Is(err, device.ErrNoLogin):
		return &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: err.Error(), Hint: "use a token of the host's: tether watch --token-file FILE, tether pair --token-file FILE"}
	case errors.Is(err, client.ErrUnreachable):
		return &localapi.Error{Code: localapi.CodeUnreachable, Message: err.Error(), Hint: "check that the host runs and the URL is right"}
	case errors.Is(err, device.ErrExpired):
		return &localapi.Error{Code: localapi.CodeRefused, Message: "nobody has finished the login in time", Hint: "run tether login again"}
	case errors.Is(err, context.Canceled):
		return err
	}
	return &localapi.Error{Code: localapi.CodeRefused, Message: err.Error(), Hint: "run tether login again"}
}

// loggedIn gives an endpoint the token of the person's login at the host, if there is
// one.
func (a *app) loggedIn(d dirs.Dirs, e *client.Endpoint) bool {
	l, ok, err := hosts.LoginAt(d, e.URL)
	if err != nil {
		a.notice("the login at %s cannot be read: %v; log in again with tether login", display.Printable(e.URL, 0), err)
	}
	if !ok {
		return false
	}
	e.Credential, e.Token, e.Also = nil, l.Token, nil // it is known at one node
	return true
}

// approveOwn lets this machine in at the host as a machine of the person who is logged in
// there. It reports whether somebody is logged in.
func (a *app) approveOwn(c *cobra.Command, url, code string) (bool, error) {
	d, e, err := a.loginEndpoint(c, url)
	if err != nil {
		return false, err
	}
	l, ok, err := hosts.LoginAt(d, e.URL)
	if err != nil || !ok {
		return false, err
	}
	host, err := device.New(e, nil)
	if err != nil {
		return false, err
	}
	defer host.Close()
	if err := host.Approve(c.Context(), l.Token, code); err != nil {
		return false, loginError(err)
	}
	a.notice("approved as a machine of %s", display.Printable(l.Person, 80))
	return true, nil
}
