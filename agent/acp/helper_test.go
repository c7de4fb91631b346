package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"tether/agent/acp"
	"tether/internal/acpschema"
)

var errBroken = errors.New("broken")

// fakeTerminals runs no commands: the test prints their output and ends them.
type fakeTerminals struct {
	mu      sync.Mutex
	all     map[string]*fakeTerminal
	spawned chan *fakeTerminal
	spawn   func(ctx context.Context, c acp.Command) error // may refuse or wait
	kill    func(id string) error                          // may refuse
	follow  func(id string) error                          // may refuse
}

func newFakes() *fakeTerminals {
	return &fakeTerminals{all: map[string]*fakeTerminal{}, spawned: make(chan *fakeTerminal, 1000)}
}

type fakeTerminal struct {
	id      string
	command acp.Command

	mu     sync.Mutex
	events []acp.Event
	err    error // ends one stream with this error
	more   chan struct{}
	killed bool
	gone   int // number of closed streams
}

func (f *fakeTerminals) Spawn(ctx context.Context, c acp.Command) (string, error) {
	if f.spawn != nil {
		if err := f.spawn(ctx, c); err != nil {
			return "", err
		}
	}
	f.mu.Lock()
	t := &fakeTerminal{id: fmt.Sprintf("pty-%d", len(f.all)+1), command: c, more: make(chan struct{})}
	f.all[t.id] = t
	f.mu.Unlock()
	f.spawned <- t
	return t.id, nil
}

func (f *fakeTerminals) find(id string) (*fakeTerminal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.all[id]; t != nil {
		return t, nil
	}
	return nil, &acp.Failure{Kind: acp.Gone, Message: "no terminal " + id}
}

func (f *fakeTerminals) Follow(ctx context.Context, id string) (acp.Stream, error) {
	t, err := f.find(id)
	if err == nil && f.follow != nil {
		err = f.follow(id)
	}
	return &fakeStream{ctx, t, 0}, err
}

func (f *fakeTerminals) Kill(_ context.Context, id string) error {
	t, err := f.find(id)
	if err == nil && f.kill != nil {
		err = f.kill(id)
	}
	if err != nil {
		return err
	}
	t.exit(acp.Exit{Signal: "SIGTERM"})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.killed = true
	return nil
}

func (t *fakeTerminal) add(e acp.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.events); n > 0 && t.events[n-1].Exit != nil {
		return
	}
	t.events = append(t.events, e)
	close(t.more)
	t.more = make(chan struct{})
}

func (t *fakeTerminal) print(text string) { t.add(acp.Event{Data: []byte(text)}) }
func (t *fakeTerminal) exit(e acp.Exit)   { t.add(acp.Event{Exit: &e}) }
func (t *fakeTerminal) wasKilled() bool   { t.mu.Lock(); defer t.mu.Unlock(); return t.killed }
func (t *fakeTerminal) breaks(err error) {
	t.mu.Lock()
	t.err = err
	close(t.more)
	t.more = make(chan struct{})
	t.mu.Unlock()
}
func (t *fakeTerminal) followers() (n int) { t.mu.Lock(); defer t.mu.Unlock(); return -t.gone }

type fakeStream struct {
	ctx context.Context
	t   *fakeTerminal
	at  int
}

func (s *fakeStream) Next() (acp.Event, error) {
	for {
		s.t.mu.Lock()
		more, err := s.t.more, s.t.err
		s.t.err = nil
		var e acp.Event
		there := s.at < len(s.t.events)
		if there {
			e = s.t.events[s.at]
		}
		s.t.mu.Unlock()
		if err != nil {
			return acp.Event{}, err
		}
		if there {
			s.at++
			return e, nil
		}
		select {
		case <-more:
		case <-s.ctx.Done():
			return acp.Event{}, s.ctx.Err()
		}
	}
}

func (s *fakeStream) Close() error {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.t.gone++
	return nil
}

// world is a proxy between an editor and an agent. The test plays both.
type world struct {
	t         *testing.T
	terminals *fakeTerminals
	editor    *side
	agent     *side
	notices   []string
	done      chan error
	cancel    context.CancelFunc
}

// side is one end of the conversation.
type side struct {
	t     *testing.T
	name  string
	in    *io.PipeWriter // lines to the proxy
	out   *io.PipeWriter // the proxy writes its lines here
	lines chan string    // lines from the proxy, with their line ends
	heard acpschema.Conversation
}

