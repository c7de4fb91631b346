package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// asker asks the person at the editor. Its requests have ids that neither the editor nor the agent uses, and their answers do not reach the
// agent.
type asker struct {
	prefix string // of its ids
	out    *writer

	mu      sync.Mutex
	asked   int
	waiting map[string]chan json.RawMessage // results by id; each has 1 slot; nil stands for an error
}

func newAsker(prefix string, out *writer) *asker {
	return &asker{prefix: prefix, out: out, waiting: map[string]chan json.RawMessage{}}
}

// The options that a person has.
const (
	optionRun  = "run"
	optionDont = "refuse"
)

type permissionRequest struct {
	SessionID string             `json:"sessionId"`
	ToolCall  permissionCall     `json:"toolCall"`
	Options   []permissionOption `json:"options"`
}

type permissionCall struct {
	ToolCallID string            `json:"toolCallId"`
	Title      string            `json:"title,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Status     string            `json:"status"`
	Content    []json.RawMessage `json:"content,omitempty"`
}

type permissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

var options = []permissionOption{{optionRun, "Run it", "allow_once"}, {optionDont, "Do not run it", "reject_once"}}

// ask asks whether a command may run, and why that is asked, in a tool call of its own: which of the agent's it belongs to is not known. It
// waits for the answer, for ctx or for the editor's end. A turn that is cancelled meanwhile gives context.Canceled.
func (a *asker) ask(ctx context.Context, session string, c Command, reason string) (bool, error) {
	id, answer := a.begin()
	defer a.end(id)
	call := permissionCall{
		ToolCallID: id, Title: c.Name, Kind: "execute", Status: "pending",
		Content: []json.RawMessage{textBlock(c.question(reason))},
	}
	if err := a.out.send(ctx, func() []byte {
		return rpcLine("session/request_permission", id, permissionRequest{session, call, options})
	}); err != nil {
		return false, err
	}
	var result json.RawMessage
	select {
	case result = <-answer:
	case <-a.out.closed:
		return false, context.Canceled
	case <-ctx.Done(): // somebody has answered elsewhere, or the answer is no longer needed
		a.tell(rpcLine("$/cancel_request", "", map[string]string{"requestId": id}))
		a.tell(callKey{session, id}.line(toolCallUpdate{Status: "completed"}))
		return false, ctx.Err()
	}
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = json.Unmarshal(result, &r) // an invalid answer allows nothing
	if r.Outcome.Outcome == "cancelled" {
		return false, context.Canceled
	}
	allowed := r.Outcome.Outcome == "selected" && r.Outcome.OptionID == optionRun
	status := "completed"
	if !allowed {
		status = "failed"
	}
	a.tell(callKey{session, id}.line(toolCallUpdate{Status: status}))
	return allowed, nil
}

func (a *asker) begin() (id string, answer chan json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	id, answer = fmt.Sprint(a.prefix, a.asked), make(chan json.RawMessage, 1)
	a.waiting[id] = answer
	return id, answer
}

func (a *asker) end(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
}

// tell sends a line that the editor may do without.
func (a *asker) tell(line []byte) {
	_ = a.out.send(context.Background(), func() []byte { return line })
}

// heard takes the editor's answer to a request of ours, also a late one.
func (a *asker) heard(m message) bool {
	id := stringOf(m.id)
	if !strings.HasPrefix(id, a.prefix) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer := a.waiting[id]; answer != nil {
		delete(a.waiting, id)
		answer <- append(json.RawMessage(nil), m.result...)
	}
	return true
}

// rpcLine is a request, or without id a notification.
func rpcLine(method, id string, params any) []byte {
	return append(encode(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      string `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params}), '\n')
}

// question is everything that the person must know: the command, its directory, and the variables that are set for it. An agent has written
// it.
func (c Command) question(reason string) string {
	text := fenced(visible(c.text())) + "\n\nin " + strings.ReplaceAll(visible(c.Cwd), "\n", `\n`)
	if len(c.Env) > 0 {
		names := make([]string, len(c.Env))
		for i, v := range c.Env {
			names[i], _, _ = strings.Cut(v, "=")
		}
		text += "\n\nwith " + strings.ReplaceAll(visible(strings.Join(names, " ")), "\n", `\n`)
	}
	return text + "\n\n" + visible(reason)
}

// visible is text in which invisible characters, and those that change the look of others, are spelt out.
func visible(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if r == '\n' || r == '\t' || !hidden(r) && !unicode.Is(unicode.Cf, r) && r >= ' ' && r != 0x7f {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "<U+%04X>", r)
	}
	return b.String()
}

// text is the command as people read it.
func (c Command) text() string {
	if c.Line != "" {
		return c.Line
	}
	words := make([]string, len(c.Argv))
	for i, w := range c.Argv {
		if words[i] = w; !isWord(w) || w == "" {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
