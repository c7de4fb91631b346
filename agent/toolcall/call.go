package toolcall

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tether/ahp"
	"tether/internal/jsonspan"
)

// Bounds of calls.
const (
	maxRunning   = 8         // calls of one host at a time
	perMinute    = 120       // calls of one host in a minute
	maxArguments = 256 << 10 // bytes
	maxText      = 192 << 10 // bytes of an answer, as the JSON string that is sent
	maxFailure   = 4 << 10   // bytes of an error's text; it is sent twice
)

// Call is a call of a tool that is to be carried out.
type Call struct {
	Session   string          // Tag of the session it comes from
	Agent     string          // the agent's name according to the host; only shown; "" if unknown
	Tool      string          // one of Options.Tools
	Arguments json.RawMessage // an object
}

// Answer is the result of a call.
type Answer struct {
	Text     string             // for the model: the result or the error
	Failed   bool               // the call failed; Text has the reason
	Terminal *ahp.TerminalBlock // the terminal of the call, as the host knows it; nil if there is none
}

// Record describes a call's end, for the audit log.
type Record struct {
	Session string // Tag of the session
	Agent   string // as in Call
	Tool    string
	Failed  bool
	Void    bool // the host removed the request before there was an answer
	Refused bool // it was not carried out
	Took    time.Duration
}

// Tag returns a short name for the session with this URI, made of hexadecimal digits.
func Tag(session string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:6])
}

// call is one call. It is guarded by the desk's mutex, except for the fields set at its
// creation.
type call struct {
	// Set when it is made.
	key     key
	session string // URI
	id      string // of the request
	chat    string
	ref     ahp.ToolCallRef
	tool    string
	agent   string
	input   ahp.ToolCall
	asked   time.Time
	cancel  context.CancelCauseFunc // nil while the call does not run

	ended  bool
	void   bool // nobody waits for the answer
	answer Answer
	queued bool // in the desk's outbox
	sentOn int  // the connection on which it was told, 0 for none
}

var (
	errOff  = errors.New("this machine withdrew its tools before the call was done")
	errVoid = errors.New("the host no longer waits for the answer")
)

// lostText is the answer to a call that began earlier and whose outcome was not kept,
// mostly because an earlier daemon began it.
const lostText = "the call began earlier, and its result is no longer known: this machine's daemon was restarted, or the answer was already sent. Calls are not repeated. list_terminals shows what runs"

// arguments returns the call's arguments, or their fault.
func arguments(c ahp.ToolCall) (json.RawMessage, error) {
	if len(c.ToolInput) > maxArguments {
		return nil, fmt.Errorf("toolInput has %d bytes, at most %d are allowed", len(c.ToolInput), maxArguments)
	}
	return c.Arguments()
}

// bounded returns the answer with its text cut so that it fits a message.
func (a Answer) bounded() Answer {
	a.Text = strings.ToValidUTF8(a.Text, "\uFFFD")
	if a.Failed && len(a.Text) > maxFailure {
		a.Text = strings.ToValidUTF8(a.Text[:maxFailure], "") + "…"
	}
	if n := len(jsonspan.AppendQuoteString(nil, a.Text)); n > maxText {
		a.Failed, a.Text = true, fmt.Sprintf("the answer has %d bytes as JSON, at most %d are allowed: ask for less, for example with maxBytes or tail", n, maxText)
	}
	return a
}

// action returns the action that tells the host the answer. It cannot decline the call,
// as AHP demands for unknown tools: declining has no effect on a call that is already
// running.
func (c *call) action(title string) ahp.Action {
	r := ahp.ToolResult{Success: !c.answer.Failed, PastTenseMessage: ahp.Text{Value: title + ": done"}, Content: []ahp.ToolContent{ahp.TextContent(c.answer.Text)}}
	if c.answer.Failed {
		r.PastTenseMessage.Value, r.Error = title+": failed", &ahp.ToolError{Message: c.answer.Text}
	}
	if t := c.answer.Terminal; t != nil {
		r.Content = append(r.Content, ahp.ToolContent{Type: ahp.ContentTerminal, Terminal: t})
	}
	return ahp.ChatToolCallComplete{ToolCallRef: c.ref, Result: r}
}

// answerable returns why a request is not a call for this client, or nil if it is one.
func answerable(r ahp.InputRequest, clientID string) error {
	switch {
	case r.Kind != ahp.InputToolClientExecution:
		return errors.New("another kind of request")
	case r.ClientID != clientID:
		return errors.New("the request is for another client")
	case r.ToolCall == nil || r.ToolCall.Status != ahp.ToolRunning:
		return errors.New("no tool call is running")
	case r.ToolCall.Contributor != nil && !r.ToolCall.CalledAt(clientID):
		return errors.New("the tool belongs to another client")
	case r.ID == "" || len(r.ID) > ahp.MaxURI:
		return errors.New("the id is empty or too long")
	}
	ref := ahp.ToolCallRef{TurnID: r.TurnID, ToolCallID: r.ToolCall.ToolCallID}
	if err := ref.Validate(); err != nil {
		return err
	}
	return ahp.CheckURI(r.Chat)
}
