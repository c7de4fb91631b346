package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/jsonspan"
)

// observer is a connection to the host that decodes the text of one terminal, as a viewer
// would, and passes it to show.
type observer struct {
	conn *client.Conn
	uri  string
	show func(p []byte) // called from one goroutine at a time; p is valid until it returns

	mu    sync.Mutex
	held  []ahp.EnvelopeView // messages that arrived before the snapshot
	began bool
	from  int64 // serverSeq of the snapshot
	buf   []byte
	err   error
	ended chan struct{} // closed when the terminal has exited, or at the first error
	end   sync.Once
}

// observe follows the terminal uri from its beginning until close.
func observe(ctx context.Context, e client.Endpoint, uri string, show func(p []byte)) (*observer, error) {
	o := &observer{uri: uri, show: show, ended: make(chan struct{})}
	conn, err := client.Connect(ctx, e, client.Options{
		ClientID: "bench-" + fmt.Sprintf("%p", o), OnEnvelope: o.envelope, OnInvalid: o.fail,
	})
	if err != nil {
		return nil, err
	}
	o.conn = conn
	r, err := conn.Subscribe(ctx, uri)
	if err == nil && r.Snapshot == nil {
		err = errors.New("no snapshot")
	}
	var state ahp.TerminalState
	if err == nil {
		err = json.Unmarshal(r.Snapshot.State, &state)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("subscribe to %s: %w", uri, err)
	}
	o.begin(r.Snapshot.FromSeq, state)
	return o, nil
}

func (o *observer) close() { o.conn.Close() }

// begin shows the snapshot and the held messages.
func (o *observer) begin(from int64, state ahp.TerminalState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, part := range state.Content {
		o.show([]byte(part.Text()))
	}
	o.began, o.from = true, from
	for _, v := range o.held {
		o.takeLocked(v)
	}
	o.held = nil
}

// envelope is called on the connection's read goroutine.
func (o *observer) envelope(v ahp.EnvelopeView) {
	if v.Channel != o.uri {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.began {
		o.takeLocked(v)
		return
	}
	v.Data = slices.Clone(v.Data)
	o.held = append(o.held, v)
}

func (o *observer) takeLocked(v ahp.EnvelopeView) {
	if v.ServerSeq <= o.from {
		return
	}
	var err error
	switch v.Kind {
	case ahp.ActionTerminalData:
		if o.buf, err = jsonspan.AppendUnquote(o.buf[:0], v.Data); err == nil {
			o.show(o.buf)
		}
	case ahp.ActionTerminalCleared:
		err = errors.New("the host skipped output for this observer")
	case ahp.ActionTerminalExited:
		o.end.Do(func() { close(o.ended) })
	}
	if err != nil {
		o.failLocked(err)
	}
}

func (o *observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failLocked(err)
}

func (o *observer) failLocked(err error) {
	if o.err == nil {
		o.err = err
	}
	o.end.Do(func() { close(o.ended) })
}

// problem is the first error, if any.
func (o *observer) problem() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
