package device

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"tether/ahp/client"
	"tether/pairing"
)

// errAnswer is returned for an answer that the protocol does not allow.
var errAnswer = errors.New("the host's answer is not valid, or another key signed it")

// refusedError is the host's answer to a refused request.
type refusedError struct {
	status  int
	refusal pairing.Refusal
}

func (e *refusedError) Error() string {
	if e.refusal.Message == "" {
		return fmt.Sprintf("the host refused with status %d", e.status)
	}
	return fmt.Sprintf("the host refused: %.200q", e.refusal.Message)
}

// refusedAs reports whether the host refused with that code.
func refusedAs(err error, code string) bool {
	r, ok := errors.AsType[*refusedError](err)
	return ok && r.refusal.Code == code
}

// passes reports whether the refusal is temporary: the host is busy, or a proxy in front
// of it has refused, and the request is not the reason.
func passes(err error) bool {
	r, ok := errors.AsType[*refusedError](err)
	return ok && r.status >= http.StatusInternalServerError
}

// revoked turns a refusal of this machine's key into ErrRevoked or ErrIdentity.
func revoked(err error) error {
	switch {
	case refusedAs(err, pairing.CodeUnknownDevice):
		return ErrRevoked
	case refusedAs(err, pairing.CodeWrongKey):
		return fmt.Errorf("%w (%w)", ErrIdentity, err)
	}
	return err
}

// unreachable removes the URL, and marks the error as client.ErrUnreachable: trying again
// may help. It does not help if errors.Is also finds client.ErrPin.
func unreachable(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%w: %w", client.ErrUnreachable, err)
}
