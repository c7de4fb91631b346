package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"

	"tether/ahp"
	"tether/host/rights"
	"tether/jsonrpc"
)

// Session claims, of server-executed terminals alone:
//
//	in use by a call ──(call ends, or a client detaches it)──▶ the session's ◀──(its holder gives it)── a client's
//	       ▲───────────────────(Call.Claim)─────────────────────────┘  └────────────(a client claims it)──────▲

// claim is the session's claim, in use by call unless that is nil.
func (s *Session) claim(call *toolCall) ahp.Claim {
	c := ahp.Claim{Kind: ahp.ClaimSession, Session: s.uri, Chat: s.chat.URI()}
	if call != nil {
		c.TurnID, c.ToolCallID = call.ref.TurnID, call.ref.ToolCallID
	}
	return c
}

// holds reports whether the session has t, in use by a call or not.
func (s *Session) holds(t *terminal) bool {
	c := t.state.Claim
	return c.Kind == ahp.ClaimSession && c.Session == s.uri
}

// uses reports whether the call has t in use.
func (call *toolCall) uses(t *terminal) bool {
	c := t.state.Claim
	return c.Kind == ahp.ClaimSession && c.ToolCallID == call.ref.ToolCallID && c.TurnID == call.ref.TurnID
}

// grantLocked completes a session claim that a client asks for, or returns why it cannot
// have it. Only the host knows which terminals a call uses.
func (c *conn) grantLocked(claim ahp.Claim) (ahp.Claim, error) {
	if claim.Kind != ahp.ClaimSession {
		return claim, nil
	}
	s := c.h.sessions[claim.Session]
	switch {
	case s == nil || s.uri != claim.Session || !s.open(c):
		return claim, errors.New("claim: no such session")
	case claim.Chat != "" && claim.Chat != s.chat.URI(): // it is missing before 0.9.0
		return claim, errors.New("claim: no such chat in the session")
	case claim.TurnID != "" || claim.ToolCallID != "":
		return claim, errors.New("claim: only the host says which tool call uses a terminal")
	}
	return s.claim(nil), nil
}

// claimedLocked is an action on a server-executed terminal in the form to be applied, or
// why it is refused, with regard to session claims.
func (c *conn) claimedLocked(t *terminal, a ahp.Action) (ahp.Action, string) {
	held := t.state.Claim
	switch a := a.(type) {
	case ahp.TerminalInput:
		switch {
		case held.Kind != ahp.ClaimSession:
		case held.ToolCallID != "":
			return a, "the terminal is in use by a tool call: detach it first, by claiming it for its session alone"
		default:
			return a, "the terminal is held by a session: claim it first"
		}
	case ahp.TerminalClaimed:
		claim, err := c.grantLocked(a.Claim)
		switch {
		case err != nil:
			return a, err.Error()
		case held.Kind != ahp.ClaimSession:
		case held.ToolCallID != "" && (claim.Kind != ahp.ClaimSession || claim.Session != held.Session):
			return a, "the terminal is in use by a tool call: detach it first, by claiming it for its session alone"
		case claim.Kind == ahp.ClaimClient && claim.ClientID != c.client.id:
			return a, "a client may claim a session's terminal only for itself"
		case claim.Kind == ahp.ClaimSession && claim.Session != held.Session:
			return a, "the terminal is held by another session"
		}
		return ahp.TerminalClaimed{Claim: claim}, ""
	}
	return a, ""
}

// grant is grantLocked for a terminal that is to be created.
func (c *conn) grant(claim *ahp.Claim) error {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	granted, err := c.grantLocked(*claim)
	if err != nil {
		return invalid(err)
	}
	*claim = granted
	return nil
}

// heldStillLocked says why a terminal that has been started cannot be had: its session
// has ended meanwhile.
func (h *Host) heldStillLocked(claim ahp.Claim) error {
	if claim.Kind == ahp.ClaimSession && h.sessions[claim.Session] == nil {
		return jsonrpc.Errorf(ahp.CodeSessionNotFound, "the session has ended")
	}
	return nil
}

