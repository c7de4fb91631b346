package acp

import (
	"context"
	"encoding/json"
)

// reply returns the result of a request. It is called just before the answer is written.
type reply func() (result []byte)

// method answers one of the agent's requests in two steps. The first step is the method
// itself: it runs in the order in which the requests arrive and does not block. The
// second step is the returned function: it runs concurrently with other requests and may
// wait until ctx ends.
type method func(p *Proxy, params []byte) (func(ctx context.Context) (reply, error), error)

// methods are the client methods that the proxy serves.
var methods = map[string]method{
	"terminal/create":        (*Proxy).create,
	"terminal/output":        (*Proxy).output,
	"terminal/wait_for_exit": (*Proxy).waitForExit,
	"terminal/kill":          (*Proxy).kill,
	"terminal/release":       (*Proxy).release,
}

// fixed returns a reply with a result that is already known.
func fixed(v any) reply {
	data := encode(v)
	return func() []byte { return data }
}

// createResult is CreateTerminalResponse of the schema.
type createResult struct {
	TerminalID string     `json:"terminalId"`
	Meta       createMeta `json:"_meta"`
}

type createMeta struct {
	Tether created `json:"tether"`
}

// created says how the proxy understood the command.
type created struct {
	Shell bool   `json:"shell"` // the command was run by the shell, not as a program
	Cwd   string `json:"cwd"`
}

func (p *Proxy) create(params []byte) (func(context.Context) (reply, error), error) {
	request, err := decodeCreate(params)
	if err != nil {
		return nil, err
	}
	cwd := p.dialogue.cwd(request.SessionID)
	if request.Cwd != nil {
		cwd = *request.Cwd
	}
	if cwd == "" {
		return nil, invalid("no cwd: the request has none, and session %.80q is not known", request.SessionID)
	}
	commands := request.commands(cwd)
	for i, c := range commands {
		commands[i].Ask = func(ctx context.Context, reason string) (bool, error) {
			return p.asker.ask(ctx, request.SessionID, c, reason)
		}
	}
	_, rich := p.dialogue.state()
	return func(ctx context.Context) (reply, error) {
		t, ran, err := p.table.create(ctx, request, commands, rich)
		if err != nil {
			return nil, err
		}
		return fixed(createResult{t.id, createMeta{created{Shell: commands[ran].Line != "", Cwd: cwd}}}), nil
	}, nil
}

// outputResult is TerminalOutputResponse of the schema.
type outputResult struct {
	Output     json.RawMessage `json:"output"`
	Truncated  bool            `json:"truncated"`
	ExitStatus *exitStatus     `json:"exitStatus,omitempty"`
	Meta       *outputMeta     `json:"_meta,omitempty"`
}

// outputMeta says how many places were masked in everything that the command has printed
// so far.
type outputMeta struct {
	Masked int `json:"tether/masked"`
}

func (p *Proxy) output(params []byte) (func(context.Context) (reply, error), error) {
	t, err := p.find(params)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	out := t.out // a release that follows replaces it by a shorter one
	t.mu.Unlock()
	return func(context.Context) (reply, error) { return func() []byte { return t.result(out) }, nil }, nil
}

// result returns the answer to terminal/output. out is the output when the request
// arrived.
func (t *terminal) result(out *output) []byte {
	t.mu.Lock()
	quoted, truncated, exit, masked := out.snapshot(), out.truncated(), statusOf(t.exit), t.masked
	t.mu.Unlock()
	result := outputResult{Output: json.RawMessage("null"), Truncated: truncated, ExitStatus: exit}
	if masked > 0 {
		result.Meta = &outputMeta{masked}
	}
	rest := encode(result)
	const before = `{"output":`
	answer := make([]byte, 0, len(quoted)+len(rest))
	answer = append(append(answer, before...), quoted...) // without encoding/json, which would validate megabytes again
	return append(answer, rest[len(before+"null"):]...)
}

func (p *Proxy) waitForExit(params []byte) (func(context.Context) (reply, error), error) {
	t, err := p.find(params)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (reply, error) {
		select {
		case <-t.ended:
			return fixed(t.status()), nil
		case <-t.given:
			return nil, errReleased
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, nil
}

func (p *Proxy) kill(params []byte) (func(context.Context) (reply, error), error) {
	t, err := p.find(params)
	if err != nil {
		return nil, err
	}
	return func(context.Context) (reply, error) {
		if err := p.table.kill(t); err != nil {
			return nil, err
		}
		return fixed(struct{}{}), nil
	}, nil
}

func (p *Proxy) release(params []byte) (func(context.Context) (reply, error), error) {
	t, err := p.find(params)
	if err != nil {
		return nil, err
	}
	p.table.release(t)
	return func(context.Context) (reply, error) {
		p.table.end(t)
		return fixed(struct{}{}), nil
	}, nil
}

// find returns the terminal that the parameters name.
func (p *Proxy) find(params []byte) (*terminal, error) {
	named, err := decodeTerminal(params)
	if err != nil {
		return nil, err
	}
	return p.table.find(named.SessionID, named.TerminalID)
}
