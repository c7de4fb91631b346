package ahp

import (
	"cmp"
	"errors"
	"fmt"
)

// CreateTerminalParams asks for a terminal under a URI that the client chose. The result
// is null.
type CreateTerminalParams struct {
	Channel         string          `json:"channel"`
	Claim           Claim           `json:"claim"` // required
	Name            string          `json:"name,omitempty"`
	Cwd             string          `json:"cwd,omitempty"`  // URI; some clients send a plain path
	Cols            *int64          `json:"cols,omitempty"` // nil = the host's choice
	Rows            *int64          `json:"rows,omitempty"` // nil = the host's choice
	ExecutionTarget ExecutionTarget `json:"executionTarget,omitempty"`
	Meta            Meta            `json:"_meta,omitempty"`
}

// Validate checks the params by themselves. For TargetClient the claim must be a
// client's; the proposal demands that it is the sender's, which only the host can check.
func (p CreateTerminalParams) Validate() error {
	return cmp.Or(CheckURI(p.Channel), p.Claim.Validate(), p.checkTarget(), checkLength("name", p.Name, MaxTitle),
		checkLength("cwd", p.Cwd, MaxCwd), checkOptionalSize("cols", p.Cols), checkOptionalSize("rows", p.Rows))
}

func (p CreateTerminalParams) checkTarget() error {
	switch p.ExecutionTarget {
	case "", TargetServer:
		return nil
	case TargetClient:
		if p.Claim.Kind != ClaimClient {
			return errors.New(`executionTarget "client" needs a client claim: no client would own the pty`)
		}
		return nil
	}
	return fmt.Errorf("executionTarget is %.40q, want %q or %q", p.ExecutionTarget, TargetServer, TargetClient)
}

func checkOptionalSize(name string, n *int64) error {
	if n == nil {
		return nil
	}
	return checkSize(name, *n)
}

// DisposeTerminalParams asks for the end of a terminal, running or not. The result is
// null.
type DisposeTerminalParams struct {
	Channel string `json:"channel"`
	Meta    Meta   `json:"_meta,omitempty"`
}

// Validate checks the params.
func (p DisposeTerminalParams) Validate() error { return CheckURI(p.Channel) }
