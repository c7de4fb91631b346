package jsonrpc

import (
	"encoding/json"
	"sync/atomic"
)

// A Request is a request or a notification of the other side. A request may be kept and
// replied to later, from any goroutine; a notification is reused for the next one and
// must not be kept.
type Request struct {
	// Method is the name as sent, of any length up to the channel's limit.
	Method string

	// Params is the JSON text of an object or array, or nil. It is valid until Handle
	// returns; copy it to keep it.
	Params []byte

	id      []byte // as sent; nil for a notification
	peer    *Peer
	replied atomic.Bool
}

// IsNotification reports whether the other side expects no reply.
func (r *Request) IsNotification() bool { return r.id == nil }

// Reply queues the result of a request on the control queue and returns at once. result
// is encoded as JSON; a json.RawMessage is sent as it is and must be valid, nil is sent
// as null. If it cannot be encoded or is larger than [Options.MaxMessage], the other side
// gets -32603 and Reply returns why. For a notification it does nothing.
func (r *Request) Reply(result any) error {
	if r.IsNotification() {
		return nil
	}
	value, err := encode(result)
	if err == nil && len(value) > r.peer.opts.MaxMessage-maxID-40 {
		err = ErrTooLarge
	}
	if err != nil {
		if rerr := r.ReplyError(Errorf(CodeInternal, "the result cannot be sent")); rerr != nil {
			return rerr
		}
		return err
	}
	return r.finish(encodeReply(r.id, "result", value))
}

// ReplyError is Reply with an error. An [*Error], also a wrapped one, is sent unchanged;
// any other becomes -32603 without its text, which may be private. err must not be nil.
func (r *Request) ReplyError(err error) error {
	if r.IsNotification() {
		return nil
	}
	return r.finish(encodeReply(r.id, "error", encodeError(wireError(err))))
}

// finish sends the one reply.
func (r *Request) finish(msg []byte) error {
	if r.replied.Swap(true) {
		return ErrReplied
	}
	r.peer.mu.Lock()
	r.peer.requests--
	r.peer.mu.Unlock()
	return r.peer.reply(msg)
}

// replyError sends an error that belongs to no [Request].
func (p *Peer) replyError(id []byte, e *Error) error {
	return p.reply(encodeReply(id, "error", encodeError(e)))
}

// encodeError never fails: broken data is left out.
func encodeError(e *Error) []byte {
	raw, err := json.Marshal(e)
	if err != nil {
		raw, _ = json.Marshal(Error{Code: e.Code, Message: e.Message})
	}
	return raw
}
