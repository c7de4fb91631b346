package start

import (
	"slices"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/shell"
)

// Request holds the actor and the command to start. A door fills it in; it has already
// refused values that the actor may not use there.
type Request struct {
	// The request as every door takes it; its fields for bytes are unpacked already.
	localapi.SpawnRequest
	Actor term.Actor
	Named string // a host's name for its own agent, for people to read
	// Background says that the terminal is the agent's own. It then ends after
	// Options.AgentIdle if Idle is set, and not after the policy's time limit.
	Background bool
	Idle       bool
	Again      bool     // the caller repeats the request when told so, see policy.Request
	Unsigned   bool     // the person asks, but without a sign of a person
	Audience   []string // see term.Spec, as for Ports
	Ports      []int
}

// agentEnv tells programs that nobody watches: a pager would wait for a key.
var agentEnv = []string{"PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat", "MANPAGER=cat", "AWS_PAGER=", "SYSTEMD_PAGER=", "GIT_TERMINAL_PROMPT=0"}

// ByAgent reports whether the request is an agent's.
func (r *Request) ByAgent() bool { return r.Actor.Role == term.RoleAgent }

// setEnv lists the variables that the child gets besides Env.
func (r *Request) setEnv() []string {
	if r.ByAgent() {
		return slices.Concat(agentEnv, r.SetEnv)
	}
	return r.SetEnv
}

// Asked returns the request in the policy's form. Its Env lacks the variables by which
// Env differs from a login's environment; Start adds them.
func (r *Request) Asked() policy.Request {
	asked := policy.Request{
		Door: r.Door, Actor: r.Actor, Named: r.Named, Argv: r.Command, Line: r.Line, Cwd: r.Cwd, Env: r.SetEnv,
		Background: r.Background, Approved: r.Approved, Again: r.Again,
	}
	if r.Line != "" {
		asked.Shell = shell.Line(r.Line)[0] // cmd.exe does not read a line as a POSIX shell does
	}
	if r.Shell && len(r.Command) == 0 {
		asked.Argv = []string{shell.Login()}
	}
	return asked
}

// onSlows maps the words of requests and of the configuration to their meanings.
var onSlows = map[string]term.OnSlow{"": term.ByOwner, "lag": term.Lag, "hold": term.Hold}

// OnSlow returns the meaning of a word of a request or of the configuration.
func OnSlow(word string) (_ term.OnSlow, ok bool) {
	o, ok := onSlows[word]
	return o, ok
}

// Error says why a request cannot be carried out, in words for the person or the model
// that made it.
type Error struct {
	Kind    Kind
	Message string
	Hint    string // the remedy, or ""
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Kind is the kind of an Error.
type Kind int

const (
	// Invalid: the request makes no sense, or is out of range.
	Invalid Kind = iota
	// Unconfined: an agent's command cannot be put into the sandbox or the limits that
	// are configured for it, so it does not run.
	Unconfined
)
