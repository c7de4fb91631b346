package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agenttools"
	"tether/host/shells"
	"tether/vocab"
)

// ran is the answer of run_command. Reason is one of those of agenttools.Wait, or one of
// those below.
type ran struct {
	TerminalID string `json:"terminalId"`
	Reason     string `json:"reason"`
	ExitCode   *int   `json:"exitCode,omitempty"` // of the command; after reason exit, of the shell
	DurationMs int64  `json:"durationMs,omitempty"`
	History    string `json:"history"` // the newest output
	Cursor     int64  `json:"cursor"`
}

const (
	ranBackground = "background" // nobody waits for it
	ranDetached   = "detached"   // another client has taken the terminal from the call
	ranExit       = "exit"       // the shell has ended, which agenttools.Wait says
)

// run runs the command.
func (in *runArgs) run(ctx context.Context, c *Call) (any, error) {
	began := time.Now()
	uri, err := in.shell(ctx, c)
	if err != nil {
		return nil, err
	}
	r := ran{TerminalID: idOf(uri)}
	reports, err := c.settle(ctx, uri, in.timeout())
	if err != nil {
		return nil, shellError(r.TerminalID, err)
	}
	t, err := c.using(uri)
	if err != nil {
		return nil, shellError(r.TerminalID, err)
	}
	look := lookedAt{h: c.s.h, t: t}
	if err := vacant(look); err != nil {
		return nil, err
	}
	r.Cursor = look.Info().End
	if err := c.Input(uri, in.Command+"\r"); err != nil {
		return nil, shellError(r.TerminalID, err)
	}
	if in.Background {
		r.Reason = ranBackground
		return r, nil
	}
	w := agenttools.WaitRequest{Command: reports, Since: r.Cursor, Timeout: max(time.Millisecond, in.timeout()-time.Since(began))}
	if !reports {
		w.Idle = shellQuiet
	}
	return r, r.await(ctx, c, look, w)
}

// shell is the one that the command is to run in, which the call uses then.
func (in *runArgs) shell(ctx context.Context, c *Call) (uri string, err error) {
	if in.TerminalID != "" {
		return c.take(in.TerminalID)
	}
	program, _, _ := strings.Cut(strings.TrimSpace(in.Command), " ")
	uri, err = c.open(ctx, filepath.Base(program), in.Cwd, maxShells)
	if err != nil && in.Cwd != "" && !errors.Is(err, errShells) {
		err = fmt.Errorf("%w: is there a directory %q?", err, in.Cwd)
	}
	return uri, err
}

// settle waits until the shell reports its commands, if it will, and says whether it
// does.
func (c *Call) settle(ctx context.Context, uri string, timeout time.Duration) (reports bool, err error) {
	t, err := c.using(uri)
	if err != nil {
		return false, err
	}
	c.s.h.mu.Lock()
	reports = t.state.SupportsCommandDetection
	c.s.h.mu.Unlock()
	if will, ok := t.proc().(shells.Reporter); reports || !ok || !will.Reports() {
		return reports, nil
	}
	late := errors.New("the shell is not ready yet")
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	return true, c.Ready(ctx, uri)
}

// vacant says why no command can be run in a shell.
func vacant(look lookedAt) error {
	i := look.Info()
	if i.Exit != nil {
		return fmt.Errorf("terminal %s has exited; leave out terminalId to start another shell", i.ID)
	}
	if slices.ContainsFunc(look.Commands(), func(c vocab.Command) bool { return c.Running }) { // one within it may have ended
		return fmt.Errorf("terminal %s still runs %q: wait for it with wait_terminal, interrupt it with write_terminal, or leave out terminalId to start another shell", i.ID, i.Running)
	}
	return nil
}

