package local

import (
	"cmp"
	"slices"
	"strings"

	"tether/agent/policy"
	"tether/agent/term"
)

// doors are those through which a program may say that its request came.
var doors = []string{policy.DoorCLI, policy.DoorACP}

// asAgent makes the request an agent's: what is the person's to decide is
// refused, and the child does not wait for keys, since nobody sits before it. It
// returns what the policy is to judge.
func (r *SpawnRequest) asAgent(actor term.Actor) (policy.Request, error) {
	door := cmp.Or(r.Door, policy.DoorCLI)
	switch {
	case r.Private:
		return policy.Request{}, &Error{Code: CodeDenied, Message: "an agent's terminal cannot be private"}
	case len(r.LendTo) > 0:
		return policy.Request{}, &Error{Code: CodeDenied, Message: "an agent may not choose the hosts that see its terminal", Hint: "leave lend_to out, or let the person lend it"}
	case !slices.Contains(doors, door):
		return policy.Request{}, &Error{Code: CodeBadRequest, Message: "door must be " + strings.Join(doors, " or ")}
	}
	asked := r.asked(actor, door)
	asked.Background = door != policy.DoorACP // its commands end with their tool call, and the editor shows them
	r.SetEnv, r.Agent = slices.Concat(agentEnv, r.SetEnv), true
	return asked, nil
}

// names are those of the variables in env.
func names(env []string) []string {
	out := make([]string, len(env))
	for i, e := range env {
		out[i], _, _ = strings.Cut(e, "=")
	}
	return out
}
