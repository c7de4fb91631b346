package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"tether/internal/jsonspan"
	tscreen "tether/screen"
)

// asker asks the person at the editor whether a command may run. The ids of its requests
// differ from those of the agent, and the editor's answers to them are not passed to the
// agent.
type asker struct {
	prefix string // of the ids
	out    *writer

	mu      sync.Mutex
	asked   int                             // requests so far
	waiting map[string]chan json.RawMessage // result by id of the request; 1 slot, sent to once; a nil result stands for an error
}

func newAsker(prefix string, out *writer) *asker {
	return &asker{prefix: prefix, out: out, waiting: map[string]chan json.RawMessage{}}
}

// The ids of the options that the person can choose.
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

// ask asks whether a command may run. reason says why approval is needed. The question is
// a tool call of its own, because it is not known to which of the agent's calls the
// command belongs. ask waits until the person answers, ctx ends or the editor is gone. It
// returns context.Canceled if the editor cancels the turn.
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
	case <-ctx.Done(): // the person has answered in another interface, or the answer is no longer needed
		a.tell(rpcLine("$/cancel_request", "", map[string]string{"requestId": id}))
		a.tell(callKey{session, id}.line(toolCallUpdate{Status: "completed"}))
		return false, ctx.Err()
	}
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = jsonspan.Unmarshal(result, &r) // an invalid answer counts as a refusal
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

// tell sends a line and ignores errors: nothing depends on the line.
func (a *asker) tell(line []byte) {
	_ = a.out.send(context.Background(), func() []byte { return line })
}

// heard reports whether m is the editor's answer to one of the asker's requests, and
// hands it to ask. A late answer is dropped.
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

// rpcLine returns a request, or a notification if id is "".
func rpcLine(method, id string, params any) []byte {
	return append(encode(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      string `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params}), '\n')
}

// question returns the text for the person: the command, its directory, the names of the
// variables that are set for it, and the reason. The agent wrote most of it, so unusual
// characters are spelt out.
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

// visible returns s with a name such as <U+202E> in place of each character that is
// invisible or changes how others look.
func visible(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if r == '\n' || r == '\t' || tscreen.Clean(string(r)) != "" {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "<U+%04X>", r)
	}
	return b.String()
}

// text returns the command as a line for people.
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
