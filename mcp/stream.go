package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/events"
)

// go-sdk (v1.8.0) tells a handler neither the id of its request nor sends notifications of methods that it does not know. So the door that
// brings an events/stream puts a name of its own into the request's _meta, under which the handler finds the id and a way to the client.

const (
	carrierKey = "tether/stream"
	// subscriptionKey is the key in _meta of all that a stream tells.
	subscriptionKey = "io.modelcontextprotocol/subscriptionId"
	// maxPeeked bounds the requests over HTTP that are looked at, in bytes: a stream's has no more.
	maxPeeked = 64 << 10
	// frameTimeout is how long a client over HTTP may take to read one frame.
	frameTimeout = 30 * time.Second
)

var errStreamOver = errors.New("the request of this stream has ended")

// carrier is the way to the client for one stream.
type carrier struct {
	id   json.RawMessage // of the request
	send func(message []byte) error
	ctx  context.Context // ends with the request, where that is known; else nil
}

// carriers are those of the running requests.
type carriers struct {
	mu  sync.Mutex
	all map[string]*carrier
}

// add returns a name that nobody guesses.
func (c *carriers) add(one *carrier) (name string, forget func()) {
	name = rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]*carrier{}
	}
	c.all[name] = one
	return name, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, name)
	}
}

// any reports whether there is a stream.
func (c *carriers) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all) > 0
}

func (c *carriers) find(name string) *carrier {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[name]
}

// named puts a carrier's name into the params of a request.
func named(params json.RawMessage, name string) (json.RawMessage, error) {
	members, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(params) > 0 && string(params) != "null" {
		if err := json.Unmarshal(params, &members); err != nil {
			return nil, err
		}
	}
	if m := members["_meta"]; len(m) > 0 && string(m) != "null" {
		if err := json.Unmarshal(m, &meta); err != nil {
			return nil, err
		}
	}
	meta[carrierKey], _ = json.Marshal(name)
	members["_meta"], _ = json.Marshal(meta)
	return json.Marshal(members)
}

// stream serves events/stream: it blocks until the client ends it or the subscription is over.
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
		// Not an end of the subscription: the client, or a pipe in front of it, asks the next server.
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
	begun bool
	// The last heartbeat, which is mostly the next one as well.
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
	for k, v := range more {
		meta[k] = v
	}
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

// carry makes way for a stream that a request over HTTP may ask for.
func (s *Server) carry(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, func()) {
	if s.opts.Events == nil || r.Method != http.MethodPost || r.ContentLength < 0 || r.ContentLength > maxPeeked {
		return w, func() {}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPeeked))
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	if err != nil || !bytes.Contains(body, []byte(methodStream)) {
		return w, func() {}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || string(m["method"]) != `"`+methodStream+`"` || len(m["id"]) == 0 {
		return w, func() {}
	}
	out := &frames{ResponseWriter: w, control: http.NewResponseController(w)}
	name, forget := s.carriers.add(&carrier{id: m["id"], send: out.send, ctx: r.Context()})
	if m["params"], err = named(m["params"], name); err != nil {
		forget()
		return w, func() {}
	}
	body, _ = json.Marshal(m)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return out, func() { forget(); out.end() }
}

// frames is an answer over HTTP into which a stream writes frames between the SDK's. That is sound since the SDK (v1.8.0) has sent the
// headers of an event stream before it passes a request on, and writes each frame with one Write; TestStreamOverHTTP would notice a change.
type frames struct {
	http.ResponseWriter
	control *http.ResponseController

	mu    sync.Mutex // held while a frame is written
	ended bool
}

// Header implements http.ResponseWriter. It is locked since net/http's changes the header that its Write reads, and a stream may write
// until end.
func (f *frames) Header() http.Header {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ResponseWriter.Header()
}

// Write implements http.ResponseWriter.
func (f *frames) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (f *frames) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.control.Flush()
}

// Unwrap is for http.ResponseController.
func (f *frames) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *frames) send(message []byte) error {
	frame := append(append(append(make([]byte, 0, len(message)+24), "event: message\ndata: "...), message...), '\n', '\n')
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return errStreamOver
	}
	_ = f.control.SetWriteDeadline(time.Now().Add(frameTimeout)) // not every writer has one
	if _, err := f.ResponseWriter.Write(frame); err != nil {
		return err
	}
	return f.control.Flush()
}

func (f *frames) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	_ = f.control.SetWriteDeadline(time.Time{})
}
