package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"tether/agent/acp"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
)

// The size of an agent's terminals: wide enough for tables, and common in training data.
// ACP has no resize.
const agentCols, agentRows = 120, 24

// agentTerminals gives one agent access to the daemon's terminals, for the ACP proxy.
type agentTerminals struct {
	name   string              // name of the agent
	client *localclient.Client // acts as the agent
	person *localclient.Client
	ensure func(context.Context) error
	notice func(format string, args ...any)

	mu      sync.Mutex
	claimed map[string]bool // questions that the editor was asked
}

func (a *agentTerminals) Spawn(ctx context.Context, c acp.Command) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.Ask != nil {
		var asking sync.WaitGroup
		asking.Go(func() {
			if err := a.approved(ctx, c); err != nil {
				cancel(err)
			}
		})
		defer asking.Wait()
		defer cancel(nil) // before that
	}
	id, err := a.spawn(ctx, c)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	return id, failure(err)
}

func (a *agentTerminals) spawn(ctx context.Context, c acp.Command) (string, error) {
	r := localapi.SpawnRequest{
		Command: c.Argv, Line: c.Line, Cwd: c.Cwd, SetEnv: c.Env, Name: c.Name,
		Cols: agentCols, Rows: agentRows, OnSlow: "hold", NoIntegration: true, Leased: true, Door: policy.DoorACP,
	}
	t, err := a.client.Spawn(ctx, r)
	if errors.Is(err, localclient.ErrNotRunning) && a.ensure(ctx) == nil {
		t, err = a.client.Spawn(ctx, r)
	}
	if t.Notice != "" {
		a.notice("%s", t.Notice)
	}
	return t.ID, err
}

// acpPatience is how long a terminal is looked for at the next daemon. Then it counts as
// lost.
const acpPatience = 20 * time.Second

func (a *agentTerminals) Follow(ctx context.Context, id string) (acp.Stream, error) {
	o := localclient.ReadOptions{Follow: true, Marks: true, Lease: true}
	back := &localclient.Comeback{ID: id, Timeout: acpPatience, Revive: a.ensure}
	f, err := a.client.Read(ctx, id, o, back)
	if err != nil { // the daemon that has started the command is gone
		err = back.Do(ctx, err, func() (err error) {
			f, err = a.client.Read(ctx, id, o, back)
			return err
		})
	}
	return followed{f}, failure(err)
}

func (a *agentTerminals) Kill(ctx context.Context, id string) error {
	_, err := a.client.Kill(ctx, id)
	if errors.Is(err, localclient.ErrNotRunning) && a.ensure(ctx) == nil { // its terminals live on without it
		_, err = a.client.Kill(ctx, id)
	}
	return failure(err)
}

// followed translates a terminal's stream for the proxy.
type followed struct{ *localclient.Output }

func (f followed) Next() (acp.Event, error) {
	for {
		m, err := f.Output.Next()
		if err != nil {
			return acp.Event{}, failure(err)
		}
		switch c := m.Control; {
		case c == nil:
			return acp.Event{Data: m.Data, Masked: m.Masked}, nil
		case c.Type == localapi.ControlLagged:
			return acp.Event{Lost: c.Lost}, nil
		case c.Type == localapi.ControlExit:
			return acp.Event{Exit: &acp.Exit{Code: c.Code, Signal: c.Signal}}, nil
		}
	}
}

// kinds maps the daemon's error codes to the proxy's failures.
var kinds = map[localapi.Code]acp.FailureKind{
	localapi.CodeBadRequest: acp.Invalid, localapi.CodeTooLarge: acp.Invalid, localapi.CodeCannotStart: acp.CannotStart,
	localapi.CodeNoTerminal: acp.Gone, localapi.CodeDenied: acp.Denied, localapi.CodeLimit: acp.Denied,
}

func failure(err error) error {
	var e *localapi.Error
	if !errors.As(err, &e) {
		return err
	}
	return &acp.Failure{Kind: kinds[e.Code], Message: e.Message, Hint: e.Hint}
}
