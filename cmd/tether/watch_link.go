package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/ahp"
	"tether/ahp/client"
	"tether/cmd/tether/internal/display"
	"tether/platform/dirs"
	"tether/platform/tty"
)

// watchLink watches the terminal of a guest's link. It reads the link from standard
// input, because other users could read a command line.
func (a *app) watchLink(c *cobra.Command, args []string, w watching) error {
	for _, flag := range []string{"list", "json", "wait", "first", "token-file", "without-token"} {
		if c.Flags().Changed(flag) {
			return usage(c, "--%s cannot be combined with a guest's link", flag)
		}
	}
	if len(args) > 1 {
		return usage(c, "unexpected argument %q: a guest's link shows one terminal", args[1])
	}
	link, err := a.readLink(c)
	if err != nil {
		return err
	}
	pin, err := guestPin(link)
	if err != nil {
		return err
	}
	done := a.progress(c.Context(), "connecting to the host")
	e, _, until, err := client.OpenShare(c.Context(), link, pin)
	done()
	if err != nil {
		return linkError(err)
	}
	a.notice("the link works until %s, unless it is ended before", display.Clock(until))
	w.guest = true
	return linkError(a.watch(c.Context(), e, w))
}

// readLink reads a link from standard input. What a person types is not echoed.
func (a *app) readLink(c *cobra.Command) (link ahp.ShareLink, err error) {
	text := ""
	if tty.Is(a.stdin) {
		fmt.Fprint(a.stderr, "link: ")
		text, err = tty.ReadSecret(c.Context(), a.stdin)
		fmt.Fprintln(a.stderr)
	} else {
		text, err = readLine(c.Context(), a.stdin)
	}
	if err != nil {
		return link, fmt.Errorf("read the link from standard input: %w", err)
	}
	if link, err = ahp.ParseShareLink(strings.TrimSpace(text)); err != nil {
		return link, &localapi.Error{Code: localapi.CodeBadRequest, Message: err.Error(), Hint: "tether share prints such links"}
	}
	return link, nil
}

// guestPin returns the pin of the host's certificate if this machine is paired with the
// host. It returns an error if the link's secret would cross a network in clear text.
func guestPin(link ahp.ShareLink) (client.Pin, error) {
	page, err := url.Parse(link.URL)
	if err != nil {
		return client.Pin{}, ahp.ErrShareLink
	}
	page.Fragment, page.Path = "", strings.TrimSuffix(page.Path, ahp.SharePath)
	u, err := hosts.URL(page.String())
	if err != nil {
		return client.Pin{}, err
	}
	d, err := dirs.Get()
	if err != nil {
		return client.Pin{}, err
	}
	e, _, err := hosts.Endpoint(d, u)
	return e.Pin, err
}

// linkError returns a guest's error with a code and a text for the person.
func linkError(err error) error {
	var told *localapi.Error
	switch {
	case errors.Is(err, client.ErrShare), errors.Is(err, client.ErrShareLimit):
		return &localapi.Error{Code: localapi.CodeRefused, Message: err.Error(), Hint: "ask whoever gave you the link for another one"}
	case errors.Is(err, client.ErrNoShares):
		return &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: err.Error(), Hint: "check that the link was copied whole"}
	case errors.As(err, &told) && told.Code == localapi.CodeRefused: // the link was valid when it was opened, but the host does not accept it any more
		return &localapi.Error{Code: localapi.CodeRefused, Message: "the link was ended, or has expired"}
	case err == nil, errors.As(err, &told), errors.Is(err, context.Canceled):
		return err
	}
	return hostError(err)
}
