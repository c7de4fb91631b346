package acp

import (
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
	// ANSI keeps escape sequences in the agent's output. Otherwise it gets plain text.
	ANSI bool
	// MCP is a server that agents are given with their sessions; nil means none. Serve says which agents, "" means ServerKnown.
	MCP   *MCPServer
	Serve Server
	// Notice receives messages for the person, one line each; nil drops them.
	Notice func(string)
}

// Pipe is one side's end: lines from it and lines to it.
type Pipe struct {
	In  io.Reader
	Out io.Writer
}

// maxRequests bounds the agent's requests that are being answered. The next one then waits, and all that the agent says after it.
const maxRequests = 1024

// Proxy is one conversation between an editor and an agent. It is used for one Run.
//
// Goroutines: one per direction, one per request that is being answered, one per terminal that is followed, one per terminal that is shown.
type Proxy struct {
	// Set at construction.
	dialogue *dialogue
	table    *table
	slots    chan struct{} // maxRequests

	// Set by Run.
	toEditor, toAgent *writer
	screen            *screen
	asker             *asker
	ctx               context.Context // of the answers
	answers           sync.WaitGroup

	mu       sync.Mutex
	underWay map[string]context.CancelFunc // by id of the request
}

// New returns a proxy that does nothing until Run.
func New(o Options) *Proxy {
	if o.Mode == "" {
		o.Mode = Take
	}
	if o.Serve == "" {
		o.Serve = ServerKnown
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return &Proxy{
		dialogue: newDialogue(o), table: newTable(o.Terminals, o.ANSI),
		slots: make(chan struct{}, maxRequests), underWay: map[string]context.CancelFunc{},
	}
}

// Run passes lines until the agent's output ends, or cannot be passed on. When the editor's input or ctx ends, it closes agent.Out if that
// is an io.Closer and still passes the agent's remaining lines. Then it kills the agent's terminals. It returns nil, or the failure; a read
// from the editor may still be waiting then, and ends with editor.In.
func (p *Proxy) Run(ctx context.Context, editor, agent Pipe) error {
	p.toEditor, p.toAgent = newWriter(editor.Out), newWriter(agent.Out)
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	p.screen = newScreen(p.ctx, p.table, p.dialogue.cwd, p.toEditor)
	p.asker = newAsker("tether-"+rand.Text()+"-", p.toEditor)

	hangUp := sync.OnceFunc(func() { // once: it is the end of the input, ctx's or Run's
		go func() { // not by its caller: a line to an agent that does not read has to fail first
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

// maxInspect bounds the lines that are looked at, in bytes; the largest message of the official SDK is half of it. A longer one passes in
// pieces, unseen.
const maxInspect = 64 << 20

// pass moves lines until the stream ends or to cannot take any more. see decides about each line: the line to pass on, nil for none, and a
// function to call once it is written.
func (p *Proxy) pass(from io.Reader, to *writer, see func(line []byte) (pass []byte, then func())) error {
	in := lines.NewReader(from, maxInspect)
	held := false // within a line: no other may come between, or after a half one
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

// fromEditor sees a line of the editor's.
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
	} else if taking, _ := p.dialogue.state(); taking && listened[m.method] {
		p.dialogue.request(m)
		if changed := p.dialogue.withServer(line, m); changed != nil {
			return changed, nil
		}
	}
	return line, nil
}

// fromAgent sees a line of the agent's.
func (p *Proxy) fromAgent(line []byte) ([]byte, func()) {
	taking, rich := p.dialogue.state()
	if !taking {
		return line, nil
	}
	m, ok := parse(line)
	switch {
	case !ok:
	case m.isAnswer():
		if session := p.dialogue.answer(m); session != "" {
			return line, func() { p.endSession(session) }
		}
	case methods[m.method] != nil:
		p.serve(methods[m.method], m)
		return nil, nil
	case m.method == "$/cancel_request":
		if p.cancelled(m.params) {
			return nil, nil
		}
	case m.method == "session/update":
		if changed, then := p.screen.update(m, rich); changed != nil {
			changed = withMember(line, "params", set(changed))
			return append(changed, ending(line)...), then
		}
	}
	return line, nil
}

// endSession kills the terminals that a closed session has left.
func (p *Proxy) endSession(session string) {
	for _, t := range p.table.of(session) {
		p.table.release(t)
		p.answers.Go(func() { p.table.end(t) })
	}
}

// serve answers a request, or obeys a notification.
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
			_ = p.toAgent.send(p.ctx, func() []byte { return response(id, result, err) }) // fails when the agent has gone
		}
	})
}

// response is the line that answers a request.
func response(id []byte, result reply, err error) []byte {
	line := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	if err != nil {
		line = append(append(line, `,"error":`...), encode(rpcErrorFor(err))...)
	} else {
		line = append(append(line, `,"result":`...), result()...)
	}
	return append(line, "}\n"...)
}

// remember makes a request one that can be cancelled until forget is called.
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
	_ = jsonspan.Object(params, func(key, value []byte) error { // without id it is the editor's
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