// start runs a proxy that ends with the test.
func start(t *testing.T, o acp.Options) *world {
	t.Helper()
	w := &world{t: t, done: make(chan error, 1)}
	if o.Terminals == nil {
		w.terminals = newFakes()
		o.Terminals = w.terminals
	} else {
		w.terminals = o.Terminals.(*fakeTerminals)
	}
	var mu sync.Mutex
	if o.Notice == nil {
		o.Notice = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			w.notices = append(w.notices, text)
		}
	}
	var editor, agent acp.Pipe
	w.editor, editor = newSide(t, "editor")
	w.agent, agent = newSide(t, "agent")
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	go func() { w.done <- acp.New(o).Run(ctx, editor, agent) }()
	t.Cleanup(w.end)
	return w
}

func newSide(t *testing.T, name string) (*side, acp.Pipe) {
	fromSide, in := io.Pipe()
	out, toSide := io.Pipe()
	s := &side{t: t, name: name, in: in, out: toSide, lines: make(chan string, 10_000)}
	go func() { // ends when toSide is closed
		defer close(s.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				s.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { in.Close(); toSide.Close() })
	return s, acp.Pipe{In: fromSide, Out: toSide}
}

// end closes the editor's side, then the agent's, and waits for the proxy.
func (w *world) end() {
	w.editor.in.Close()
	w.agent.in.Close()
	if err := <-w.done; err != nil {
		w.t.Errorf("the proxy ended with %v", err)
	}
	w.done <- nil
}

// says writes a line.
func (s *side) says(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Errorf("%s cannot write: %v", s.name, err)
	}
}

// hears waits for a line.
func (s *side) hears() string {
	s.t.Helper()
	line, ok := <-s.lines
	if !ok {
		s.t.Fatalf("the %s hears nothing more", s.name)
	}
	if err := s.heard.Hears([]byte(line)); err != nil {
		s.t.Errorf("the %s hears: %v", s.name, err)
	}
	if s.name == "editor" && strings.Contains(line, `"method":"terminal/`) {
		s.t.Errorf("the editor hears %s", line)
	}
	return strings.TrimSuffix(line, "\n")
}

// wants waits for a line and compares it as JSON.
func (s *side) wants(want string) {
	s.t.Helper()
	if got := s.hears(); !sameJSON(s.t, got, want) {
		s.t.Errorf("the %s hears\n%s\nwant\n%s", s.name, got, want)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Errorf("%.200s: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%.200s: %v", b, err)
	}
	xs, _ := json.Marshal(x)
	ys, _ := json.Marshal(y)
	return string(xs) == string(ys)
}

// silent fails if the side was sent a line. It may be used only in a synctest bubble
// after Wait.
func (s *side) silent() {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		if ok {
			s.t.Errorf("the %s hears %s", s.name, line)
		}
	default:
	}
}

// greets opens the conversation: an editor with these capabilities, and a session in
// /work.
func (w *world) greets(capabilities string) {
	w.t.Helper()
	w.editor.says(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":` + capabilities + `}}`)
	w.agent.hears()
	w.agent.says(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`)
	w.editor.hears()
	w.editor.says(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}`)
	w.agent.hears()
	w.agent.says(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`)
	w.editor.hears()
}

// asks sends a request of the agent for session s. params are further members of the
// parameters.
func (w *world) asks(id, method, params string) {
	w.t.Helper()
	if params != "" {
		params = "," + params
	}
	w.agent.says(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"terminal/%s","params":{"sessionId":"s"%s}}`, id, method, params))
	w.agent.heard.Asked(id, "terminal/"+method)
}

// creates starts a terminal for the agent.
func (w *world) creates(params string) *fakeTerminal {
	w.t.Helper()
	w.asks(`"create"`, "create", params)
	line := w.agent.hears()
	if !strings.Contains(line, `"terminalId"`) {
		w.t.Fatalf("create %s: %s", params, line)
	}
	return <-w.terminals.spawned
}

// answer sends a request about a terminal and returns its result or its error.
func (w *world) answer(method, id string) string {
	w.t.Helper()
	w.asks(`"`+method+`"`, method, `"terminalId":"`+id+`"`)
	var got struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	line := w.agent.hears()
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	if got.Error != nil {
		return string(got.Error)
	}
	return string(got.Result)
}
