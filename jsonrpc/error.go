package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrClosed is returned by every operation on a [Peer] that has ended, and by calls that
// were waiting when it did. It is wrapped together with the cause if that is not a Close
// by this side.
var ErrClosed = errors.New("jsonrpc: connection closed")

// ErrTooLarge is returned for an outbound message larger than [Options.MaxMessage]; no
// part of it was sent.
var ErrTooLarge = errors.New("jsonrpc: message too large")

// ErrTooMany is why a connection ended that brought a message with more values than
// [Options.MaxValues].
var ErrTooMany = errors.New("jsonrpc: received a message with too many values")

// ErrReplied is returned by the second reply to one [Request].
var ErrReplied = errors.New("jsonrpc: request already replied to")

// A Code is the kind of error that a reply carries. Protocols on top define their own
// codes; these come from section 5.1 of the JSON-RPC 2.0 specification.
type Code int64

const (
	CodeParse          Code = -32700 // not JSON
	CodeInvalidRequest Code = -32600 // JSON, but no request; also a batch
	CodeMethodNotFound Code = -32601 // unknown method
	CodeInvalidParams  Code = -32602 // parameters of the wrong shape or value
	CodeInternal       Code = -32603 // the receiver's own fault

	// CodeOverloaded refuses a request beyond [Options.MaxRequests]. It is ours, from the
	// range reserved for implementations (-32000 to -32099).
	CodeOverloaded Code = -32000
)

// String returns the name of a code defined by the specification, or its number.
func (c Code) String() string {
	switch c {
	case CodeParse:
		return "parse error"
	case CodeInvalidRequest:
		return "invalid request"
	case CodeMethodNotFound:
		return "method not found"
	case CodeInvalidParams:
		return "invalid params"
	case CodeInternal:
		return "internal error"
	case CodeOverloaded:
		return "too many requests"
	}
	return fmt.Sprintf("code %d", int64(c))
}

// An Error is the content of a reply that has no result. [Peer.Call] returns the other
// side's (wrapped), [Request.ReplyError] sends one. Message comes from the other side and
// may hold any text, at most 1 KiB; treat it as data when you show it.
type Error struct {
	Code    Code            `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // one JSON value, or nil
}

// Error returns the message with the code's name or number.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code.String()
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Code)
}

// Errorf returns an [Error] with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// MethodNotFound returns the error for a method that the handler does not know. The name,
// which came from the other side, is shortened.
func MethodNotFound(method string) *Error {
	const most = 80 // bytes; longer than any method of AHP, MCP and ACP
	return Errorf(CodeMethodNotFound, "unknown method %.*q", most, method)
}

// wireError maps a handler's error to the error that is sent. The text of an error
// without a code is not sent, because it may name paths or worse.
func wireError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternal, Message: CodeInternal.String()}
}