// await waits for the command, for as long as the call uses the terminal.
func (r *ran) await(ctx context.Context, c *Call, look lookedAt, w agenttools.WaitRequest) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := c.Wait(ctx, look.t.uri); err != nil {
			cancel(err)
		}
	})
	defer watch.Wait()
	defer cancel(nil)
	got, err := agenttools.Wait(ctx, look, nil, w)
	if err != nil && errors.Is(context.Cause(ctx), ErrDetached) {
		r.Reason = ranDetached
		return nil
	}
	if err != nil {
		return err
	}
	r.Reason, r.History, r.Cursor = string(got.Reason), got.History, got.Cursor
	if got.Command != nil {
		r.ExitCode, r.DurationMs = got.Command.Exit, (*vocab.Command)(got.Command).Ms()
	}
	if i := look.Info(); i.Exit != nil && got.Reason == agenttools.ReasonExit {
		r.ExitCode = &i.Exit.Code
	}
	return nil
}

// write types.
func (in *writeArgs) write(_ context.Context, c *Call) (any, error) {
	uri, err := c.take(in.TerminalID)
	if err != nil {
		return nil, err
	}
	t, err := c.using(uri)
	if err != nil {
		return nil, shellError(in.TerminalID, err)
	}
	i := lookedAt{h: c.s.h, t: t}.Info()
	if i.Exit != nil {
		return nil, fmt.Errorf("terminal %s has exited", i.ID)
	}
	if err := c.Input(uri, in.Input); err != nil {
		return nil, shellError(i.ID, err)
	}
	return struct {
		TerminalID string `json:"terminalId"`
		Written    int    `json:"written"`
		Cursor     int64  `json:"cursor"`
	}{i.ID, len(in.Input), i.End}, nil
}

// kill ends a shell, also one that another call uses. There is no harm in one that is not
// there.
func (in *shellID) kill(_ context.Context, c *Call) (any, error) {
	uri, _, err := c.s.find(in.TerminalID)
	id := in.TerminalID
	if err == nil {
		id, err = idOf(uri), c.s.Kill(uri)
	}
	if err != nil && !errors.Is(err, agenttools.ErrNotFound) {
		return nil, shellError(id, err)
	}
	return struct {
		Terminated bool   `json:"terminated"`
		ID         string `json:"id"`
	}{true, id}, nil
}

// take has the call use a terminal that its session holds, named by its id or name.
func (c *Call) take(ref string) (uri string, err error) {
	uri, used, err := c.s.find(ref)
	switch {
	case errors.Is(err, agenttools.ErrNotFound):
		return "", fmt.Errorf("no terminal %.60q; list_terminals lists them", ref)
	case err != nil:
		return "", err
	case used:
		return "", fmt.Errorf("terminal %s is in use by another call of yours: wait until that has ended", idOf(uri))
	}
	if err := c.Claim(uri); err != nil {
		return "", shellError(idOf(uri), err)
	}
	return uri, nil
}

// find returns the session's terminal with that id or name, and whether a call uses it;
// agenttools.ErrNotFound if there is none.
func (s *Session) find(ref string) (uri string, used bool, err error) {
	id, err := agenttools.Resolve(catalogue{s.h, &s.holder.principal}.List(), "", ref)
	if err != nil {
		return "", false, err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	for _, t := range s.h.order {
		switch {
		case t.id != id:
		case s.holds(t):
			return t.uri, t.state.Claim.ToolCallID != "", nil
		case t.creator == s.holder:
			return "", false, fmt.Errorf("the user has taken over terminal %s: wait until the user gives it back", id)
		default:
			return "", false, fmt.Errorf("terminal %s is not yours: you can only read it", id)
		}
	}
	return "", false, agenttools.ErrNotFound
}

// shellError explains why a shell cannot be used.
func shellError(id string, err error) error {
	if errors.Is(err, ErrDetached) {
		return fmt.Errorf("terminal %s was taken from this call: list_terminals shows whether it still exists", id)
	}
	return fmt.Errorf("terminal %s: %w; the terminal still exists, see read_terminal and kill_terminal", id, err)
}
