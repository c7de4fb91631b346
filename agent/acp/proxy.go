package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"

	"tether/internal/jsonspan"
	"tether/internal/lines"
)

// Options configures a Proxy. Terminals is required.
type Options struct {
	Terminals Terminals
	Mode      Mode // "" means Take
	// ANSI keeps escape sequences in the output that the agent gets. Without it, the
	// agent gets plain text.
	ANSI bool
	// MCP is an MCP server that the proxy adds to new sessions; nil means none. Serve
	// says which agents get it; "" means ServerKnown.
	MCP   *MCPServer
	Serve Server
	// Notice receives messages for the person, one line each; nil drops them.
	Notice func(string)
}

// Pipe is the connection to one side: In has the lines from it, Out takes the lines to
// it.
type Pipe struct {
	In  io.Reader
	Out io.Writer
}

// maxRequests bounds the agent's requests that are being answered. At the bound, the
// proxy reads nothing more from the agent until it has answered one.
const maxRequests = 1024

// Proxy serves one conversation between an editor and an agent. It is used for one Run.
//
// Goroutines: one per direction, one per request that is being answered, one per terminal
// that is followed, and one per terminal that is shown in a tool call.
type Proxy struct {
	// Set at construction.
	dialogue *dialogue
	table    *table
	slots    chan struct{} // maxRequests

	// Set by Run.
	toEditor, toAgent *writer
	executed          executed // owned by the direction from agent to editor
	screen            *screen
	asker             *asker
	ctx               context.Context // for the answers to the agent's requests
	answers           sync.WaitGroup

	mu       sync.Mutex
	underWay map[string]context.CancelFunc // requests that are being answered, by idKey
}

// New returns a proxy that does nothing until Run.
func New(o Options) *Proxy {
	o.Mode = cmp.Or(o.Mode, Take)
	o.Serve = cmp.Or(o.Serve, ServerKnown)
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return &Proxy{
		dialogue: newDialogue(o), table: newTable(o.Terminals, o.ANSI),
		slots: make(chan struct{}, maxRequests), underWay: map[string]context.CancelFunc{},
	}
}

// Run passes lines until the agent's output ends or cannot be passed on. When editor.In
// or ctx ends, Run closes agent.Out if that is an io.Closer, and still passes the agent's
// remaining lines. At the end it kills the agent's terminals. It returns nil, or the
// error of the direction from agent to editor. One goroutine may still be reading
// editor.In then; it ends when editor.In does.
func (p *Proxy) Run(ctx context.Context, editor, agent Pipe) error {
	p.toEditor, p.toAgent = newWriter(editor.Out), newWriter(agent.Out)
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	p.screen = newScreen(p.ctx, p.table, p.dialogue.cwd, p.toEditor)
	p.asker = newAsker("tether-"+rand.Text()+"-", p.toEditor)

	hangUp := sync.OnceFunc(func() { // called when editor.In, ctx or Run ends
		go func() { // in its own goroutine: a blocked write to the agent fails only when agent.Out is closed below
			p.toAgent.close()
		}()
		if c, ok := agent.Out.(io.Closer); ok {
			c.Close()
		}
	})
	stop := context.AfterFunc(ctx, hangUp)
	defer stop()
	go func() { // ends with editor.In
		_ = p.pass(editor.In, p.toAgent, p.fromEditor)
		hangUp()
	}()
	err := p.pass(agent.In, p.toEditor, p.fromAgent)
	p.toEditor.close()
	hangUp()
	cancel()
	p.table.close()
	p.answers.Wait()
	p.screen.wait()
	return err
}

// maxInspect bounds the lines that the proxy reads, in bytes. The largest message of the
// official SDK is half of that. A longer line passes in pieces and is not read.
const maxInspect = 64 << 20

// pass copies lines from one side to the other until the stream ends or a write fails.
// see decides about each line: it returns the line to pass on, or nil to drop it, and a
// function to call after the write, which may be nil.
func (p *Proxy) pass(from io.Reader, to *writer, see func(line []byte) (pass []byte, then func())) error {
	in := lines.NewReader(from, maxInspect)
	held := false // the slot stays held within a line, so that no other line is written into it or after an incomplete one
	defer func() {
		if held {
			to.closeHeld()
		}
	}()
	for {
		data, whole, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, then := data, func() {}
		if whole {
			if line, then = see(line); line == nil {
				continue
			}
		}
		if !held {
			if err := to.lock(context.Background()); err != nil {
				return err
			}
		}
		err = to.write(line)
		if held = line[len(line)-1] != '\n'; !held {
			to.unlock()
		}
		if err != nil {
			return err
		}
		if then != nil {
			then()
		}
	}
}

