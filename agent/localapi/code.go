package localapi

import (
	"context"
	"errors"
	"net/http"

	"tether/platform/ipc"
)

// Code is the kind of an error, for programs.
type Code string

// The codes of errors. Clients treat one they do not know as CodeInternal.
const (
	CodeBadRequest      Code = "bad_request"      // not understood, or a value out of range
	CodeNotFound        Code = "not_found"        // no such path or method
	CodeForbidden       Code = "forbidden"        // a browser, or a foreign Host
	CodeUnauthorized    Code = "unauthorized"     // no token on TCP, or none that is valid
	CodeTooLarge        Code = "too_large"        // a body beyond MaxBody
	CodeUnsupportedType Code = "unsupported_type" // a body that does not say that it is JSON
	CodeLimit           Code = "limit"            // as many as are allowed are there
	CodeNoTerminal      Code = "no_such_terminal" // or none that this principal may see
	CodeNoToken         Code = "no_such_token"    // the agent has none
	CodeExists          Code = "exists"           // the thing to be made exists
	CodeAmbiguous       Code = "ambiguous"        // a name or beginning fits several terminals
	CodeDenied          Code = "denied"           // not allowed for this principal
	CodeExited          Code = "exited"           // the terminal's child has ended, or is being ended
	CodeWouldEnd        Code = "would_end"        // terminals cannot outlive the daemon
	CodeCannotStart     Code = "cannot_start"     // the command could not be started
	CodeNotPaired       Code = "not_paired"       // no such host, or none at all
	CodePaired          Code = "already_paired"   // a host of that name exists
	CodeInsecure        Code = "insecure_url"     // a credential would travel in clear text
	CodeUnreachable     Code = "host_unreachable" // no connection, or no answer in time
	CodeRefused         Code = "host_refused"     // the credential was not accepted
	CodeUnsupportedHost Code = "host_unsupported" // it does not take client-executed terminals
	CodeTimeout         Code = "timed_out"        // the awaited event did not come
	CodeClosing         Code = "shutting_down"    // the daemon ends; another one may follow
	CodeInternal        Code = "internal"         // a bug, or the system
)

// Exit statuses of the command line; docs/CLI.md is the contract. The last two are of commands that were connected to a terminal.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotRunning  = 3 // the daemon
	ExitNotPaired   = 4 // or the credential was refused
	ExitUnreachable = 5
	ExitDenied      = 6
	ExitNoTerminal  = 7
	ExitTimeout     = 8

	ExitDropped      = 254 // attached, and the daemon ended it
	ExitCannotAttach = 255
)

// outcomes are a code's equivalents elsewhere.
type outcomes struct{ http, exit int }

// meaning maps each code to its HTTP status and exit status: the one place.
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
	CodeWouldEnd:        {http.StatusConflict, ExitFailure},
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

// HTTPStatus is the HTTP status of an answer with the code.
func (c Code) HTTPStatus() int { return meaning[c].http }

// Error is the answer to a failed request.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`        // lower case, the fault
	Hint    string `json:"hint,omitempty"` // the remedy
}

func (e *Error) Error() string { return e.Message }

// ExitStatus is the exit status of a command that failed with err.
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
