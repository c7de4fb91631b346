package shells

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
	"tether/host/sessions"
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
)

// shell is a shell that a call uses.
type shell struct{ id, uri string }

// run runs the command.
func (in *runArgs) run(ctx context.Context, c *call) (any, error) {
	began := time.Now()
	t, err := in.shell(ctx, c)
	if err != nil {
		return nil, err
	}
	r := ran{TerminalID: t.id}
	reports, err := c.settle(ctx, t, in.timeout())
	if err != nil {
		return nil, t.unusable(err)
	}
	look, err := c.look(t)
	if err != nil {
		return nil, err
	}
	if err := vacant(look); err != nil {
		return nil, err
	}
	r.Cursor = look.Info().End
	if err := c.Input(t.uri, in.Command+"\r"); err != nil {
		return nil, t.unusable(err)
	}
	if in.Background {
		r.Reason = ranBackground
		return r, nil
	}
	w := agenttools.WaitRequest{Command: reports, Since: r.Cursor, Timeout: max(time.Millisecond, in.timeout()-time.Since(began))}
	if !reports {
		w.Idle = quiet
	}
	return r, r.await(ctx, c, t, look, w)
}

// shell is the one in which the command is to run. The call uses it then.
func (in *runArgs) shell(ctx context.Context, c *call) (shell, error) {
	if in.TerminalID != "" {
		return c.take(in.TerminalID)
	}
	program, _, _ := strings.Cut(strings.TrimSpace(in.Command), " ")
	uri, err := c.OpenAmong(ctx, filepath.Base(program), in.Cwd, maxShells)
	switch {
	case errors.Is(err, sessions.ErrShells):
		err = errShells
	case err != nil && in.Cwd != "":
		err = fmt.Errorf("%w: is there a directory %q?", err, in.Cwd)
	}
	return shell{c.tools.IDOf(uri), uri}, err
}

// settle waits until the shell reports its commands, if it will, and says whether it
// does.
func (c *call) settle(ctx context.Context, t shell, timeout time.Duration) (reports bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("the shell is not ready yet"))
	defer cancel()
	return c.Reports(ctx, t.uri)
}

// look returns a shell that the call uses, to read it.
func (c *call) look(t shell) (agenttools.Terminal, error) {
	if err := c.Uses(t.uri); err != nil {
		return nil, t.unusable(err)
	}
	look, err := c.tools.View(c.Principal()).Open(t.id)
	if err != nil { // it was just removed
		return nil, t.unusable(sessions.ErrDetached)
	}
	return look, nil
}

// vacant says why no command can be run in a shell.
func vacant(look agenttools.Terminal) error {
	i := look.Info()
	if i.Exit != nil {
		return fmt.Errorf("terminal %s has exited; leave out terminalId to start another shell", i.ID)
	}
	if slices.ContainsFunc(look.Commands(), func(c vocab.Command) bool { return c.Running }) { // one within it may have ended
		return fmt.Errorf("terminal %s still runs %q: wait for it with wait_terminal, interrupt it with write_terminal, or leave out terminalId to start another shell", i.ID, i.Running)
	}
	return nil
}

// await waits for the command, for as long as the call uses the shell.
func (r *ran) await(ctx context.Context, c *call, t shell, look agenttools.Terminal, w agenttools.WaitRequest) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := c.Wait(ctx, t.uri); err != nil {
			cancel(err)
		}
	})
	defer watch.Wait()
	defer cancel(nil)
	got, err := agenttools.Wait(ctx, look, nil, w)
	if err != nil && errors.Is(context.Cause(ctx), sessions.ErrDetached) {
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
func (in *writeArgs) write(_ context.Context, c *call) (any, error) {
	t, err := c.take(in.TerminalID)
	if err != nil {
		return nil, err
	}
	look, err := c.look(t)
	if err != nil {
		return nil, err
	}
	i := look.Info()
	if i.Exit != nil {
		return nil, fmt.Errorf("terminal %s has exited", i.ID)
	}
	if err := c.Input(t.uri, in.Input); err != nil {
		return nil, t.unusable(err)
	}
	return struct {
		TerminalID string `json:"terminalId"`
		Written    int    `json:"written"`
		Cursor     int64  `json:"cursor"`
	}{i.ID, len(in.Input), i.End}, nil
}

// kill ends a shell, also one that another call uses. There is no harm in one that does
// not exist.
func (in *shellID) kill(_ context.Context, c *call) (any, error) {
	t, _, err := c.find(in.TerminalID)
	id := in.TerminalID
	if err == nil {
		id, err = t.id, c.Kill(t.uri)
	}
	if err != nil && !errors.Is(err, agenttools.ErrNotFound) {
		return nil, shell{id: id}.unusable(err)
	}
	return struct {
		Terminated bool   `json:"terminated"`
		ID         string `json:"id"`
	}{true, id}, nil
}

// take has the call use a shell that its session holds, named by its id or name.
func (c *call) take(ref string) (shell, error) {
	t, used, err := c.find(ref)
	switch {
	case errors.Is(err, agenttools.ErrNotFound):
		return t, fmt.Errorf("no terminal %.60q; list_terminals lists them", ref)
	case err != nil:
		return t, err
	case used:
		return t, fmt.Errorf("terminal %s is in use by another call of yours: wait until that has ended", t.id)
	}
	if err := c.Claim(t.uri); err != nil {
		return t, t.unusable(err)
	}
	return t, nil
}

// find returns the session's shell with that id or name, and whether a call uses it;
// agenttools.ErrNotFound if there is none.
func (c *call) find(ref string) (t shell, used bool, err error) {
	id, err := agenttools.Resolve(c.tools.View(c.Principal()).List(), "", ref)
	if err != nil {
		return t, false, err
	}
	t = shell{id, c.tools.URIOf(id)}
	if t.uri == "" {
		return t, false, agenttools.ErrNotFound
	}
	switch c.Hold(t.uri) {
	case sessions.Others:
		err = fmt.Errorf("terminal %s is not yours: you can only read it", id)
	case sessions.Taken:
		err = fmt.Errorf("the user has taken over terminal %s: wait until the user gives it back", id)
	case sessions.InUse:
		used = true
	}
	return t, used, err
}

// unusable explains why a shell cannot be used.
func (t shell) unusable(err error) error {
	if errors.Is(err, sessions.ErrDetached) {
		return fmt.Errorf("terminal %s was taken from this call: list_terminals shows whether it still exists", t.id)
	}
	return fmt.Errorf("terminal %s: %w; the terminal still exists, see read_terminal and kill_terminal", t.id, err)
}