// fromEditor decides about a line of the editor, see pass.
func (p *Proxy) fromEditor(line []byte) ([]byte, func()) {
	if p.dialogue.mode == Editor {
		return line, nil
	}
	m, ok := parse(line)
	switch {
	case !ok:
		return line, nil
	case m.isAnswer() && p.asker.heard(m):
		return nil, nil
	case !m.isRequest():
		return line, nil
	}
	if m.method == "initialize" {
		if changed := p.dialogue.initialize(line, m); changed != nil {
			return changed, nil
		}
	} else if listened[m.method] {
		if taking, _ := p.dialogue.state(); taking {
			p.dialogue.request(m)
		}
		if changed := p.dialogue.withServer(line, m); changed != nil {
			return changed, nil
		}
	}
	return line, nil
}

// fromAgent decides about a line of the agent, see pass.
func (p *Proxy) fromAgent(line []byte) ([]byte, func()) {
	taking, rich := p.dialogue.state()
	if !taking && !p.dialogue.awaits() {
		return line, nil
	}
	m, ok := parse(line)
	switch {
	case !ok:
	case m.isAnswer():
		if session := p.dialogue.answer(m); session != "" {
			return line, func() { p.endSession(session) }
		}
	case !taking:
	case methods[m.method] != nil:
		p.dialogue.usesTerminals()
		p.serve(methods[m.method], m)
		return nil, nil
	case m.method == "$/cancel_request":
		if p.cancelled(m.params) {
			return nil, nil
		}
	case m.method == "session/update":
		if p.executed.saw(m.params) {
			p.dialogue.ranItself()
		}
		if changed, then := p.screen.update(m, rich); changed != nil {
			changed = withMember(line, "params", set(changed))
			return append(changed, ending(line)...), then
		}
	}
	return line, nil
}

// endSession releases and kills the terminals that a closed session has not released.
func (p *Proxy) endSession(session string) {
	for _, t := range p.table.of(session) {
		p.table.release(t)
		p.answers.Go(func() { p.table.end(t) })
	}
}

// serve carries out a terminal/* message and answers it if it is a request. It blocks
// while maxRequests are being answered.
func (p *Proxy) serve(f method, m message) {
	answer, err := f(p, m.params)
	var id []byte
	if m.id != nil {
		id = append(id, m.id...)
	}
	ctx, cancel := context.WithCancel(p.ctx)
	forget := p.remember(id, cancel)
	p.slots <- struct{}{}
	p.answers.Go(func() {
		defer func() {
			forget()
			cancel()
			<-p.slots
		}()
		var result reply
		if err == nil {
			result, err = answer(ctx)
		}
		if id != nil {
			_ = p.toAgent.send(p.ctx, func() []byte { return response(id, result, err) }) // fails only if the agent is gone
		}
	})
}

// response returns the line that answers a request.
func response(id []byte, result reply, err error) []byte {
	line := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	if err != nil {
		line = append(append(line, `,"error":`...), encode(rpcErrorFor(err))...)
	} else {
		line = append(append(line, `,"result":`...), result()...)
	}
	return append(line, "}\n"...)
}

// remember lets $/cancel_request cancel the request until forget is called.
func (p *Proxy) remember(id []byte, cancel context.CancelFunc) (forget func()) {
	if id == nil {
		return func() {}
	}
	key := idKey(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay[key] = cancel
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.underWay, key)
	}
}

// cancelled cancels the request that $/cancel_request names, if the proxy answers it.
func (p *Proxy) cancelled(params []byte) bool {
	var id []byte
	_ = jsonspan.Object(params, func(key, value []byte) error { // a cancellation without an id goes to the editor
		if string(key) == "requestId" {
			id = value
		}
		return nil
	})
	if id == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	cancel := p.underWay[idKey(id)]
	if cancel == nil {
		return false
	}
	cancel()
	return true
}
