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
	codeCancelled     code = -32800 // by $/cancel_request, or because the terminal was released
	codeNotFound      code = -32002 // no such terminal in this session
)

// rpcError is the error object of an answer.
type rpcError struct {
	Code    code       `json:"code"`
	Message string     `json:"message"`
	Data    *errorData `json:"data,omitempty"`
}

type errorData struct {
	Reason string `json:"reason"` // one word for programs
	Hint   string `json:"hint,omitempty"`
}

// errReleased answers requests that wait for the exit of a terminal that was released but
// could not be killed.
var errReleased = errors.New("the terminal was released")

// kinds maps each kind of failure to its code. No other place does.
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

// rpcErrorFor returns the error object for err.
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

// encode returns v as JSON. v must be of a type that can always be encoded.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
