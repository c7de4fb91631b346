package sessions

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

// Claims of sessions, which hold shells of the host alone:
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

// holds reports whether the claim is the session's, in use by a call or not.
func (s *Session) holds(c ahp.Claim) bool { return c.Kind == ahp.ClaimSession && c.Session == s.uri }

// Grant completes the claim that a client asks for, or returns why the client cannot have
// it. Only the host knows which shells a call uses.
func (b *Book) Grant(c Conn, claim ahp.Claim) (ahp.Claim, error) {
	if claim.Kind != ahp.ClaimSession {
		return claim, nil
	}
	s := b.named(claim.Session)
	switch {
	case s == nil || !s.Open(c):
		return claim, errors.New("claim: no such session")
	case claim.Chat != "" && claim.Chat != s.chat.URI(): // it is missing before 0.9.0
		return claim, errors.New("claim: no such chat in the session")
	case claim.TurnID != "" || claim.ToolCallID != "":
		return claim, errors.New("claim: only the host says which tool call uses a terminal")
	}
	return s.claim(nil), nil
}

// Judge returns a client's action on a shell with that claim in the form to be applied,
// or why sessions forbid it.
func (b *Book) Judge(c Conn, held ahp.Claim, a ahp.Action) (ahp.Action, string) {
	const inUse = "the terminal is in use by a tool call: detach it first, by claiming it for its session alone"
	switch a := a.(type) {
	case ahp.TerminalInput:
		switch {
		case held.Kind != ahp.ClaimSession:
		case held.ToolCallID != "":
			return a, inUse
		default:
			return a, "the terminal is held by a session: claim it first"
		}
	case ahp.TerminalClaimed:
		claim, err := b.Grant(c, a.Claim)
		switch {
		case err != nil:
			return a, err.Error()
		case held.Kind != ahp.ClaimSession:
		case held.ToolCallID != "" && (claim.Kind != ahp.ClaimSession || claim.Session != held.Session):
			return a, inUse
		case claim.Kind == ahp.ClaimClient && claim.ClientID != c.Client().ID():
			return a, "a client may claim a session's terminal only for itself"
		case claim.Kind == ahp.ClaimSession && claim.Session != held.Session:
			return a, "the terminal is held by another session"
		}
		return ahp.TerminalClaimed{Claim: claim}, ""
	}
	return a, ""
}

// Stands returns an error if the session of a claim has ended.
func (b *Book) Stands(claim ahp.Claim) error {
	if claim.Kind == ahp.ClaimSession && b.byURI[claim.Session] == nil {
		return jsonrpc.Errorf(ahp.CodeSessionNotFound, "the session has ended")
	}
	return nil
}

var (
	// ErrDetached is returned when a call does not have a shell any more: a client has
	// detached or claimed it, or it was given up.
	ErrDetached = errors.New("host: the terminal was detached from the tool call")
	// ErrShells is returned when a session holds as many shells as it may.
	ErrShells = errors.New("host: the session has too many shells")
)

