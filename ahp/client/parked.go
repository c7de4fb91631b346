package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"tether/ahp"
	"tether/jsonrpc"
)

// Parked asks the host which terminals it keeps, of those that this client may see, while their machines are away: they are in no
// catalogue. A host that does not know the question has none. It fails without a connection.
func (o *Observer) Parked(ctx context.Context) (ahp.ParkedResult, error) {
	o.mu.Lock()
	conn := o.conn
	o.mu.Unlock()
	if conn == nil {
		return ahp.ParkedResult{}, ErrUnreachable
	}
	var r ahp.ParkedResult
	err := conn.peer.Call(ctx, ahp.MethodParked, struct{}{}, &r)
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code == jsonrpc.CodeMethodNotFound {
		return ahp.ParkedResult{}, nil
	}
	if err == nil {
		err = r.Validate()
	}
	return r, err
}

// ErrNotKept is returned by ParkedText when the host does not have the terminal, any more or at all.
var ErrNotKept = errors.New("the host keeps no text of the terminal any more")

// ParkedText gets a terminal that Parked has named, by its ID there, from the host's own interface for people, since AHP does not have it.
// It asks each URL of the endpoint, because only one node of a host keeps it, and blocks for 20 s at most. It returns ErrUnauthorized where
// the token is not that of somebody who may see the host's page, ErrUnreachable, and ErrNotKept.
func (e Endpoint) ParkedText(ctx context.Context, id string) (s ahp.TerminalState, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	urls := e.urls()
	for i, at := range urls {
		one, wrong := e.parkedTextWithin(ctx, at, id, len(urls)-i)
		if wrong == nil {
			return one, nil
		}
		if err == nil || errors.Is(err, ErrNotKept) { // which is certain only if all say so
			err = wrong
		}
	}
	return s, err
}

func (e Endpoint) parkedTextWithin(ctx context.Context, at, id string, left int) (ahp.TerminalState, error) {
	ctx, cancel := withPart(ctx, left)
	defer cancel()
	return e.parkedText(ctx, at, id)
}

func (e Endpoint) parkedText(ctx context.Context, at, id string) (s ahp.TerminalState, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return s, ErrUnreachable
	}
	e.URL = at
	if e.Credential != nil {
		if e.Token, err = e.Credential(ctx, at); err != nil {
			return s, err
		}
	}
	own := url.URL{Scheme: map[string]string{"wss": "https", "ws": "http"}[u.Scheme], Host: u.Host, Path: "/terminals/"}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, own.JoinPath(url.PathEscape(id), "state").String(), nil)
	if err != nil {
		return s, ErrUnreachable
	}
	if e.Token != "" {
		r.Header.Set("Authorization", "Bearer "+e.Token)
	}
	client := e.http()
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return s, ErrUnauthorized
	case http.StatusNotFound:
		return s, ErrNotKept
	default:
		return s, fmt.Errorf("the host answers %s", answer.Status)
	}
	var all ahp.Snapshot
	if err = json.NewDecoder(io.LimitReader(answer.Body, DefaultReadLimit)).Decode(&all); err == nil {
		err = json.Unmarshal(all.State, &s)
	}
	if err != nil {
		return s, fmt.Errorf("the host's answer: %w", err)
	}
	return s, nil
}
