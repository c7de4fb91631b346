package localapi

import (
	"context"
	"errors"
	"net/http"

	"tether/platform/ipc"
)

// Code is the kind of an error, for programs.
type Code string

// The codes of errors. Clients treat an unknown code as CodeInternal.
const (
	CodeBadRequest      Code = "bad_request"      // request that is not understood, or has a value out of range
	CodeNotFound        Code = "not_found"        // no such path or method
	CodeForbidden       Code = "forbidden"        // request of a browser, or with a foreign Host header
	CodeUnauthorized    Code = "unauthorized"     // no valid token, on TCP
	CodeTooLarge        Code = "too_large"        // a body beyond MaxBody
	CodeUnsupportedType Code = "unsupported_type" // a body without the content type of JSON
	CodeLimit           Code = "limit"            // the allowed number is reached
	CodeNoTerminal      Code = "no_such_terminal" // no such terminal, or the principal may not see it
	CodeNoToken         Code = "no_such_token"    // the agent has no token
	CodeExists          Code = "exists"           // the thing to be created exists already
	CodeAmbiguous       Code = "ambiguous"        // a name, or the beginning of an id, fits several terminals
	CodeDenied          Code = "denied"           // the principal is not allowed to do this
	CodeExited          Code = "exited"           // the terminal's child has ended, or is being ended
	CodeCannotStart     Code = "cannot_start"     // the command could not be started
	CodeNotPaired       Code = "not_paired"       // there is no such host, or no host at all
	CodePaired          Code = "already_paired"   // a host of that name exists
	CodeInsecure        Code = "insecure_url"     // a credential would travel in clear text
	CodeUnreachable     Code = "host_unreachable" // no connection to the host, or no answer in time
	CodeRefused         Code = "host_refused"     // the host did not accept the credential
	CodeUnsupportedHost Code = "host_unsupported" // the host does not take client-executed terminals
	CodeTimeout         Code = "timed_out"        // the awaited event did not come
	CodeClosing         Code = "shutting_down"    // the daemon ends; another one may follow
	CodeInternal        Code = "internal"         // a bug, or an error of the system
)

// Exit statuses of the command line; docs/CLI.md is the contract. ExitDropped and
// ExitCannotAttach are for commands that attach to a terminal.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotRunning  = 3 // the daemon is not running
	ExitNotPaired   = 4 // no such host is paired, or it has refused the credential
	ExitUnreachable = 5
	ExitDenied      = 6
	ExitNoTerminal  = 7
	ExitTimeout     = 8

	ExitDropped      = 254 // the daemon has ended the attachment
	ExitCannotAttach = 255
)

// outcomes are the HTTP status and the exit status of a code.
type outcomes struct{ http, exit int }

// meaning maps each code to its outcomes. They are defined only here.
var meaning = map[Code]outcomes{
	CodeBadRequest:      {http.StatusBadRequest, ExitUsage},
	CodeNotFound:        {http.StatusNotFound, ExitFailure},
	CodeForbidden:       {http.StatusForbidden, ExitDenied},
	CodeUnauthorized:    {http.StatusUnauthorized, ExitDenied},
	CodeTooLarge:        {http.StatusRequestEntityTooLarge, ExitFailure},
	CodeUnsupportedType: {http.StatusUnsupportedMediaType, ExitFailure},
	CodeLimit:           {http.StatusTooManyRequests, ExitFailure},
	CodeNoTerminal:      {http.StatusNotFound, ExitNoTerminal},
	CodeNoToken:         {http.StatusNotFound, ExitFailure},
	CodeExists:          {http.StatusConflict, ExitFailure},
	CodeAmbiguous:       {http.StatusConflict, ExitNoTerminal},
	CodeDenied:          {http.StatusForbidden, ExitDenied},
	CodeExited:          {http.StatusConflict, ExitFailure},
	CodeCannotStart:     {http.StatusUnprocessableEntity, ExitFailure},
	CodeNotPaired:       {http.StatusNotFound, ExitNotPaired},
	CodePaired:          {http.StatusConflict, ExitFailure},
	CodeInsecure:        {http.StatusUnprocessableEntity, ExitNotPaired},
	CodeUnreachable:     {http.StatusBadGateway, ExitUnreachable},
	CodeRefused:         {http.StatusBadGateway, ExitNotPaired},
	CodeUnsupportedHost: {http.StatusBadGateway, ExitFailure},
	CodeTimeout:         {http.StatusGatewayTimeout, ExitTimeout},
	CodeClosing:         {http.StatusServiceUnavailable, ExitNotRunning},
	CodeInternal:        {http.StatusInternalServerError, ExitFailure},
}

// HTTPStatus returns the HTTP status of an answer with the code.
func (c Code) HTTPStatus() int { return meaning[c].http }

// Error is the answer to a failed request.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`        // what is wrong, in lower case
	Hint    string `json:"hint,omitempty"` // what to do about it
}

func (e *Error) Error() string { return e.Message }

// ExitStatus returns the exit status of a command that ended with err.
func ExitStatus(err error) int {
	var e *Error
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ipc.ErrNotRunning):
		return ExitNotRunning
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	case errors.As(err, &e):
		if m, ok := meaning[e.Code]; ok {
			return m.exit
		}
	}
	return ExitFailure
}