// Call is a tool call of the host's own, which may use shells of the host. Its methods
// take the lock, and may be called from any goroutine.
type Call struct {
	*Caller
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
func (c *Caller) Begin(i CallInfo) (*Call, error) {
	if err := checkArguments(i.Input); err != nil {
		return nil, err
	}
	start := ahp.ChatToolCallStart{ToolName: i.Name, DisplayName: displayName(ahp.ToolDefinition{Name: i.Name, Title: i.Title})}
	ready := ahp.ChatToolCallReady{InvocationMessage: ahp.Text{Value: i.Message}, Confirmed: ahp.ConfirmedNotNeeded}
	if len(i.Input) > 0 {
		ready.ToolInput = ahp.NewToolInput(i.Input)
	}
	defer c.lock()()
	call, err := c.s.begin(start, ready, i.Agent)
	if err != nil {
		return nil, err
	}
	return &Call{c, call}, nil
}

// Open starts a shell of 80×24 that the call uses and shows it in the call; it returns
// the shell's URI. It blocks until the process has started, or ctx ends: the shell then
// still appears, if the process starts.
func (c *Call) Open(ctx context.Context, name, cwd string) (string, error) {
	return c.OpenAmong(ctx, name, cwd, math.MaxInt)
}

// OpenAmong is Open for a session that may hold most shells, including those that are
// being started. The error is ErrShells if it holds them already.
func (c *Call) OpenAmong(ctx context.Context, name, cwd string, most int) (string, error) {
	uri := ahp.NewTerminalURI(rand.Text())
	opened := make(chan error, 1)
	if err := c.start(ahp.CreateTerminalParams{Channel: uri, Name: ahp.CleanTitle(name), Cwd: cwd, Claim: c.s.claim(c.call)}, most, opened); err != nil {
		return "", err
	}
	select {
	case err := <-opened:
		return uri, err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// start starts a shell, and sends on opened once it runs or cannot.
func (c *Call) start(p ahp.CreateTerminalParams, most int, opened chan<- error) error {
	defer c.lock()()
	s := c.s
	switch {
	case !s.runs(c.call):
		return ErrDetached
	case len(s.held())+s.starting >= most:
		return ErrShells
	}
	err := s.book.o.Shells.Start(s.holder, p, func(t Shell, err error) { opened <- c.started(t, err) })
	if err == nil {
		s.starting++
	}
	return err
}

// started shows a started shell in the call.
func (c *Call) started(t Shell, err error) error {
	defer c.lock()()
	s := c.s
	switch s.starting--; {
	case err != nil:
		return err
	case s.runs(c.call):
		c.show()
	case c.call.uses(t.State().Claim): // the call has ended while the process was started
		t.Claim(s.claim(nil))
		return ErrDetached
	}
	return nil
}

// Claim takes back a shell that the session holds: one that an earlier call has left
// running. ErrDetached if another client holds it.
func (c *Call) Claim(uri string) error {
	defer c.lock()()
	t := c.s.book.o.Shells.Shell(uri)
	if t == nil || !c.s.runs(c.call) || t.State().Claim != c.s.claim(nil) {
		return ErrDetached
	}
	t.Claim(c.s.claim(c.call))
	c.show()
	return nil
}

// Input types text into a shell that the call uses.
func (c *Call) Input(uri, text string) error {
	t, err := c.using(uri)
	if err != nil {
		return err
	}
	return t.Input(text)
}

func (c *Call) using(uri string) (Shell, error) {
	defer c.lock()()
	t := c.s.book.o.Shells.Shell(uri)
	if t == nil || !c.call.uses(t.State().Claim) {
		return nil, ErrDetached
	}
	return t, nil
}

// Uses returns nil if the call uses the shell, else ErrDetached.
func (c *Call) Uses(uri string) error {
	_, err := c.using(uri)
	return err
}

// Wait waits until a shell that the call uses has exited, and returns nil; ErrDetached if
// the call does not use it any more.
func (c *Call) Wait(ctx context.Context, uri string) error {
	return c.until(ctx, uri, func(t *ahp.TerminalState) bool { return t.Lifecycle.Exited() })
}

// Reports waits until a shell that the call uses reports its commands, if it will, or has
// exited; reports is false if it will not. The error is ErrDetached if the call does not
// use the shell any more.
func (c *Call) Reports(ctx context.Context, uri string) (reports bool, err error) {
	t, err := c.using(uri)
	if err != nil {
		return false, err
	}
	unlock := c.lock()
	reports = t.State().SupportsCommandDetection
	unlock()
	if reports || !t.Reports() {
		return reports, nil
	}
	return true, c.until(ctx, uri, func(t *ahp.TerminalState) bool { return t.SupportsCommandDetection || t.Lifecycle.Exited() })
}

// until waits until the state of a shell that the call uses is as over wants it. over is
// called with the lock.
func (c *Call) until(ctx context.Context, uri string, over func(*ahp.TerminalState) bool) error {
	for {
		moved, err := c.look(uri, over)
		if moved == nil {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.s.book.o.Context.Done():
			return errClosing
		}
	}
}

// look returns what to wait for before the next look; nil if there is no need to wait.
func (c *Call) look(uri string, over func(*ahp.TerminalState) bool) (moved <-chan struct{}, err error) {
	defer c.lock()()
	t := c.s.book.o.Shells.Shell(uri)
	switch {
	case t == nil || !c.call.uses(t.State().Claim):
		return nil, ErrDetached
	case over(t.State()):
		return nil, nil
	}
	return t.Next(), nil
}

// End ends the call, once. Its shells, which are added to the result, stay the session's:
// running ones go on in the background. ErrDetached if it has ended already, as when the
// turn was cancelled or the session disposed of.
func (c *Call) End(result ahp.ToolResult) error {
	defer c.lock()()
	if !c.s.runs(c.call) {
		return ErrDetached
	}
	result.Content = append(result.Content, c.blocks()...)
	c.s.finish(c.call, result, nil)
	return nil
}

// show shows the shells of the call in the chat.
func (c *Call) show() {
	c.s.say(ahp.ChatToolCallContentChanged{ToolCallRef: c.call.ref, Content: c.blocks()}, nil)
}

func (c *Call) blocks() (all []ahp.ToolContent) {
	for _, t := range c.s.held() {
		if c.call.uses(t.State().Claim) {
			all = append(all, block(t))
		}
	}
	return all
}

// tailBytes is how much of a shell's output is shown to clients that do not subscribe.
const tailBytes = 2 << 10

// block shows a shell in a chat, with the outcome if it has exited.
func block(t Shell) ahp.ToolContent {
	state := t.State()
	b := ahp.TerminalContent(t.URI(), state.Title, true)
	if state.Lifecycle.Exited() {
		text, cut := t.Tail(tailBytes)
		b.Terminal.Result = &ahp.TerminalResult{ExitCode: state.Lifecycle.ExitCode, Preview: &text, Truncated: &cut}
	}
	return b
}

// Kill ends and removes a shell that the session holds. A call that uses it gets
// ErrDetached, as does a request for a shell that the session does not hold.
func (c *Caller) Kill(uri string) error {
	unlock := c.lock()
	s := c.s
	t := s.book.o.Shells.Shell(uri)
	if t == nil || !s.holds(t.State().Claim) {
		unlock()
		return ErrDetached
	}
	t.Dispose()
	unlock()
	s.book.o.Audit(rights.AuditDisposed, *s.holder.Principal(), rights.AuditEvent{Client: s.uri, Terminal: uri})
	t.Kill()
	return nil
}

// Hold says how a session holds a terminal.
type Hold int

// The ways.
const (
	Others Hold = iota // it does not, and has not started it
	Taken              // it has started it, and a client has taken it over
	Idle               // it does, and no call uses it
	InUse              // it does, and a call uses it
)

// Hold returns how the session holds the terminal with that URI.
func (c *Caller) Hold(uri string) Hold {
	defer c.lock()()
	t := c.s.book.o.Shells.Shell(uri)
	switch {
	case t == nil:
		return Others
	case c.s.holds(t.State().Claim) && t.State().Claim.ToolCallID != "":
		return InUse
	case c.s.holds(t.State().Claim):
		return Idle
	case t.Creator() == c.s.holder:
		return Taken
	}
	return Others
}
