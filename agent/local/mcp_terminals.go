package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"tether/agent/command"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/mcp"
	"tether/mcp/screen"
	"tether/platform/proc"
	"tether/platform/pty"
)

// agentTerminals is what one agent may see and do, as the MCP server wants it.
// It decides nothing: rights are term's, what may be run is the policy's.
type agentTerminals struct {
	server *Server
	access term.Access
}

// List implements mcp.Terminals.
func (a *agentTerminals) List() []mcp.Info {
	var all []mcp.Info
	for _, h := range a.access.List() {
		all = append(all, mcpInfo(h.Info()))
	}
	return all
}

// Open implements mcp.Terminals.
func (a *agentTerminals) Open(id string) (mcp.Terminal, error) {
	h, err := a.find(id)
	if err != nil {
		return nil, err
	}
	return mcpTerminal{h}, nil
}

// find takes whole ids alone: the beginning of one, which a model may have
// made up, must not kill anything.
func (a *agentTerminals) find(id string) (term.Handle, error) {
	h, err := a.access.Find(id)
	if err != nil || string(h.ID()) != id {
		return term.Handle{}, mcp.ErrNotFound
	}
	return h, nil
}

// agentEnv is what programs must be told that nobody watches: a pager would
// wait for a key.
var agentEnv = []string{"PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat", "MANPAGER=cat", "AWS_PAGER=", "SYSTEMD_PAGER=", "GIT_TERMINAL_PROMPT=0"}

// Spawn implements mcp.Controller.
func (a *agentTerminals) Spawn(ctx context.Context, r mcp.SpawnRequest) (mcp.Info, error) {
	if !filepath.IsAbs(r.Cwd) {
		return mcp.Info{}, fmt.Errorf("cwd %.60q is not an absolute path", r.Cwd)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.server.draining, func() { cancel(term.ErrClosed) })()
	opts := &a.server.opts
	cwd := filepath.Clean(r.Cwd)
	start := func() (term.Handle, error) {
		spec, err := opts.Daemon.Spec(ctx, SpawnRequest{Command: r.Command, Cwd: cwd, SetEnv: agentEnv, Agent: true})
		if err != nil {
			return term.Handle{}, err
		}
		spec.IdleTimeout = opts.AgentIdle
		return a.server.launch(a.access, spec)
	}
	h, err := opts.Policy.Spawn(ctx, policy.Request{Door: policy.DoorMCP, Actor: a.access.Actor(), Argv: r.Command, Cwd: cwd, Background: true}, start)
	if err != nil {
		return mcp.Info{}, mcpError(err)
	}
	return mcpInfo(h.Info()), nil
}

// Promote implements mcp.Controller.
func (a *agentTerminals) Promote(id string) (mcp.Info, error) {
	h, err := a.find(id)
	if err == nil {
		err = h.Promote()
	}
	if err != nil {
		return mcp.Info{}, mcpError(err)
	}
	return mcpInfo(h.Info()), nil
}

// Kill implements mcp.Controller.
func (a *agentTerminals) Kill(ctx context.Context, id string) error {
	h, err := a.find(id)
	if err == nil {
		err = h.Kill(ctx)
	}
	return mcpError(err)
}

// Write implements mcp.Controller.
func (a *agentTerminals) Write(ctx context.Context, id string, p []byte) error {
	h, err := a.find(id)
	if err == nil {
		err = a.checkTyped(h, p)
	}
	if err == nil {
		err = h.Write(ctx, p)
	}
	return mcpError(err)
}

// checkTyped refuses what a shell would be told to run and the rules deny: a
// shell that the person has allowed is no way around them. It is a guard rail
// like the rules themselves, since it sees neither lines that come in pieces
// nor what else in the terminal reads them. What is only to be asked about was
// asked when the shell was started.
func (a *agentTerminals) checkTyped(h term.Handle, p []byte) error {
	i := h.Info()
	if i.Owner != a.access.Actor() || len(i.Command) == 0 || !command.IsShell(filepath.Base(i.Command[0])) {
		return nil
	}
	for line := range strings.FieldsFuncSeq(string(p), func(r rune) bool { return r == '\r' || r == '\n' }) {
		if line = strings.TrimSpace(screen.Clean(line)); line == "" {
			continue
		}
		asked := policy.Request{Door: policy.DoorMCP, Actor: i.Owner, Line: line, Shell: filepath.Base(i.Command[0]), Cwd: i.Cwd, Background: true}
		if d := a.server.opts.Policy.Check(asked); d.Effect == policy.Deny {
			a.server.opts.Policy.Audit(policy.Event{Type: policy.EventRefusal, Actor: i.Owner, Door: policy.DoorMCP, Terminal: i.ID, Decision: d, Detail: "typed into a shell"})
			return &policy.Refusal{Decision: d, Code: policy.CodeBlocked}
		}
	}
	return nil
}

