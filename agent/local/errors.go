package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"strings"

	"tether/agent/devserver"
	"tether/agent/loans"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/ports"
	"tether/agent/start"
	"tether/agent/term"
	"tether/platform/pty"
	"tether/platform/shell"
)

// errorFor gives any error of the daemon its code.
func errorFor(err error) *localapi.Error {
	if own, ok := errors.AsType[*localapi.Error](err); ok {
		return own
	}
	if refused := refusalError(err); refused != nil {
		return refused
	}
	if foreign := adoptError(err); foreign != nil {
		return foreign
	}
	e := &localapi.Error{Code: localapi.CodeInternal, Message: err.Error()}
	var denied *term.DeniedError
	var ambiguous *term.AmbiguousError
	var spec *term.SpecError
	var failed *pty.StartError
	var taken *ports.TakenError
	var unstarted *start.Error
	var size *http.MaxBytesError
	var unserved *devserver.Error
	switch {
	case errors.Is(err, term.ErrNotFound):
		e.Code, e.Hint = localapi.CodeNoTerminal, "tether ls lists the terminals"
	case errors.As(err, &ambiguous):
		e.Code, e.Hint = localapi.CodeAmbiguous, "use an id"
	case errors.As(err, &denied):
		e.Code = localapi.CodeDenied
	case errors.As(err, &spec) && spec.Field == "limit":
		e.Code = localapi.CodeLimit
	case errors.As(err, &spec):
		e.Code = localapi.CodeBadRequest
	case errors.Is(err, loans.ErrTooManyNames), errors.Is(err, loans.ErrNotLent), errors.Is(err, loans.ErrTooManyShares), errors.Is(err, loans.ErrTooManyPorts), errors.Is(err, loans.ErrNoShare):
		e.Code = localapi.CodeBadRequest
	case errors.Is(err, term.ErrPrivate):
		e.Code, e.Hint = localapi.CodeDenied, "it was started with --private, which cannot be changed"
	case errors.As(err, &unstarted):
		e.Code, e.Message, e.Hint = startCodes[unstarted.Kind], unstarted.Message, unstarted.Hint
	case errors.As(err, &taken):
		e.Code, e.Hint = localapi.CodeExists, "tether ports says what listens where"
	case errors.As(err, &failed):
		e.Code, e.Hint = localapi.CodeCannotStart, startHint(failed)
	case errors.Is(err, term.ErrExited), errors.Is(err, term.ErrEnding):
		e.Code = localapi.CodeExited
	case errors.Is(err, term.ErrNoFeed), errors.Is(err, term.ErrFed):
		e.Code = localapi.CodeExists
	case errors.Is(err, term.ErrClosed):
		e.Code = localapi.CodeClosing
	case errors.As(err, &unserved):
		e.Code, e.Hint = unservedCodes[unserved.Kind], unserved.Hint()
	case errors.As(err, &size):
		e.Code, e.Message = localapi.CodeTooLarge, fmt.Sprintf("the request has more than %d bytes", size.Limit)
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = localapi.CodeTimeout
	}
	return e
}

// startCodes are the codes of requests to start something that cannot be started.
var startCodes = map[start.Kind]localapi.Code{start.Invalid: localapi.CodeBadRequest, start.Unconfined: localapi.CodeCannotStart}

// unservedCodes are the codes of servers that cannot be asked.
var unservedCodes = map[devserver.Kind]localapi.Code{devserver.None: localapi.CodeNotFound, devserver.Foreign: localapi.CodeNotFound, devserver.Several: localapi.CodeBadRequest, devserver.Unknown: localapi.CodeDenied}

// startHint suggests a check after a command did not start.
func startHint(e *pty.StartError) string {
	switch {
	case e.What == "directory":
		return "--cwd must be an existing directory"
	case errors.Is(e, pty.ErrTooLarge):
		return "start it with fewer variables: env -u NAME tether run …"
	case errors.Is(e, fs.ErrNotExist), errors.Is(e, exec.ErrNotFound):
		return "check the spelling and the PATH; a shell line needs " + strings.Join(shell.Line(`"…"`), " ")
	case errors.Is(e, fs.ErrPermission):
		return "the file is not executable"
	}
	return ""
}

// refusalError gives a refusal its code; it returns nil if err is not a refusal.
func refusalError(err error) *localapi.Error {
	var refused *policy.Refusal
	if !errors.As(err, &refused) {
		return nil
	}
	e := &localapi.Error{Code: localapi.CodeDenied, Message: refused.Error()}
	switch refused.Code {
	case policy.CodeRate, policy.CodeTooMany, policy.CodeBusy:
		e.Code = localapi.CodeLimit
	case policy.CodeBlocked:
		e.Hint = "tether policy check explains it: rule " + refused.Rule
	}
	return e
}
