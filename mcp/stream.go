package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/events"
	"tether/internal/jsonspan"
)

// go-sdk (v1.8.0) does not tell a handler the id of its request, and cannot send
// notifications of methods that it does not know. So the transport that receives an
// events/stream adds a carrier, which has the id and can send to the client, and puts the
// carrier's name into the request's _meta. The handler finds the carrier by that name.

const (
	carrierKey = "tether/stream"
	// subscriptionKey is the key of the subscription's id in _meta of each message of a
	// stream.
	subscriptionKey = "io.modelcontextprotocol/subscriptionId"
	// maxPeeked bounds the HTTP requests that carry examines, in bytes. A longer
	// events/stream is refused.
	maxPeeked = 64 << 10
)

var errStreamOver = errors.New("the request of this stream has ended")

// carrier sends the messages of one stream to its client.
type carrier struct {
	id   json.RawMessage            // of the events/stream request
	send func(message []byte) error // blocks while the client does not read
	ctx  context.Context            // ends with the HTTP request; nil for a stream over lines
}

// registry holds what is in use, by names that cannot be guessed.
type registry[T any] struct {
	mu  sync.Mutex
	all map[string]T
}

// add adds one until forget is called.
func (c *registry[T]) add(one T) (name string, forget func()) {
	name = rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]T{}
	}
	c.all[name] = one
	return name, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, name)
	}
}

// any reports whether there is one.
func (c *registry[T]) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all) > 0
}

// find returns the one with that name, or nothing.
func (c *registry[T]) find(name string) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[name]
}

// named returns the params of a request with a carrier's name in their _meta.
func named(params json.RawMessage, name string) (json.RawMessage, error) {
	members, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(params) > 0 && string(params) != "null" {
		if err := jsonspan.Unmarshal(params, &members); err != nil {
			return nil, err
		}
	}
	if m := members["_meta"]; len(m) > 0 && string(m) != "null" {
		if err := jsonspan.Unmarshal(m, &meta); err != nil {
			return nil, err
		}
	}
	meta[carrierKey], _ = json.Marshal(name)
	members["_meta"], _ = json.Marshal(meta)
	return json.Marshal(members)
}

// stream handles events/stream. It blocks until the client ends the request, the
// subscription ends or the server is closed.
func (s *Server) stream(ctx context.Context, ss *sdk.ServerSession, p *eventParams) (answer *endResult, err error) {
	defer s.tools.Survive(methodStream, func() {
		answer, err = nil, errors.New("events/stream ran into a bug in tether; its log has the details")
	})
	r, err := p.request()
	if err != nil {
		return nil, eventError(ss, metaOf(p), err)
	}
	name, _ := metaOf(p)[carrierKey].(string)
	to := s.carriers.find(name)
	if to == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "this request is too long for a stream"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if to.ctx != nil {
		defer context.AfterFunc(to.ctx, cancel)()
	}
	out := &streamOut{to: to}
	err = s.opts.Events.Stream(ctx, r, out)
	var why *events.Error
	switch {
	case s.ctx.Err() != nil:
		// The subscription has not ended: the client, or the program that connects it,
		// continues at the next server.
		return nil, errors.New("the server is shutting down")
	case errors.As(err, &why) && !out.begun:
		return nil, eventError(ss, metaOf(p), err)
	case why != nil:
		_ = out.tell("terminated", map[string]any{"error": wireError(why, declares(ss, p.Meta))})
	case err != nil && !out.begun:
		return nil, err
	}
	end := &endResult{ResultType: complete}
	end.Meta = sdk.Meta{subscriptionKey: to.id}
	return end, nil
}

// streamOut writes a stream's events as notifications. It implements events.Out.
type streamOut struct {
	to    *carrier
	begun bool // Active was called
	// The last heartbeat and its cursor. The next heartbeat is mostly the same.
	cursor string
	beat   []byte
}

func (o *streamOut) tell(kind string, params map[string]any) error {
	message, err := o.message(kind, params)
	if err != nil {
		return err
	}
	return o.to.send(message)
}

func (o *streamOut) message(kind string, params any) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/events/" + kind, "params": params})
}

func (o *streamOut) meta(more map[string]any) map[string]any {
	meta := map[string]any{subscriptionKey: o.to.id}
	maps.Copy(meta, more)
	return meta
}

// Active implements events.Out.
func (o *streamOut) Active(cursor string, truncated bool) error {
	o.begun = true
	return o.tell("active", map[string]any{"cursor": cursor, "truncated": truncated, "_meta": o.meta(nil)})
}

// Event implements events.Out.
func (o *streamOut) Event(ev events.Event) error {
	ev.Meta = o.meta(ev.Meta)
	message, err := o.message("event", ev)
	if err != nil {
		return err
	}
	return o.to.send(message)
}

// Heartbeat implements events.Out.
func (o *streamOut) Heartbeat(cursor string) error {
	if o.beat == nil || o.cursor != cursor {
		message, err := o.message("heartbeat", map[string]any{"cursor": cursor, "_meta": o.meta(nil)})
		if err != nil {
			return err
		}
		o.beat, o.cursor = message, cursor
	}
	return o.to.send(o.beat)
}

// carry adds a carrier if the message is an events/stream, and returns the message with
// the carrier's name. forget is to be called after the request was served.
func (s *Server) carry(out *answer, ctx context.Context, body []byte) (message []byte, forget func()) {
	if s.opts.Events == nil || len(body) > maxPeeked || !bytes.Contains(body, []byte(methodStream)) {
		return body, func() {}
	}
	var m map[string]json.RawMessage
	if jsonspan.Unmarshal(body, &m) != nil || string(m["method"]) != `"`+methodStream+`"` || len(m["id"]) == 0 {
		return body, func() {}
	}
	name, forget := s.carriers.add(&carrier{id: m["id"], send: out.send, ctx: ctx})
	params, err := named(m["params"], name)
	if err != nil {
		forget()
		return body, func() {}
	}
	m["params"] = params
	message, _ = json.Marshal(m)
	return message, forget
}