// Signal implements mcp.Controller.
func (a *agentTerminals) Signal(id, name string) error {
	h, err := a.find(id)
	if err == nil {
		err = h.Signal(name)
	}
	return mcpError(err)
}

// Listens implements mcp.Locator.
func (a *agentTerminals) Listens(id string, port int) (yes, known bool) {
	yes, err := proc.Listens(proc.Tag(id), port)
	return yes, err == nil
}

// mcpError is an error in words for a model.
func mcpError(err error) error {
	var denied *term.DeniedError
	var refused *policy.Refusal
	var failed *pty.StartError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused // its reason is meant for whoever asked
	case errors.As(err, &denied):
		return mcp.ErrDenied
	case errors.As(err, &failed) && failed.What == "directory":
		return fmt.Errorf("cwd: %w", failed)
	case errors.Is(err, term.ErrNotFound):
		return mcp.ErrNotFound
	case errors.Is(err, term.ErrExited):
		return mcp.ErrExited
	case errors.Is(err, mcp.ErrNotFound), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	if e := errorFor(err); e.Hint != "" {
		return fmt.Errorf("%w; %s", err, e.Hint)
	}
	return err
}

func mcpInfo(i term.Info) mcp.Info {
	out := mcp.Info{
		ID: string(i.ID), Cwd: i.Cwd, Owner: mcp.OwnerAgent, Visible: i.Visible, CreatedAt: i.Started,
		Name: i.Name, Title: i.Title, Cols: int(i.Size.Cols), Rows: int(i.Size.Rows), Pid: i.Pid,
		Detection: i.CommandDetection, Start: i.Bytes - i.Retained, End: i.Bytes,
	}
	if i.Owner == term.User {
		out.Owner = mcp.OwnerUser
	}
	if i.Owner.Role == term.RoleAgent || i.Promoted {
		out.Command = i.Command
	}
	if i.Running != nil {
		out.Running = i.Running.Line
	}
	if i.Exit != nil {
		out.Exit = &mcp.Exit{Code: i.Exit.Code, Signal: i.Exit.Signal, Reason: string(i.Exit.Reason), At: i.Exit.At}
	}
	return out
}

// mcpTerminal is a terminal for an MCP server.
type mcpTerminal struct{ h term.Handle }

// Info implements mcp.Terminal.
func (t mcpTerminal) Info() mcp.Info { return mcpInfo(t.h.Info()) }

// Commands implements mcp.Terminal.
func (t mcpTerminal) Commands() []mcp.Command {
	all, err := t.h.Commands()
	if err != nil {
		return nil // it has become somebody else's
	}
	out := make([]mcp.Command, len(all))
	for i, c := range all {
		out[i] = mcpCommand(c)
	}
	return out
}

func mcpCommand(c term.Command) mcp.Command {
	return mcp.Command{N: c.N, Line: c.Line, ExitCode: c.Exit, Running: !c.Done, DurationMs: c.Duration.Milliseconds(), Start: c.Start, End: c.End}
}

// Read implements mcp.Terminal. The view is the one for screens: all that the
// child wrote except the shell's marks, under raw offsets. It never holds the
// child up: a model reads when it likes.
func (t mcpTerminal) Read(from int64) (mcp.Reader, error) {
	rd, err := t.h.Reader(term.ReaderOptions{View: term.ViewScreen, From: from})
	if err != nil {
		return nil, mcpError(err)
	}
	return mcpReader{rd}, nil
}

// mcpReader is a term.Reader in the words of an MCP server.
type mcpReader struct{ rd *term.Reader }

// TryNext implements mcp.Reader.
func (r mcpReader) TryNext(buf []byte) (mcp.Event, bool, error) {
	ev, ok, err := r.rd.TryNext(buf)
	return mcpEvent(ev, ok, err)
}

// Next implements mcp.Reader.
func (r mcpReader) Next(ctx context.Context, buf []byte) (mcp.Event, error) {
	ev, err := r.rd.Next(ctx, buf)
	out, _, err := mcpEvent(ev, err == nil, err)
	return out, err
}

// Close implements mcp.Reader.
func (r mcpReader) Close() { r.rd.Close() }

func mcpEvent(ev term.Event, ok bool, err error) (mcp.Event, bool, error) {
	var lagged *term.LaggedError
	if errors.As(err, &lagged) {
		return mcp.Event{Lost: lagged.Lost, Off: lagged.At}, true, nil
	}
	if !ok || err != nil {
		return mcp.Event{}, false, err
	}
	out := mcp.Event{Data: ev.Data, Off: ev.Raw}
	if m := ev.Mark; m != nil {
		switch m.Kind {
		case term.MarkCommandFinished:
			c := mcpCommand(m.Command)
			out.Finished = &c
		case term.MarkResized:
			out.Resized = &[2]int{int(m.Size.Cols), int(m.Size.Rows)}
		case term.MarkExited:
			out.Exited = true
		}
	}
	return out, true, nil
}
