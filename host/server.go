package host

import (
	"cmp"
	"time"

	"tether/ahp"
	"tether/host/output"
	"tether/host/rights"
	"tether/host/shells"
	"tether/host/terminals"
	"tether/internal/jsonspan"
	"tether/internal/retry"
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
	return h.startServerLocked(c.link.Client, p, func(_ *terminals.Terminal, err error) {
		if err != nil {
			_ = r.ReplyError(err) // fails only with the connection
			return
		}
		_ = r.Reply(nil) // likewise
	})
}

// startServerLocked starts a server-executed terminal, calls started without the lock
// when it runs or cannot, and follows it to its end.
func (h *Host) startServerLocked(creator *terminals.Client, p ahp.CreateTerminalParams, started func(*terminals.Terminal, error)) error {
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
			defer t.Proc().Kill()
			h.follow(t, t.Proc())
		}
	})
	return nil
}

func (h *Host) admitServerLocked(cl *terminals.Client, uri string) error {
	servers := len(h.starting)
	for _, t := range h.terminals.Listed {
		if !t.Remote() {
			servers++
		}
	}
	switch {
	case h.closed || h.draining.Load():
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "the host is going away")
	case h.terminals.ByURI[uri] != nil || h.terminals.ByID[terminals.IDOf(uri)] != nil || h.starting[uri] || h.sessions.Session(uri) != nil:
		return terminals.ErrExists
	case servers >= maxServerTerminals:
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "more than %d terminals at this host", maxServerTerminals)
	}
	return h.terminals.AdmitTerminal(cl)
}

// startServer starts a process for a terminal that is listed in Host.starting. The error
// may be sent to the client that asked.
func (h *Host) startServer(creator *terminals.Client, p ahp.CreateTerminalParams) (*terminals.Terminal, error) {
	state := terminals.StateOf(&p)
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
	t := h.terminals.AddTerminal(p.Channel, creator, terminals.Process{Proc: proc}, state, rights.Audience{})
	t.Channel.Holds = true
	h.mu.Unlock()
	h.audit(rights.AuditCreated, remote{principal: creator.Who}, rights.AuditEvent{Client: creator.ID(), Terminal: p.Channel, Detail: "a shell of the host's"})
	return t, nil
}

// follow appends a process's events until it ends. While the terminal is held, it does
// not read on.
func (h *Host) follow(t *terminals.Terminal, proc shells.Process) {
	for {
		ev, err := proc.Next(h.ctx)
		h.mu.Lock()
		if err != nil || t.Channel.Ended() || h.draining.Load() {
			if !h.closed {
				h.terminals.Exit(t)
			}
			h.mu.Unlock()
			return
		}
		wait := h.eventLocked(t, ev)
		dropped := t.Out.Pending()
		h.mu.Unlock()
		if dropped {
			t.Settle()
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
func (h *Host) eventLocked(t *terminals.Terminal, ev shells.Event) (wait <-chan struct{}) {
	if ev.Action != nil {
		h.terminals.Apply(t, terminals.Printable(ev.Action), nil)
		return nil
	}
	text, err := output.Clean(jsonspan.AppendQuote(nil, ev.Text))
	if err != nil {
		return nil // impossible: it was quoted here
	}
	t.Out.Text(text)
	t.Added()
	return t.Channel.Pace()
}

// actServerLocked applies a client's action to a server-executed terminal. If the action
// is refused, it returns the reason. It calls the process without the lock.
func (c *conn) actServerLocked(t *terminals.Terminal, a ahp.Action, origin *ahp.Origin) (reason string) {
	h := c.h
	var err error
	if concernsProcess(a) { // of two concurrent claims, the second is judged by the state after the first
		h.mu.Unlock()
		err = actProcess(t.Proc(), a)
		h.mu.Lock()
	}
	switch {
	case err != nil:
		return err.Error()
	case t.Channel.Ended():
		return "the terminal has exited"
	}
	if a.Type() != ahp.ActionTerminalInput {
		h.terminals.Apply(t, a, origin)
		return ""
	}
	// Input changes no state, and concerns nobody else.
	c.Tell(h.envelopes.Piece(t.URI, a, origin))
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

// every calls do at that interval until the host closes.
func (h *Host) every(interval time.Duration, do func()) {
	for retry.Wait(h.ctx, interval) {
		do()
	}
}
