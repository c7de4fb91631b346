package host

import (
	"cmp"

	"tether/ahp"
	"tether/host/output"
	"tether/host/rights"
	"tether/host/shells"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
)

// maxServerTerminals bounds the shells of the host, for all clients together.
const maxServerTerminals = 256

// createServer starts a server-executed terminal and answers when it runs.
func (c *conn) createServer(r *jsonrpc.Request, p ahp.CreateTerminalParams) error {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	if p.Claim, err = h.sessions.Grant(c, p.Claim); err != nil {
		return invalid(err)
	}
	return h.startServerLocked(c.client, p, func(_ *terminal, err error) {
		if err != nil {
			_ = r.ReplyError(err) // fails only with the connection
			return
		}
		_ = r.Reply(nil) // likewise
	})
}

// startServerLocked starts a server-executed terminal, calls started without the lock
// when it runs or cannot, and follows it to its end.
func (h *Host) startServerLocked(creator *client, p ahp.CreateTerminalParams, started func(*terminal, error)) error {
	if h.opts.Runner == nil {
		return errNoRunner
	}
	if err := h.admitServerLocked(creator, p.Channel); err != nil {
		return err
	}
	h.starting[p.Channel] = true
	h.work.Go(func() {
		t, err := h.startServer(creator, p)
		started(t, err)
		if err == nil {
			defer t.proc().Kill()
			h.follow(t, t.proc())
		}
	})
	return nil
}

func (h *Host) admitServerLocked(cl *client, uri string) error {
	servers := len(h.starting)
	for _, t := range h.order {
		if !t.remote() {
			servers++
		}
	}
	switch {
	case h.closed || h.draining.Load():
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "the host is going away")
	case h.terminals[uri] != nil || h.byID[idOf(uri)] != nil || h.starting[uri] || h.sessions.Session(uri) != nil:
		return errExists
	case servers >= maxServerTerminals:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d terminals at this host", maxServerTerminals)
	}
	return h.admitTerminalLocked(cl)
}

// startServer starts a process for a terminal that is listed in Host.starting. The error
// may be sent to the client that asked.
func (h *Host) startServer(creator *client, p ahp.CreateTerminalParams) (*terminal, error) {
	state := stateOf(&p)
	state.Meta = ahp.TerminalMeta{} // a shell of the host does not continue another terminal
	state.Cols, state.Rows = cmp.Or(state.Cols, output.DefaultCols), cmp.Or(state.Rows, output.DefaultRows)
	proc, err := h.opts.Runner.Start(h.ctx, shells.Request{
		URI: p.Channel, Name: p.Name, Cwd: p.Cwd, Cols: int(state.Cols), Rows: int(state.Rows),
	})
	h.mu.Lock()
	delete(h.starting, p.Channel)
	if err != nil {
		h.mu.Unlock()
		h.log.Warn().Err(err).Msg("starting a terminal failed")
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the terminal could not be started")
	}
	if err := h.sessions.Stands(p.Claim); err != nil {
		h.mu.Unlock()
		proc.Kill()
		return nil, err
	}
	t := h.addTerminalLocked(p.Channel, creator, process{proc}, state, rights.Audience{})
	t.channel.Holds = true
	h.mu.Unlock()
	h.audit(rights.AuditCreated, remote{principal: creator.principal}, rights.AuditEvent{Client: creator.id, Terminal: p.Channel, Detail: "a shell of the host's"})
	return t, nil
}

// follow appends a process's events until it ends. While the terminal is held, it does
// not read on.
func (h *Host) follow(t *terminal, proc shells.Process) {
	for {
		ev, err := proc.Next(h.ctx)
		h.mu.Lock()
		if err != nil || t.channel.Ended() || h.draining.Load() {
			if !h.closed {
				h.exitLocked(t)
			}
			h.mu.Unlock()
			return
		}
		wait := h.eventLocked(t, ev)
		dropped := t.out.Pending()
		h.mu.Unlock()
		if dropped {
			t.settle()
		}
		if wait == nil {
			continue
		}
		select {
		case <-wait:
		case <-h.ctx.Done():
		}
	}
}

// eventLocked applies one event. If it returns a channel, reading must pause until that
// is closed.
func (h *Host) eventLocked(t *terminal, ev shells.Event) (wait <-chan struct{}) {
	if ev.Action != nil {
		h.applyLocked(t, printable(ev.Action), nil)
		return nil
	}
	text, err := output.Clean(jsonspan.AppendQuote(nil, ev.Text))
	if err != nil {
		return nil // impossible: it was quoted here
	}
	t.out.Text(text)
	t.addedLocked()
	return t.channel.Pace()
}

// actServerLocked applies a client's action to a server-executed terminal. If the action
// is refused, it returns the reason. It calls the process without the lock.
func (c *conn) actServerLocked(t *terminal, a ahp.Action, origin *ahp.Origin) (reason string) {
	h := c.h
	var err error
	if concernsProcess(a) { // of two concurrent claims, the second is judged by the state after the first
		h.mu.Unlock()
		err = actProcess(t.proc(), a)
		h.mu.Lock()
	}
	switch {
	case err != nil:
		return err.Error()
	case t.channel.Ended():
		return "the terminal has exited"
	}
	if a.Type() != ahp.ActionTerminalInput {
		h.applyLocked(t, a, origin)
		return ""
	}
	// Input changes no state, and concerns nobody else.
	c.directLocked(h.pieceLocked(t.uri, a, origin))
	return ""
}

func concernsProcess(a ahp.Action) bool {
	return a.Type() == ahp.ActionTerminalInput || a.Type() == ahp.ActionTerminalResized
}

// actProcess carries out an action on the process itself.
func actProcess(proc shells.Process, a ahp.Action) error {
	switch a := a.(type) {
	case ahp.TerminalInput:
		return proc.Input(a.Data)
	case ahp.TerminalResized:
		return proc.Resize(int(a.Cols), int(a.Rows))
	}
	return nil
}