// ErrDetached is returned when a call does not have a terminal any more: a client has
// detached or claimed it, or it was given up.
var ErrDetached = errors.New("host: the terminal was detached from the tool call")

// Call is a tool call of the host's own, which may use server-executed terminals. Its
// methods may be called from any goroutine.
type Call struct {
	s    *Session
	call *toolCall
}

// CallInfo describes a tool call of the host's own.
type CallInfo struct {
	Name    string          // of the tool
	Title   string          // the same for people; "" is Name
	Message string          // its present activity, for people
	Input   json.RawMessage // its arguments, an object; nil is the empty one
	Agent   string          // the calling agent, for people to read; may be empty
}

// Begin begins a tool call of the host's own. End it.
func (s *Session) Begin(i CallInfo) (*Call, error) {
	if err := checkArguments(i.Input); err != nil {
		return nil, err
	}
	start := ahp.ChatToolCallStart{ToolName: i.Name, DisplayName: displayName(ahp.ToolDefinition{Name: i.Name, Title: i.Title})}
	ready := ahp.ChatToolCallReady{InvocationMessage: ahp.Text{Value: i.Message}, Confirmed: ahp.ConfirmedNotNeeded}
	if len(i.Input) > 0 {
		ready.ToolInput = ahp.NewToolInput(i.Input)
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	call, err := s.beginLocked(start, ready, i.Agent)
	if err != nil {
		return nil, err
	}
	return &Call{s, call}, nil
}

// Open starts a terminal of 80×24 that the call uses and shows it in the call; it returns
// the terminal's URI. It blocks until the process has started, or ctx ends: the terminal
// then still appears, if the process starts.
func (c *Call) Open(ctx context.Context, name, cwd string) (string, error) {
	return c.open(ctx, name, cwd, math.MaxInt)
}

// open is Open for a session that may hold most terminals, including those that are being
// started.
func (c *Call) open(ctx context.Context, name, cwd string, most int) (string, error) {
	s, h := c.s, c.s.h
	p := ahp.CreateTerminalParams{Channel: ahp.NewTerminalURI(rand.Text()), Name: cleanTitle(name), Cwd: cwd, Claim: s.claim(c.call)}
	started := make(chan error, 1)
	h.mu.Lock()
	err := h.admitServerLocked(s.holder, p.Channel)
	switch {
	case h.opts.Runner == nil:
		err = errNoRunner
	case err == nil && !c.runsLocked():
		err = ErrDetached
	case err == nil && len(h.heldLocked(s))+s.starting >= most:
		err = errShells
	}
	if err == nil {
		h.starting[p.Channel] = true
		s.starting++
		h.work.Go(func() { c.run(p, started) })
	}
	h.mu.Unlock()
	if err != nil {
		return "", err
	}
	select {
	case err := <-started:
		return p.Channel, err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// run starts the process, says so, and follows it to its end.
func (c *Call) run(p ahp.CreateTerminalParams, started chan<- error) {
	s, h := c.s, c.s.h
	t, err := h.startServer(s.holder, p)
	h.mu.Lock()
	s.starting--
	h.mu.Unlock()
	if err != nil {
		started <- err
		return
	}
	defer t.proc().Kill()
	h.mu.Lock()
	if c.runsLocked() {
		c.showLocked()
	} else if c.call.uses(t) { // it has ended while the process was started
		h.applyLocked(t, ahp.TerminalClaimed{Claim: s.claim(nil)}, nil)
		err = ErrDetached
	}
	h.mu.Unlock()
	started <- err
	h.follow(t, t.proc())
}

// runsLocked reports whether the call is under way.
func (c *Call) runsLocked() bool { return c.s.calls[c.call.ref.ToolCallID] == c.call }

// Claim takes back a terminal that the session holds: one that an earlier call has left
// running. ErrDetached if another client holds it.
func (c *Call) Claim(terminal string) error {
	h := c.s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[terminal]
	if t == nil || !c.runsLocked() || t.state.Claim != c.s.claim(nil) {
		return ErrDetached
	}
	h.applyLocked(t, ahp.TerminalClaimed{Claim: c.s.claim(c.call)}, nil)
	c.showLocked()
	return nil
}

// Input types text into a terminal that the call uses.
func (c *Call) Input(terminal, text string) error {
	t, err := c.using(terminal)
	if err != nil {
		return err
	}
	return t.proc().Input(text)
}

func (c *Call) using(terminal string) (*terminal, error) {
	h := c.s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[terminal]
	if t == nil || !c.call.uses(t) {
		return nil, ErrDetached
	}
	return t, nil
}

// Wait waits until a terminal that the call uses has exited, and returns nil; ErrDetached
// if the call does not use it any more.
func (c *Call) Wait(ctx context.Context, terminal string) error {
	return c.until(ctx, terminal, func(t *ahp.TerminalState) bool { return t.Lifecycle.Exited() })
}

// Ready is Wait that also returns when the shell there reports its commands.
func (c *Call) Ready(ctx context.Context, terminal string) error {
	return c.until(ctx, terminal, func(t *ahp.TerminalState) bool { return t.SupportsCommandDetection || t.Lifecycle.Exited() })
}

// until waits until a terminal that the call uses is as over, which is called with the
// lock, wants it.
func (c *Call) until(ctx context.Context, terminal string, over func(*ahp.TerminalState) bool) error {
	h := c.s.h
	for {
		h.mu.Lock()
		t := h.terminals[terminal]
		switch {
		case t == nil || !c.call.uses(t):
			h.mu.Unlock()
			return ErrDetached
		case over(t.state):
			h.mu.Unlock()
			return nil
		}
		moved := t.moved.Next()
		h.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.ctx.Done():
			return errClosing
		}
	}
}

// Kill ends and removes a terminal that the session holds. A call that uses it gets
// ErrDetached, as does a request for a terminal that the session does not hold.
func (s *Session) Kill(terminal string) error {
	h := s.h
	h.mu.Lock()
	t := h.terminals[terminal]
	if t == nil || !s.holds(t) {
		h.mu.Unlock()
		return ErrDetached
	}
	h.disposeLocked(t, nil)
	proc := t.proc()
	h.mu.Unlock()
	h.audit(rights.AuditDisposed, remote{principal: s.holder.principal}, rights.AuditEvent{Client: s.uri, Terminal: terminal})
	if proc != nil {
		proc.Kill()
	}
	return nil
}

// End ends the call, once. Its terminals, which are added to the result, stay the
// session's: running ones go on in the background. ErrDetached if it has ended already,
// as when the turn was cancelled or the session disposed of.
func (c *Call) End(result ahp.ToolResult) error {
	h := c.s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if !c.runsLocked() {
		return ErrDetached
	}
	for _, t := range h.heldLocked(c.s) {
		if c.call.uses(t) {
			result.Content = append(result.Content, t.blockLocked())
		}
	}
	c.s.finishLocked(c.call, result, nil)
	return nil
}

// showLocked shows the terminals of the call in the chat.
func (c *Call) showLocked() {
	var blocks []ahp.ToolContent
	for _, t := range c.s.h.heldLocked(c.s) {
		if c.call.uses(t) {
			blocks = append(blocks, t.blockLocked())
		}
	}
	c.s.sayLocked(ahp.ChatToolCallContentChanged{ToolCallRef: c.call.ref, Content: blocks}, nil)
}

// previewBytes is how much of a terminal's output is shown to clients that do not
// subscribe.
const previewBytes = 2 << 10

// blockLocked shows t in a chat, with the outcome if it has exited.
func (t *terminal) blockLocked() ahp.ToolContent {
	block := ahp.TerminalContent(t.uri, t.state.Title, true)
	if !t.state.Lifecycle.Exited() {
		return block
	}
	v := t.out.View(previewBytes, 0)
	preview, truncated := string(v.AppendText(nil)), v.From > 0
	block.Terminal.Result = &ahp.TerminalResult{ExitCode: t.state.Lifecycle.ExitCode, Preview: &preview, Truncated: &truncated}
	return block
}
