package local

import (
	"context"
	"errors"

	"tether/agent/output"
	"tether/agent/term"
	"tether/agenttools"
	"tether/vocab"
)

func mcpInfo(i term.Info) agenttools.Info {
	out := agenttools.Info{
		ID: string(i.ID), Cwd: i.Cwd, Owner: agenttools.OwnerAgent, Visible: i.Visible, CreatedAt: i.Started,
		Name: i.Name, Title: i.Title, Command: i.Command, Cols: int(i.Size.Cols), Rows: int(i.Size.Rows), Pid: i.Pid, Notice: i.Notice, Port: i.Port, Exit: i.Exit, Adopted: i.Adopted,
		Detection: i.CommandDetection, Start: i.Bytes - i.Retained, End: i.Bytes,
	}
	if i.Owner == term.User {
		out.Owner = agenttools.OwnerUser
	}
	if i.Running != nil {
		out.Running = i.Running.Text()
	}
	out.Readiness = i.Readiness
	return out
}

// mcpTerminal is a terminal for an MCP server.
type mcpTerminal struct{ h term.Handle }

// Info implements agenttools.Terminal.
func (t mcpTerminal) Info() agenttools.Info { return mcpInfo(t.h.Info()) }

// State implements agenttools.StatefulTerminal.
func (t mcpTerminal) State() (vocab.State, <-chan struct{}) {
	in, changed := t.h.Input()
	return vocab.State{Keyboard: in, Readiness: t.h.Info().Readiness}, changed
}

// Readable returns a terminal as [agenttools.Wait] needs it.
func Readable(h term.Handle) agenttools.Terminal { return mcpTerminal{h} }

// Commands implements agenttools.Terminal.
func (t mcpTerminal) Commands() []vocab.Command {
	all, _ := t.h.Commands() // none if it has another owner now
	return all
}

// Read implements agenttools.Terminal. The view is the one for screens: all bytes of the
// child except the shell's marks, under raw offsets; if the handle is masked it is the
// view for hosts. It never holds the child, because a model may stop reading at any time.
func (t mcpTerminal) Read(from int64) (agenttools.Reader, error) {
	rd, err := t.h.Reader(output.ReaderOptions{View: output.ViewScreen, From: from, Linear: true})
	if err != nil {
		return nil, mcpError(err)
	}
	end := t.h.Info().Bytes
	return &mcpReader{rd, max(from-end, 0), end}, nil
}

// ReadScreen implements agenttools.ScreenTerminal.
func (t mcpTerminal) ReadScreen() (agenttools.OldScreen, agenttools.Reader, error) {
	rd, err := t.Read(0)
	if err != nil {
		return agenttools.OldScreen{}, nil, err
	}
	old, err := rd.(*mcpReader).Oldest()
	if err != nil {
		rd.Close()
		return agenttools.OldScreen{}, nil, mcpError(err)
	}
	return agenttools.OldScreen{Cols: int(old.Size.Cols), Rows: int(old.Size.Rows), Replay: old.Replay, Exact: old.Exact, Masked: old.Masked}, rd, nil
}

// mcpReader is an output.Reader with the types of an MCP server. If it was asked to begin
// behind the end of the output, with the cursor of an earlier terminal of this name, it
// reports that first.
type mcpReader struct {
	*output.Reader
	missing, end int64
}

// TryNext implements agenttools.Reader.
func (r *mcpReader) TryNext(buf []byte) (agenttools.Event, bool, error) {
	if n := r.missing; n > 0 {
		r.missing = 0
		return agenttools.Event{Missing: n, Off: r.end}, true, nil
	}
	ev, ok, err := r.Reader.TryNext(buf)
	if lagged, ok := errors.AsType[*output.LaggedError](err); ok {
		return agenttools.Event{Lost: lagged.Lost, Off: lagged.Raw}, true, nil
	}
	if !ok || err != nil {
		return agenttools.Event{}, false, err
	}
	out := agenttools.Event{Data: ev.Data, Off: ev.Raw, Masked: ev.Masked}
	if m := ev.Mark; m != nil {
		switch m.Kind {
		case output.MarkCommandFinished:
			out.Finished = &m.Command
		case output.MarkCwd:
			out.Dir = m.Text
		case output.MarkResized:
			out.Resized = &[2]int{int(m.Size.Cols), int(m.Size.Rows)}
		case output.MarkExited:
			out.Exited = true
		}
	}
	return out, true, nil
}

// Next implements agenttools.Reader.
func (r *mcpReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	for {
		ev, ok, err := r.TryNext(buf)
		if ok || err != nil {
			return ev, err
		}
		select {
		case <-r.Ready(1):
		case <-ctx.Done():
			return agenttools.Event{}, ctx.Err()
		}
	}
}
