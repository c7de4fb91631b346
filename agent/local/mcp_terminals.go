package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/start"
	"tether/agent/term"
	"tether/agenttools"
	"tether/platform/pty"
	"tether/vocab"
)

// agentTerminals has one agent's terminals and rights, for the MCP server. It does not
// decide anything itself: term decides rights, and the policy decides which commands may
// run.
type agentTerminals struct {
	server *Server
	access term.Access
	door   string
	host   string // the host at which the agent works, "" if it works here
	named  string // the host's name for it, for people to read
	masked bool   // the agent sees everything as hosts do
}

// List implements agenttools.Terminals.
func (a *agentTerminals) List() []agenttools.Info {
	var all []agenttools.Info
	for _, h := range a.access.List() {
		h = a.shown(h)
		i := mcpInfo(h.Info())
		in, _ := h.Input()
		i.Keyboard = in
		all = append(all, i)
	}
	return all
}

// Checkouts implements agenttools.Placed. Of a directory that is masked for the agent, it
// finds none.
func (a *agentTerminals) Checkouts(changes bool) map[string]*vocab.Checkout {
	var list []term.Handle
	for _, h := range a.access.List() {
		list = append(list, a.shown(h))
	}
	all, tells := map[string]*vocab.Checkout{}, a.server.opts.TellsCheckout
	for id, c := range a.server.checkoutsOf(changes, list...) {
		if a.host == "" || tells == nil || tells(a.host, *c) {
			all[string(id)] = c
		}
	}
	return all
}

// Open implements agenttools.Terminals.
func (a *agentTerminals) Open(id string) (agenttools.Terminal, error) {
	h, err := a.find(id)
	if err != nil {
		return nil, err
	}
	return mcpTerminal{a.shown(h)}, nil
}

// shown returns a terminal as this agent sees it.
func (a *agentTerminals) shown(h term.Handle) term.Handle {
	if a.masked {
		return h.Masked()
	}
	return h
}

// Changed implements agenttools.Watchable.
func (a *agentTerminals) Changed(ctx context.Context, since uint64) (uint64, error) {
	return a.access.Changed(ctx, since)
}

// find accepts only whole ids: the beginning of an id, which a model may have made up,
// must not kill anything.
func (a *agentTerminals) find(id string) (term.Handle, error) {
	h, err := a.access.Terminal(term.ID(id))
	if err != nil {
		return term.Handle{}, agenttools.ErrNotFound
	}
	return h, nil
}

// Spawn implements agenttools.Controller.
func (a *agentTerminals) Spawn(ctx context.Context, r agenttools.SpawnRequest) (agenttools.Info, error) {
	if !filepath.IsAbs(r.Cwd) {
		return agenttools.Info{}, fmt.Errorf("cwd %.60q is not an absolute path", r.Cwd)
	}
	req := start.Request{Actor: a.access.Actor(), Named: a.named, Background: true, Idle: true, Again: true,
		SpawnRequest: localapi.SpawnRequest{Door: a.door, Command: r.Command, Cwd: filepath.Clean(r.Cwd), Port: r.Port}}
	if a.host != "" {
		req.LendTo = []string{a.host}
	}
	h, err := a.server.start(ctx, req)
	if err != nil {
		return agenttools.Info{}, mcpError(err)
	}
	return mcpInfo(h.Info()), nil
}

// Promote implements agenttools.Controller.
func (a *agentTerminals) Promote(id string) (agenttools.Info, error) {
	h, err := a.find(id)
	if err == nil {
		err = h.Promote()
	}
	if err != nil {
		return agenttools.Info{}, mcpError(err)
	}
	return mcpInfo(h.Info()), nil
}

// Kill implements agenttools.Controller.
func (a *agentTerminals) Kill(ctx context.Context, id string) error {
	h, err := a.find(id)
	if err == nil {
		err = h.Kill(ctx)
	}
	return mcpError(err)
}

// MayRestart implements agenttools.Restarter. It is not for agents at hosts.
func (a *agentTerminals) MayRestart() bool {
	d := a.server.opts.Declared
	return d != nil && a.host == "" && d.MayRestart()
}

// Restart implements agenttools.Restarter.
func (a *agentTerminals) Restart(ctx context.Context, ref string) (agenttools.Restarted, error) {
	if !a.MayRestart() {
		return agenttools.Restarted{}, agenttools.ErrNotFound
	}
	d, err := a.server.opts.Declared.RestartFor(ctx, a.access.Actor(), a.door, ref)
	if h, unseen := a.find(ref); errors.Is(err, term.ErrNotFound) && unseen == nil {
		a.server.opts.Policy.Audit(policy.Event{Type: policy.EventRefusal, Actor: a.access.Actor(), Door: a.door, Terminal: h.ID(), Detail: "restart: its declaration does not let agents do that"})
		return agenttools.Restarted{}, agenttools.ErrDenied
	}
	if err != nil {
		a.server.sayTaken(err, a.access.Actor())
		return agenttools.Restarted{}, mcpError(err)
	}
	r := agenttools.Restarted{ID: d.ID, Name: d.Name, State: d.State, Ready: d.Ready, Waits: d.Waits}
	if d.Waits != "" {
		r.ID = "" // the id of the ended terminal
	}
	return r, nil
}

// Write implements agenttools.Controller.
func (a *agentTerminals) Write(ctx context.Context, id string, p []byte) error {
	h, err := a.find(id)
	if err == nil {
		err = a.typeInto(ctx, h, p)
	}
	return mcpError(err)
}

// Signal implements agenttools.Controller.
func (a *agentTerminals) Signal(id, name string) error {
	h, err := a.find(id)
	if err == nil {
		err = h.Signal(name)
	}
	return mcpError(err)
}

// mcpError returns an error in words for a model.
func mcpError(err error) error {
	var denied *term.DeniedError
	var refused *policy.Refusal
	var failed *pty.StartError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused // its reason is meant for the caller
	case errors.As(err, &denied):
		return agenttools.ErrDenied
	case errors.As(err, &failed) && failed.What == "directory":
		return fmt.Errorf("cwd: %w", failed)
	case errors.Is(err, term.ErrNotFound):
		return agenttools.ErrNotFound
	case errors.Is(err, term.ErrExited):
		return agenttools.ErrExited
	case errors.Is(err, agenttools.ErrNotFound), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	if e := errorFor(err); e.Hint != "" {
		return fmt.Errorf("%w; %s", err, e.Hint)
	}
	return err
}
