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
)

// Errors of OpenShare, beside ErrUnreachable.
var (
	// ErrShare: the host does not take the link. It does not say why.
	ErrShare = errors.New("this link does not work: it was ended, has expired, was already opened elsewhere, or was not copied whole")
	// ErrShareLimit: the host takes no links from this address for a while.
	ErrShareLimit = errors.New("the host has seen too many wrong links from this address; try again in a minute")
	// ErrNoShares: who answers is not a host that lets guests in.
	ErrNoShares = errors.New("there is no host for this link")
)

const (
	openTimeout = 20 * time.Second
	maxOpened   = 64 << 10 // bytes of the answer
)

// OpenShare opens a guest's link as a program, and returns where the guest watches the one terminal, under which URI that was lent, and when the
// link ends. It uses up a link for one browser. pin is of the host's certificate. It blocks until the host has answered, 20 s at most, or ctx ends.
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
	err = json.NewDecoder(io.LimitReader(answer.Body, maxOpened)).Decode(&opened)
	if err != nil || opened.Token == "" || ahp.CheckURI(opened.Terminal) != nil {
		return e, "", until, ErrNoShares
	}
	lasts := time.Duration(min(max(opened.ExpiresMs, 0), ahp.MaxShareTime.Milliseconds())) * time.Millisecond
	e.Header = http.Header{"Authorization": {"Bearer " + opened.Token}} // not in the URL, which others on the way may keep
	return e, opened.Terminal, time.Now().Add(lasts), nil
}

// guestURL is where the guests of a page connect.
func guestURL(page url.URL) string {
	page.Scheme = map[string]string{"https": "wss", "http": "ws"}[page.Scheme]
	return page.JoinPath("ahp").String()
}
