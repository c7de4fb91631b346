package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/ahp"
	"tether/ahp/client"
	"tether/cmd/tether/internal/display"
	"tether/internal/version"
	"tether/platform/dirs"
)

// watching says what the person wants to watch.
type watching struct {
	token              tokenSource
	list, asJSON, wait bool
	first              bool
	guest              bool   // watch the one terminal of a guest's link
	terminal           string // "" means all
}

func watchCommand(a *app) *cobra.Command {
	var w watching
	c := &cobra.Command{
		Use: "watch URL|HOST|- [TERMINAL]", Short: "show a host's terminals as an observer sees them", Args: someArgs(1, 2, "a host's URL, the name of a paired one, or - for a guest's link"),
		Long: `show a host's terminals as an observer sees them.

TERMINAL is a title, a URI, or an unambiguous part of either. watch shows the output
that the host has kept, then new output, and ends when the terminal exits. Of a terminal whose machine
is away it shows what the host keeps meanwhile, and ends. Without
TERMINAL it shows all terminals, line by line. It reconnects after a lost connection.

With -, it reads a guest's link, as tether share prints it, from standard input and shows
the link's terminal. It needs no login and no daemon. A link for the first browser alone
is used up by it.`,
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "-" {
				return a.watchLink(c, args, w)
			}
			if len(args) == 2 {
				w.terminal = args[1]
			}
			if w.asJSON && !w.list {
				return usage(c, "--json needs --list")
			}
			e, err := a.endpoint(c, args[0], w.token)
			if err != nil {
				return err
			}
			return a.watch(c.Context(), e, w)
		},
	}
	f := c.Flags()
	w.token.flags(c)
	f.BoolVar(&w.list, "list", false, "list the host's terminals and exit")
	f.BoolVar(&w.asJSON, "json", false, "with --list: print JSON")
	f.BoolVar(&w.wait, "wait", false, "wait until TERMINAL exists")
	f.BoolVar(&w.first, "first", false, "show the host's first terminal, waiting for one if necessary")
	return c
}

// endpoint returns the host's endpoint. The name or URL of a paired host stands for the
// values of its pairing, but a given token has priority over the stored one.
func (a *app) endpoint(c *cobra.Command, where string, token tokenSource) (client.Endpoint, error) {
	isURL := strings.Contains(where, "://")
	if isURL {
		if strings.Contains(where, ahp.SharePath+"#") {
			return client.Endpoint{}, &usageError{message: c.Name() + ": other programs can read a guest's link on the command line", hint: "give it on standard input: " + c.CommandPath() + " -"}
		}
		if err := refuseToken(c, where); err != nil {
			return client.Endpoint{}, err
		}
	}
	d, err := dirs.Get()
	if err != nil {
		return client.Endpoint{}, err
	}
	e, found, err := hosts.Endpoint(d, where)
	if err != nil || found && token == (tokenSource{}) {
		if found && err == nil && !a.loggedIn(d, &e) && hosts.ByKey(d, where) {
			a.notice("showing only this machine's terminals; to see others that are shared with you, log in with tether login, or give an observer's token with --token-file")
		}
		return e, err
	}
	if found {
		e.Credential = nil
		e.Token, err = token.read(a, c)
		return e, err
	}
	if !isURL {
		return client.Endpoint{}, notPaired(where)
	}
	u, err := hosts.URL(where)
	if err != nil {
		return client.Endpoint{}, err
	}
	e = client.Endpoint{URL: u}
	if token == (tokenSource{}) && a.loggedIn(d, &e) {
		return e, nil
	}
	e.Token, err = token.read(a, c)
	return e, err
}

// watchedText bounds the text of one terminal that is requested from the host, in bytes.
// It is as much as hosts keep, since with less the first screen would be useless.
const watchedText = 4 << 20

// watch observes the host until there is nothing more to show or ctx ends.
func (a *app) watch(ctx context.Context, e client.Endpoint, w watching) error {
	ctx, cancel := context.WithCancel(ctx)
	limit := 0
	if w.first || w.guest || w.terminal != "" {
		limit = watchedText
	}
	o := client.NewObserver(client.ObserverOptions{Endpoint: e, ContentLimit: limit, ClientID: "tether-watch-" + strings.ToLower(rand.Text()),
		Info: ahp.Implementation{Name: "tether watch", Version: version.Text()}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = o.Run(ctx) // Next returns the same error
	}()
	defer func() { cancel(); <-ended }()

	v := &viewer{app: a, want: w, observer: o, at: e}
	defer v.close()
	done := a.progress(ctx, "connecting to the host")
	for {
		ev, err := o.Next(ctx)
		done()
		if err != nil {
			return hostError(err)
		}
		if done, err := v.event(ctx, ev); done || err != nil {
			return err
		}
	}
}

// notPaired is the error for a name that is no paired host's.
func notPaired(name string) error {
	return &localapi.Error{Code: localapi.CodeNotPaired, Message: fmt.Sprintf("no host %q is paired", name), Hint: "give a URL, or pair with the host first"}
}

// hostError gives an observer's error a code, so that exit statuses are the same
// everywhere.
func hostError(err error) error {
	var version *ahp.VersionError
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		return &localapi.Error{Code: localapi.CodeRefused, Message: "the host refused the token", Hint: "give a valid token with --token-file"}
	case errors.As(err, &version):
		return &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: err.Error(), Hint: "update this program or the host"}
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return &localapi.Error{Code: localapi.CodeUnreachable, Message: err.Error(), Hint: "check that the host runs and the URL is right"}
	}
	return err
}

// find returns the terminal that ref names. ref is a title or URI, or else a part of one
// that fits only one terminal.
func find(all []ahp.TerminalInfo, ref string) (ahp.TerminalInfo, error) {
	var exact, part []ahp.TerminalInfo
	for _, t := range all {
		switch {
		case t.Resource == ref:
			return t, nil
		case t.Title == ref:
			exact = append(exact, t)
		case strings.Contains(strings.ToLower(t.Title), strings.ToLower(ref)), strings.Contains(t.Resource, ref):
			part = append(part, t)
		}
	}
	found := exact
	if len(found) == 0 {
		found = part
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return ahp.TerminalInfo{}, &localapi.Error{Code: localapi.CodeNoTerminal, Message: fmt.Sprintf("the host has no terminal %q", ref),
			Hint: cmp.Or(listed(all), "the host has no terminals yet; use --wait")}
	}
	return ahp.TerminalInfo{}, &localapi.Error{Code: localapi.CodeAmbiguous, Message: fmt.Sprintf("%q matches %d terminals", ref, len(found)), Hint: listed(found)}
}

// listed returns the names of terminals on one line, or "" if there are none.
func listed(all []ahp.TerminalInfo) string {
	const most = 8
	var names []string
	for i, t := range all {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", display.Printable(t.Title, 40), display.Printable(t.Resource, 80)))
	}
	if len(names) == 0 {
		return ""
	}
	return "terminals: " + strings.Join(names, ", ")
}
