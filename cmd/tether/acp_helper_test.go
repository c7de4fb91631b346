package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/localclient"
	"tether/internal/acpschema"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// acpTool returns the path of a program or module that scripts/test-tools.sh installs, or
// skips the test.
func acpTool(t *testing.T, name string) string {
	t.Helper()
	path := must.Get(filepath.Abs(filepath.Join("../../bin/tools", name)))(t)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed (scripts/test-tools.sh does it, with npm and a network)", name)
	}
	return path
}

// node is the Node that agents run in.
func node(t *testing.T) string {
	t.Helper()
	return acpTool(t, "node22/node_modules/node/bin/node")
}

// agentProgram is the program of a real agent, and what starts it.
func agentProgram(t *testing.T, name string) []string {
	t.Helper()
	switch name {
	case "qwen":
		return []string{node(t), acpTool(t, "more-agents/node_modules/.bin/qwen")}
	case "copilot":
		return []string{node(t), acpTool(t, "more-agents/node_modules/.bin/copilot")}
	case "gemini":
		return []string{node(t), acpTool(t, "agents/node_modules/.bin/gemini")}
	}
	return []string{acpTool(t, "agents/node_modules/.bin/"+name)}
}

// sdkAgent is the command of the agent on the official SDK.
func sdkAgent(t *testing.T) (argv, env []string) {
	t.Helper()
	sdk := acpTool(t, "acp/node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js")
	script := must.Get(filepath.Abs("testdata/acp/agent.mjs"))(t)
	return []string{node(t), script}, []string{"ACP_SDK=" + sdk}
}

// editor is the editor's side of tether acp.
type editor struct {
	t       *testing.T
	home    string
	work    string // the session's directory
	client  *localclient.Client
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   chan []byte
	ended   chan error
	stderr  testkit.Output
	heard   acpschema.Conversation
	calls   int
	session string
	asked   string            // the last request for permission
	refuse  bool              // refuse the next ones
	silent  bool              // do not answer the next ones
	updates []json.RawMessage // the parameters of session/update, since they were last looked at
}

// editAs starts an agent behind tether acp, in a home of its own unless one is given;
// flags are tether's.
func editAs(t *testing.T, home string, flags, argv, env []string) *editor {
	t.Helper()
	if home == "" {
		home = acpHome(t)
	}
	token, err := os.ReadFile(tokenOf(home))
	must.Do(t, err)
	e := &editor{t: t, home: home, work: t.TempDir(), lines: make(chan []byte, 10_000), ended: make(chan error, 1),
		client: localclient.New(agent.SocketPath(dirsOf(home))).With(strings.TrimSpace(string(token)))}
	e.cmd = exec.Command("tether", append(append([]string{"acp"}, flags...), append([]string{"--"}, argv...)...)...)
	e.cmd.Env = append(append(os.Environ(), "TETHER_HOME="+home, allowRootVar+"=1", "NO_COLOR=1"), env...)
	e.cmd.Stderr = &e.stderr
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out := must.Get(e.cmd.StdoutPipe())(t)
	must.Do(t, e.cmd.Start())
	go e.listen(out)
	t.Cleanup(func() { e.leaves(); e.client.Close() })
	return e
}

// acpHome is a home whose daemon ends with the test.
func acpHome(t *testing.T) string {
	t.Helper()
	home := must.Get(testkit.MakeHome())(t)
	t.Cleanup(func() { endDaemon(t, home) })
	must.Get(personToken(home))(t)
	return home
}

// listen ends with tether's output, and then has its status.
func (e *editor) listen(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			e.lines <- line
		}
		if err != nil {
			break
		}
	}
	close(e.lines)
	e.ended <- e.cmd.Wait()
}

// leaves ends the conversation as an editor does, and returns tether's exit status.
func (e *editor) leaves() int {
	e.t.Helper()
	e.in.Close()
	return e.exits()
}

func (e *editor) exits() int {
	e.t.Helper()
	select {
	case err := <-e.ended:
		e.ended <- err
	case <-time.After(patience):
		e.cmd.Process.Kill()
		e.t.Fatalf("tether acp does not end; it said:\n%s", e.stderr.String())
	}
	return e.cmd.ProcessState.ExitCode()
}

// hears waits for a line.
func (e *editor) hears() []byte {
	e.t.Helper()
	select {
	case line, ok := <-e.lines:
		if !ok {
			e.t.Fatalf("the agent has gone; tether said:\n%s", e.stderr.String())
		}
		if err := e.heard.Hears(line); err != nil {
			e.t.Errorf("the editor hears: %v", err)
		}
		return line
	case <-time.After(patience):
		l, err := e.client.List(e.t.Context())
		e.t.Fatalf("the editor hears nothing; tether said:\n%s\n%+v, %v", e.stderr.String(), l, err)
	}
	return nil
}

// message is a line.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

func (e *editor) send(v any) {
	e.t.Helper()
	data := must.Get(json.Marshal(v))(e.t)
	if _, err := e.in.Write(append(data, '\n')); err != nil {
		e.t.Errorf("to the agent: %v", err)
	}
}

type object = map[string]any

