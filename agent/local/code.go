package local

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os/exec"
	"strings"

	"tether/agent/start"
	"tether/agent/term"
	"tether/platform/ipc"
	"tether/platform/pty"
	"tether/platform/shell"
)

// Code is the kind of an error, for programs.
type Code string

// The codes of this door. Clients treat one they do not know as CodeInternal.
const (
	CodeBadRequest      Code = "bad_request"      // not understood, or a value out of range
	CodeNotFound        Code = "not_found"        // no such path or method
	CodeForbidden       Code = "forbidden"        // a browser, or a foreign Host
	CodeUnauthorized    Code = "unauthorized"     // no token on TCP, or none that is valid
	CodeTooLarge        Code = "too_large"        // a body beyond maxBody
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

// httpStatus is the HTTP status of an answer with the code.
func (c Code) httpStatus() int { return meaning[c].http }

// Error is this door's answer to a failed request.
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

// errorFor gives any error of the daemon its code.
func errorFor(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if refused := refusalError(err); refused != nil {
		return refused
	}
	e := &Error{Code: CodeInternal, Message: err.Error()}
	var denied *term.DeniedError
	var ambiguous *term.AmbiguousError
	var spec *term.SpecError
	var failed *pty.StartError
	var unstarted *start.Error
	var size *http.MaxBytesError
	switch {
	case errors.Is(err, term.ErrNotFound):
		e.Code, e.Hint = CodeNoTerminal, "tether ls lists the terminals"
	case errors.As(err, &ambiguous):
		e.Code, e.Hint = CodeAmbiguous, "use an id"
	case errors.As(err, &denied):
		e.Code = CodeDenied
	case errors.As(err, &spec) && spec.Field == "limit":
		e.Code = CodeLimit
	case errors.As(err, &spec):
		e.Code = CodeBadRequest
	case errors.Is(err, term.ErrTooManyNames), errors.Is(err, term.ErrNotLent), errors.Is(err, term.ErrTooManyShares), errors.Is(err, term.ErrNoShare):
		e.Code = CodeBadRequest
	case errors.Is(err, term.ErrPrivate):
		e.Code, e.Hint = CodeDenied, "it was started with --private, which cannot be changed"
	case errors.As(err, &unstarted):
		e.Code, e.Message, e.Hint = startCodes[unstarted.Kind], unstarted.Message, unstarted.Hint
	case errors.As(err, &failed):
		e.Code, e.Hint = CodeCannotStart, startHint(failed)
	case errors.Is(err, term.ErrExited), errors.Is(err, term.ErrEnding):
		e.Code = CodeExited
	case errors.Is(err, term.ErrClosed):
		e.Code = CodeClosing
	case errors.As(err, &size):
		e.Code = CodeTooLarge
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = CodeTimeout
	}
	return e
}

// startCodes are the codes of requests that cannot be started.
var startCodes = map[start.Kind]Code{start.Invalid: CodeBadRequest, start.Unconfined: CodeCannotStart}

// startHint suggests a check after a command did not start.
func startHint(e *pty.StartError) string {
	switch {
	case e.What == "directory":
		return "--cwd must be an existing directory"
	case errors.Is(e, fs.ErrNotExist), errors.Is(e, exec.ErrNotFound):
		return "check the spelling and the PATH; a shell line needs " + strings.Join(shell.Line(`"…"`), " ")
	case errors.Is(e, fs.ErrPermission):
		return "the file is not executable"
	}
	return ""
}
