package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tether/ahp"
	"tether/internal/jsonspan"
)

// Errors of OpenShare, beside ErrUnreachable.
var (
	// ErrShare means that the host refuses the link. It does not say why.
	ErrShare = errors.New("this link does not work: it was ended, has expired, was already opened elsewhere, or was not copied whole")
	// ErrShareLimit means that the host takes no links from this address for a while.
	ErrShareLimit = errors.New("the host has seen too many wrong links from this address; try again in a minute")
	// ErrNoShares means that the address does not belong to a host that takes guests.
	ErrNoShares = errors.New("there is no host for this link")
)

const (
	openTimeout = 20 * time.Second
	maxOpened   = 64 << 10 // bytes of the answer
)

// OpenShare opens a guest's link as a browser would. It returns the endpoint at which the
// guest watches, the URI of the one terminal, and when the link ends. A link that is good
// for one browser is used up. pin is for the host's certificate. It blocks until the host
// answers, for at most 20 s, or ctx ends.
func OpenShare(ctx context.Context, link ahp.ShareLink, pin Pin) (e Endpoint, terminal string, until time.Time, err error) {
	page, err := url.Parse(strings.TrimSuffix(link.URL, "#"))
	if err != nil {
		return e, "", until, ErrNoShares
	}
	e = Endpoint{Pin: pin, URL: guestURL(*page)}
	body, err := json.Marshal(map[string]string{"id": link.ID, "secret": link.SecretText()})
	if err != nil {
		return e, "", until, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, page.JoinPath("open").String(), bytes.NewReader(body))
	if err != nil {
		return e, "", until, ErrNoShares
	}
	r.Header.Set("Content-Type", "application/json")
	client := e.http()
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return e, "", until, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden:
		return e, "", until, ErrShare
	case http.StatusTooManyRequests:
		return e, "", until, ErrShareLimit
	default:
		return e, "", until, ErrNoShares
	}
	var opened struct {
		Terminal, Token string
		ExpiresMs       int64
	}
	err = jsonspan.Decode(io.LimitReader(answer.Body, maxOpened), &opened)
	if err != nil || opened.Token == "" || ahp.CheckURI(opened.Terminal) != nil {
		return e, "", until, ErrNoShares
	}
	lasts := time.Duration(min(max(opened.ExpiresMs, 0), ahp.MaxShareTime.Milliseconds())) * time.Millisecond
	e.Header = http.Header{"Authorization": {"Bearer " + opened.Token}} // not in the URL, which proxies may log
	return e, opened.Terminal, time.Now().Add(lasts), nil
}

// guestURL returns the URL at which guests of a page connect.
func guestURL(page url.URL) string {
	page.Scheme = map[string]string{"https": "wss", "http": "ws"}[page.Scheme]
	return page.JoinPath("ahp").String()
}
