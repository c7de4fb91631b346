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

// Parked asks the host for the parked terminals that this client may see. They are not in
// the catalogue. A host that does not know the method has none. Without a connection it
// returns an error.
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

// ErrNotKept is returned by ParkedText when the host has no such terminal, or no longer
// keeps its text.
var ErrNotKept = errors.New("the host keeps no text of the terminal any more")

// ParkedText returns a parked terminal; id is its Parked.ID. It asks the host's own
// interface for people, because AHP does not have parked terminals. It asks each URL of
// the endpoint, because only one node of a host keeps the text, and blocks for at most 20
// s. It returns ErrNotKept, ErrUnreachable, or ErrUnauthorized if the token's person may
// not see the host's page.
func (e Endpoint) ParkedText(ctx context.Context, id string) (s ahp.TerminalState, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	urls := e.urls()
	for i, at := range urls {
		one, wrong := e.parkedTextWithin(ctx, at, id, len(urls)-i)
		if wrong == nil {
			return one, nil
		}
		if err == nil || errors.Is(err, ErrNotKept) { // certain only if every node says so
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
	if err = json.NewDecoder(io.LimitReader(answer.Body, DefaultReadLimit)).Decode(&all); err == nil { // it is output: see ahp.DecodeAction
		err = json.Unmarshal(all.State, &s)
	}
	if err != nil {
		return s, fmt.Errorf("the host's answer: %w", err)
	}
	return s, nil
}