// asks sends a request and returns its id.
func (e *editor) asks(method string, params any) string {
	e.t.Helper()
	e.calls++
	id := fmt.Sprint(e.calls)
	e.heard.Asked(id, method)
	e.send(object{"jsonrpc": "2.0", "id": e.calls, "method": method, "params": params})
	return id
}

// answered waits for the answer to a request; permissions are given meanwhile.
func (e *editor) answered(id string) message {
	e.t.Helper()
	for {
		m := e.next()
		if m.Method == "" && string(m.ID) == id {
			return m
		}
	}
}

// next waits for a message and reacts as an editor does.
func (e *editor) next() (m message) {
	e.t.Helper()
	line := e.hears()
	if err := json.Unmarshal(line, &m); err != nil {
		e.t.Fatalf("%s: %v", line, err)
	}
	switch {
	case m.Method == "session/update":
		e.updates = append(e.updates, m.Params)
	case m.Method == "session/request_permission":
		e.allow(m)
	case strings.HasPrefix(m.Method, "terminal/"):
		e.t.Errorf("the editor hears %s", line)
	}
	return m
}

// allow chooses the option that allows a request once, or the test's choice.
func (e *editor) allow(m message) {
	e.t.Helper()
	e.asked = string(m.Params)
	if e.silent {
		return
	}
	kind := "allow_once"
	if e.refuse {
		kind = "reject_once"
	}
	var p struct {
		Options []struct{ OptionID, Kind string }
	}
	must.Do(e.t, json.Unmarshal(m.Params, &p))
	for _, o := range p.Options {
		if o.Kind == kind {
			e.send(object{"jsonrpc": "2.0", "id": m.ID, "result": object{"outcome": object{"outcome": "selected", "optionId": o.OptionID}}})
			return
		}
	}
	e.t.Errorf("nothing to choose in %s", m.Params)
}

// call is a request that succeeds.
func (e *editor) call(method string, params any) json.RawMessage {
	e.t.Helper()
	m := e.answered(e.asks(method, params))
	if m.Error != nil {
		e.t.Fatalf("%s: %s; tether said:\n%s", method, m.Error, e.stderr.String())
	}
	return m.Result
}

// opens greets the agent and opens a session.
func (e *editor) opens(capabilities object) *editor {
	e.t.Helper()
	e.call("initialize", object{"protocolVersion": 1, "clientCapabilities": capabilities})
	var s struct{ SessionID string }
	must.Do(e.t, json.Unmarshal(e.call("session/new", object{"cwd": e.work, "mcpServers": []any{}}), &s))
	e.session = s.SessionID
	return e
}

func prompt(session, text string) object {
	return object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}}
}

// does makes the SDK's agent take steps and returns the result of each.
func (e *editor) does(steps ...object) []json.RawMessage {
	e.t.Helper()
	script := must.Get(json.Marshal(steps))(e.t)
	e.call("session/prompt", prompt(e.session, string(script)))
	return e.results(len(steps))
}

// results are the agent's last messages.
func (e *editor) results(want int) []json.RawMessage {
	e.t.Helper()
	for i := len(e.updates) - 1; i >= 0; i-- {
		var u struct {
			Update struct {
				SessionUpdate string
				Content       json.RawMessage
			}
		}
		must.Do(e.t, json.Unmarshal(e.updates[i], &u))
		if u.Update.SessionUpdate != "agent_message_chunk" {
			continue
		}
		var text struct{ Text string }
		var results []json.RawMessage
		if json.Unmarshal(u.Update.Content, &text) != nil || json.Unmarshal([]byte(text.Text), &results) != nil || len(results) != want {
			e.t.Fatalf("the agent says %s, want %d results", u.Update.Content, want)
		}
		e.updates = append(e.updates[:i:i], e.updates[i+1:]...)
		return results
	}
	e.t.Fatal("the agent says nothing")
	return nil
}

// runs is a command of the SDK's agent from create to release; it returns its output and
// its end.
func (e *editor) runs(params object) acpEnd {
	e.t.Helper()
	r := e.does(object{"do": "create", "params": params}, object{"do": "wait"}, object{"do": "output"}, object{"do": "release"})
	var end acpEnd
	if err := json.Unmarshal(r[2], &end); err != nil || end.Output == nil {
		e.t.Fatalf("%v: %s", params, r)
	}
	if wait, _ := json.Marshal(end.ExitStatus); !bytes.Equal(wait, canonical(r[1])) {
		e.t.Errorf("%v: wait says %s, output %s", params, r[1], wait)
	}
	return end
}

// acpEnd is an answer to terminal/output.
type acpEnd struct {
	Output     *string
	Truncated  bool
	ExitStatus *acpExit
}

type acpExit struct {
	ExitCode *int    `json:"exitCode"`
	Signal   *string `json:"signal"`
}

// String is "0", "3" or "SIGKILL".
func (e *acpExit) String() string {
	switch {
	case e == nil:
		return "running"
	case e.ExitCode != nil:
		return fmt.Sprint(*e.ExitCode)
	case e.Signal != nil:
		return *e.Signal
	}
	return "unknown"
}

func canonical(data json.RawMessage) []byte {
	var e acpExit
	_ = json.Unmarshal(data, &e)
	out, _ := json.Marshal(&e)
	return out
}
