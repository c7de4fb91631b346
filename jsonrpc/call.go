package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"

	"tether/internal/jsonspan"
)

// Call sends a request on the control queue and waits for its response, until ctx is done
// or the peer has ended ([ErrClosed]). params is encoded as for [Peer.Notify]; the result
// is decoded into result unless that is nil, and a *json.RawMessage gets an unchanged
// copy. An error reply of the other side is an [*Error] inside the returned error.
//
// When ctx is done the request is not withdrawn, because JSON-RPC has no message for
// that: it may still be carried out, and its response is ignored.
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	return p.call(ctx, &p.control, method, params, result)
}

// CallBulk is like [Peer.Call] but sends the request behind the messages queued by
// [Peer.SendRaw]: once the response arrives, the other side has read all of them.
func (p *Peer) CallBulk(ctx context.Context, method string, params, result any) error {
	return p.call(ctx, &p.bulk, method, params, result)
}

func (p *Peer) call(ctx context.Context, q *queue, method string, params, result any) error {
	if err := p.roundTrip(ctx, q, method, params, result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

func (p *Peer) roundTrip(ctx context.Context, q *queue, method string, params, result any) error {
	// One slot: the read goroutine sends at most one response and must not wait for a
	// caller that gave up. Nobody closes it.
	ready := make(chan response, 1)
	p.mu.Lock()
	p.lastID++
	id := p.lastID
	p.calls[id] = ready
	p.mu.Unlock()
	defer p.forgetCall(id)

	msg, err := encodeRequest(id, method, params)
	if err != nil {
		return err
	}
	if err := p.enqueue(ctx, q, msg); err != nil {
		return err
	}
	select {
	case r := <-ready:
		return r.decode(result)
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
	}
	select {
	case r := <-ready: // it came just before the end
		return r.decode(result)
	default:
		return p.closed()
	}
}

func (p *Peer) forgetCall(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

func (r response) decode(result any) error {
	if r.err != nil || result == nil {
		return r.err
	}
	if raw, ok := result.(*json.RawMessage); ok { // whoever decodes it checks it
		*raw = r.result
		return nil
	}
	if err := jsonspan.Unmarshal(r.result, result); err != nil {
		return fmt.Errorf("decode result: %w", err)
	}
	return nil
}
