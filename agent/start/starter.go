package start

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tether/agent/policy"
	"tether/agent/ports"
	"tether/agent/term"
)

// Options configures a Starter. Access, Policy, Spec and Environment are required.
type Options struct {
	// Access returns the pool as an actor sees it.
	Access func(term.Actor) term.Access
	Policy *policy.Engine
	// Spec works out the spec. It may have to ask the login shell for its environment
	// first, which ends with ctx.
	Spec func(ctx context.Context, r Request) (term.Spec, error)
	// Environment returns the environment of the person's interactive login. It may run
	// the login shell; refresh forces that.
	Environment func(ctx context.Context, refresh bool) ([]string, error)
	// Confine, if not nil, changes an agent's command so that it runs in its configured
	// sandbox and limits.
	Confine func(term.Actor, *term.Spec) error
	// Ports gives ports to requests that ask for one; nil refuses them.
	Ports *ports.Keeper
	// Reader is the program that reads a pane of another program: its path, and arguments
	// before those of adopt.ReaderArgs, see adopt.Main. Nil refuses adoptions.
	Reader []string
	// AgentIdle is how long an agent's terminal may be without output and input if
	// Request.Idle is set, default 5 min.
	AgentIdle time.Duration
}

// agentIdle is the default that docs/MCP.md promises to agents.
const agentIdle = 5 * time.Minute

// Starter starts terminals. It is safe for concurrent use.
type Starter struct{ opts Options }

// New returns a Starter.
func New(o Options) *Starter {
	o.AgentIdle = cmp.Or(o.AgentIdle, agentIdle)
	return &Starter{o}
}

// Start asks the policy and, if it allows the request, starts the program. It blocks
// while it reads the login's environment and while the person answers; ctx ends both.
// Errors: a *policy.Refusal, an *Error, a *term.SpecError, a *pty.StartError, a
// *ports.TakenError, ctx's, and those of Options.Spec and the pool.
func (s *Starter) Start(ctx context.Context, r Request) (term.Handle, error) {
	port, err := s.givePort(&r)
	if err != nil {
		return term.Handle{}, err
	}
	h, err := s.opts.Policy.Spawn(ctx, s.asked(ctx, r), func() (term.Handle, error) {
		spec, err := s.opts.Spec(ctx, r)
		if err != nil {
			return term.Handle{}, err
		}
		return s.launch(r, spec, port)
	})
	if err != nil {
		port.Release()
	}
	return h, err
}

// Prepare is Start in two steps, for a caller that must know the terminal's id before the
// terminal exists. Call start at most once; it asks the policy. Prepare may already have
// written the shell's scripts: if start is not called, or the policy refuses, they stay
// until the daemon starts again.
func (s *Starter) Prepare(ctx context.Context, r Request) (id term.ID, start func() (term.Handle, error), err error) {
	port, err := s.givePort(&r)
	if err != nil {
		return "", nil, err
	}
	port.Begin(nil) // start may never be called
	spec, err := s.opts.Spec(ctx, r)
	if err != nil {
		port.Release()
		return "", nil, err
	}
	spec.ID = cmp.Or(spec.ID, term.NewID())
	return spec.ID, func() (term.Handle, error) {
		return s.opts.Policy.Spawn(ctx, s.asked(ctx, r), func() (term.Handle, error) { return s.launch(r, spec, port) })
	}, nil
}

// givePort keeps the port for which the request asks, and completes the request with it:
// from here on the command is the one that runs.
func (s *Starter) givePort(r *Request) (*ports.Kept, error) {
	switch {
	case r.Port == "":
		return nil, nil
	case s.opts.Ports == nil:
		return nil, bad("this daemon gives no ports")
	}
	if err := ports.Check(r.Port); err != nil {
		return nil, bad("%v", err)
	}
	port, err := s.opts.Ports.Keep(r.Port, r.Cwd, usualName(r))
	if err != nil {
		return nil, err
	}
	r.Command, r.Line = port.Fill(r.Command...), port.Fill(r.Line)[0]
	if r.Door == policy.DoorConfig {
		r.SetEnv = port.Fill(r.SetEnv...)
	}
	r.SetEnv = append(slices.Clip(r.SetEnv), "PORT="+strconv.Itoa(port.Port))
	return port, nil
}

// usualName returns the name that the request's terminal has if no other terminal has it.
func usualName(r *Request) string {
	parts := nameOf(r)
	switch {
	case r.Name != "":
		return r.Name
	case parts.What != "":
		return parts.Where + "-" + parts.What
	case r.Line != "" || len(r.Command) == 0:
		return r.Line
	}
	return filepath.Base(r.Command[0])
}

// asked returns the request for the policy. For an agent it contains all variables that
// differ from a login's.
func (s *Starter) asked(ctx context.Context, r Request) policy.Request {
	asked := r.Asked()
	if r.ByAgent() {
		asked.Env = slices.Concat(asked.Env, s.changedEnv(ctx, r.Env))
	}
	return asked
}

// changedEnv returns the entries of env that a login's environment lacks or has with
// another value. If the login's environment is unknown it returns all, so that the policy
// sees too much rather than too little.
func (s *Starter) changedEnv(ctx context.Context, env []string) []string {
	if env == nil {
		return nil
	}
	login, err := s.opts.Environment(ctx, false)
	if err != nil {
		return env
	}
	known := map[string]bool{}
	for _, e := range login {
		known[e] = true
	}
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool { return known[e] })
}

// launch spawns the admitted program, with the port that was kept for it.
func (s *Starter) launch(r Request, spec term.Spec, port *ports.Kept) (term.Handle, error) {
	spec.Unsigned = r.Unsigned
	if port != nil {
		spec.Port = port.Port
	}
	switch {
	case r.ByAgent() && r.Idle:
		spec.IdleTimeout = s.opts.AgentIdle
	case r.ByAgent() && !r.Background:
		spec.TimeLimit = s.opts.Policy.TimeLimit(r.Actor)
	}
	if s.opts.Confine != nil && r.ByAgent() {
		if err := s.opts.Confine(r.Actor, &spec); err != nil {
			if spec.Ended != nil {
				spec.Ended()
			}
			return term.Handle{}, err
		}
	}
	h, err := s.opts.Access(r.Actor).Spawn(spec)
	if err == nil {
		port.Begin(func() bool { return h.Info().Exit != nil })
	}
	return h, err
}
