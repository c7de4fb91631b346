package acp

import (
	"context"
	"encoding/json"
	"errors"
)

// code is a JSON-RPC error code of ACP (schema v1, ErrorCode).
type code int

const (
	codeInvalidParams code = -32602
	codeInternal      code = -32603
	codeCancelled     code = -32800 // by $/cancel_request, or released meanwhile
	codeNotFound      code = -32002 // no such terminal, or not one of this session
)

// rpcError is the answer in place of a result.
type rpcError struct {
	Code    code       `json:"code"`
	Message string     `json:"message"`
	Data    *errorData `json:"data,omitempty"`
}

type errorData struct {
	Reason string `json:"reason"` // one word for programs
	Hint   string `json:"hint,omitempty"`
}

// ErrStopped is returned by Stream.Next when the serving side has ended in order and did not lose the terminal.
var ErrStopped = errors.New("the daemon has stopped")

// errReleased answers requests that wait for a terminal that was released and could not be ended.
var errReleased = errors.New("the terminal was released")

// kinds is the one place where a failure gets its code.
var kinds = map[FailureKind]struct {
	code   code
	reason string
}{
	Internal:    {codeInternal, "internal"},
	Invalid:     {codeInvalidParams, "invalid"},
	CannotStart: {codeInvalidParams, "cannot_start"},
	Gone:        {codeNotFound, "gone"},
	Denied:      {codeInternal, "denied"},
}

// rpcErrorFor gives any error its code.
func rpcErrorFor(err error) *rpcError {
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		k := kinds[failure.Kind]
		return &rpcError{k.code, failure.Message, &errorData{k.reason, failure.Hint}}
	case errors.Is(err, context.Canceled), errors.Is(err, errReleased):
		return &rpcError{Code: codeCancelled, Message: "cancelled"}
	}
	return &rpcError{codeInternal, err.Error(), &errorData{Reason: "internal"}}
}

// encode returns the form of v, which is one of ours and always has one.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
