package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tether/agent/config"
	"tether/agent/local"
	"tether/agenttools"
	"tether/internal/retry"
	"tether/platform/proc"
	"tether/vocab"
)

// Times for trying the condition under which a declared terminal is ready.
const (
	portEvery    = 250 * time.Millisecond // between two looks at who listens
	readyEvery   = time.Second            // between two other attempts
	lateEvery    = 10 * time.Second       // between two attempts after the condition's time is over
	readyAttempt = 10 * time.Second       // of one program
)

// Started implements declared.Terminal.
func (t *declaredTerminal) Started() time.Time {
	h, _ := t.newest()
	return h.Info().Started
}

// Port implements declared.Terminal.
func (t *declaredTerminal) Port() int {
	h, _ := t.newest()
	return h.Info().Port
}

// SetReady implements declared.Terminal.
func (t *declaredTerminal) SetReady(state vocab.ReadyState, why string) {
	h, _ := t.newest()
	h.SetReady(state, why)
}

// Await implements declared.Terminal.
func (t *declaredTerminal) Await(ctx context.Context, d config.Declared, late bool) error {
	r, ports, others := d.Ready, portEvery, readyEvery
	if late {
		ports, others = lateEvery, lateEvery
	}
	switch {
	case r.Port != 0:
		return until(ctx, ports, func() error { return t.listens(ctx, int(r.Port)) })
	case r.Pattern != "":
		if until(ctx, others, func() error { return t.prints(ctx, r.Pattern) }) != nil {
			return fmt.Errorf("no line matches %q", r.Pattern)
		}
		return nil
	case r.HTTP != "":
		return until(ctx, others, func() error { return t.answers(ctx, r.HTTP) })
	}
	return until(ctx, others, func() error { return t.runsWell(ctx, &d) })
}

// until calls try until it returns nil. If ctx ends before, it returns the error of the
// last attempt.
func until(ctx context.Context, every time.Duration, try func() error) error {
	last := errors.New("there was no time to look")
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() == nil:
			last = err
		}
		if !retry.Wait(ctx, every) {
			return last
		}
	}
}

// listens returns nil if a program of the terminal listens on the port. Where the system
// does not tell, it connects to the port, and any program counts; elsewhere it does not
// connect, because servers log that.
func (t *declaredTerminal) listens(ctx context.Context, port int) error {
	h, _ := t.newest()
	yes, err := proc.Listens(proc.Terminal{ID: string(t.id), Pid: h.Info().Pid}, port)
	switch {
	case err == nil && yes:
		return nil
	case err == nil:
		return fmt.Errorf("no program of it listens on port %d", port)
	}
	return t.wait(ctx, agenttools.WaitRequest{Port: port, Since: h.Info().Bytes, Timeout: readyEvery}, "nothing listens on port "+strconv.Itoa(port))
}

// prints returns nil when a line of the output, old or new, matches the pattern.
func (t *declaredTerminal) prints(ctx context.Context, pattern string) error {
	return t.wait(ctx, agenttools.WaitRequest{Pattern: pattern, Since: -1}, "")
}

// answers returns nil if the URL answers 200.
func (t *declaredTerminal) answers(ctx context.Context, url string) error {
	h, _ := t.newest()
	got, err := agenttools.Wait(ctx, local.Readable(h), nil, agenttools.WaitRequest{URL: url, Since: h.Info().Bytes, Timeout: readyEvery})
	switch {
	case err != nil:
		return err
	case got.Status == http.StatusOK && got.Reason == agenttools.ReasonURL:
		return nil
	case got.Status != 0:
		return fmt.Errorf("it answers %d", got.Status)
	}
	return errors.New(got.Detail)
}

// wait waits in the terminal; vain is the error text of a failed wait.
func (t *declaredTerminal) wait(ctx context.Context, r agenttools.WaitRequest, vain string) error {
	h, _ := t.newest()
	got, err := agenttools.Wait(ctx, local.Readable(h), nil, r)
	switch {
	case err != nil:
		return err
	case got.Reason == agenttools.ReasonExit, got.Reason == agenttools.ReasonTimeout:
		return errors.New(vain)
	}
	return nil
}

// runsWell returns nil if the condition's program exits with 0. The program runs in the
// directory and with the environment with which the terminal is started.
func (t *declaredTerminal) runsWell(ctx context.Context, d *config.Declared) error {
	ctx, cancel := context.WithTimeout(ctx, readyAttempt)
	defer cancel()
	env, err := t.starter.agent.Environment(ctx, false)
	if err != nil {
		return err
	}
	cwd, err := homeward(d.Cwd)
	if err != nil {
		return err
	}
	argv := d.Ready.Command
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Env, c.Dir, c.WaitDelay = slices.Concat(env, d.Env), cwd, time.Second
	err = c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%s: %s", filepath.Base(argv[0]), exit)
	}
	return err
}
