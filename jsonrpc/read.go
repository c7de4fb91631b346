package jsonrpc

import (
	"context"
	"errors"
	"strings"

	"tether/internal/jsonspan"
)

const (
	// maxMethods bounds the names remembered, maxMethod their length in bytes. AHP has
	// about forty, none longer than 40.
	maxMethods = 128
	maxMethod  = 128
)

// readLoop receives messages until the channel ends and returns its error. No content of
// a message ends it.
func (p *Peer) readLoop(ctx context.Context) error {
	// Closing the channel ends a blocked Recv; see Channel.
	uncancelled := context.WithoutCancel(ctx)
	for {
		if err := p.awaitReplies(ctx); err != nil {
			return err
		}
		data, err := p.ch.Recv(uncancelled)
		if err != nil {
			return err
		}
		if p.binary != nil && p.binary.Binary() {
			err = p.beside.received(p, data)
		} else {
			err = p.receive(ctx, data)
		}
		if err != nil {
			return err
		}
	}
}

// awaitReplies blocks while the replies in the control queue exceed its bound. So nothing
// more is read from a peer that sends requests but does not read the replies.
func (p *Peer) awaitReplies(ctx context.Context) error {
	p.mu.Lock()
	if p.control.fits(0) {
		p.mu.Unlock()
		return nil
	}
	w := &waiter{ready: make(chan struct{})} // without a message
	p.control.waiters = append(p.control.waiters, w)
	p.mu.Unlock()
	return p.wait(ctx, &p.control, w)
}

// receive handles one message. data is valid until it returns. An error ends the
// connection.
func (p *Peer) receive(ctx context.Context, data []byte) error {
	if p.opts.Shortcut != nil {
		if done, err := p.opts.Shortcut(ctx, data); done || err != nil {
			return err
		}
	}
	m, err := split(data, p.opts.MaxValues)
	switch {
	case errors.Is(err, jsonspan.ErrTooMany):
		return ErrTooMany
	case errors.Is(err, jsonspan.ErrNotObject):
		p.refuse(nil, Errorf(CodeInvalidRequest, "a message must be one object; batches are not supported"))
	case err != nil:
		p.refuse(nil, Errorf(CodeParse, "%s", strings.TrimPrefix(err.Error(), "jsonspan: ")))
	case m.isResponse():
		p.respond(&m)
	case p.opts.Taken != "" && m.id == nil && p.isTaken(&m):
		return p.beside.confirmed(p, m.params)
	default:
		p.request(ctx, &m)
	}
	return nil
}

// isTaken reports whether m is the notification of [Options.Taken].
func (p *Peer) isTaken(m *message) bool {
	n := len(m.method)
	return n > 2 && string(m.method[1:n-1]) == p.opts.Taken && m.checkRequest() == nil
}

// refuse answers a message that is not a valid request.
func (p *Peer) refuse(id []byte, e *Error) {
	_ = p.replyError(id, e) // fails only with the peer
}

// respond delivers a response to the call that waits for it.
func (p *Peer) respond(m *message) {
	id, err := jsonspan.Int(m.id)
	p.mu.Lock()
	call, ok := p.calls[id]
	if err == nil && ok {
		delete(p.calls, id)
	}
	p.mu.Unlock()
	if err == nil && ok { // else its call has given up, it is a duplicate, or its id is wrong
		call <- m.response()
	}
}

// request checks a request or notification and calls the handler.
func (p *Peer) request(ctx context.Context, m *message) {
	if e := m.checkRequest(); e != nil {
		if e.Code == CodeInvalidParams && m.id == nil {
			return // a notification is never answered
		}
		p.refuse(m.replyID(), e)
		return
	}
	params := m.params
	if isNull(params) {
		params = nil
	}
	method := p.methodName(m.method)
	if m.id == nil {
		p.note = Request{Method: method, Params: params}
		p.opts.Handler.Handle(ctx, &p.note)
		return
	}
	p.mu.Lock()
	over := p.requests >= p.opts.MaxRequests
	if !over {
		p.requests++
	}
	p.mu.Unlock()
	if over {
		_ = p.replyError(m.id, Errorf(CodeOverloaded, "more than %d requests wait for a reply", p.opts.MaxRequests))
		return
	}
	p.opts.Handler.Handle(ctx, &Request{
		Method: method,
		Params: params,
		id:     append([]byte(nil), m.id...),
		peer:   p,
	})
}

// methodName decodes a method's name, without allocating for one seen before.
func (p *Peer) methodName(quoted []byte) string {
	name, err := jsonspan.AppendUnquote(p.scratch[:0], quoted)
	if err != nil {
		return "" // impossible: the message was validated
	}
	if len(name) > maxMethod {
		return string(name)
	}
	p.scratch = name
	if known, ok := p.methods[string(name)]; ok {
		return known
	}
	s := string(name)
	if len(p.methods) < maxMethods {
		p.methods[s] = s
	}
	return s
}
