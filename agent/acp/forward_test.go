package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/acp"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// strange are lines that the proxy must not touch.
var strange = []string{
	``, ` `, `no JSON`, `{`, `{"jsonrpc":"2.0"`, `null`, `7`, `"terminal/create"`, `{}`, "\x00\xff\xfe",
	`[{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"sessionId":"s","command":"ls"}}]`,
	`{"id":1,"id":2,"method":"a","method":"b"}`, `{"jsonrpc":"2.0","id":12345678901234567890123,"method":"x/y","params":{"a":1.000}}`,
	`{ "jsonrpc" : "2.0" , "method" : "session/update" , "params" : { "update" : { "sessionUpdate" : "plan" } } }`,
	`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"terminal","terminalId":"not-ours"}]}}}`,
	`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\"terminal\" \"tool_call\""}}}}`,
	`{"jsonrpc":"2.0","id":3,"method":"fs/read_text_file","params":{"path":"/a"}}`, `{"jsonrpc":"2.0","id":3,"method":"terminal/resize"}`,
	`{"jsonrpc":"2.0","id":3,"result":null}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`,
	`{"jsonrpc":"2.0","method":"$/cancel_request"}`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}`,
	strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r",
}

func TestForwardedAsItIs(t *testing.T) {
	for _, rich := range []string{"false", "true"} {
		bubble(t, "rich "+rich, func(t *testing.T, w *world) {
			w.greets(`{"_meta":{"terminal_output":` + rich + `}}`)
			for _, line := range strange {
				w.agent.says(line)
				if got := <-w.editor.lines; got != line+"\n" {
					t.Errorf("to the editor, %.200q became %.200q", line, got)
				}
				w.editor.says(line)
				if got := <-w.agent.lines; got != line+"\n" {
					t.Errorf("to the agent, %.200q became %.200q", line, got)
				}
			}
		})
	}
}

func TestLargeLines(t *testing.T) {
	bubble(t, "", func(t *testing.T, w *world) {
		w.greets(`{"_meta":{"terminal_output":true}}`)
		line := `{"jsonrpc":"2.0","method":"session/update","params":{"x":"` + strings.Repeat("0123456789abcde\\n", 640<<10) + `"}}`
		w.agent.says(line)
		if got := <-w.editor.lines; got != line+"\n" {
			t.Errorf("to the editor, %d bytes became %d", len(line), len(got))
		}
		w.editor.says(line)
		if got := <-w.agent.lines; got != line+"\n" {
			t.Errorf("to the agent, %d bytes became %d", len(line), len(got))
		}
	})
}

// Half a message passes unchanged, and the proxy writes nothing after it.
func TestHalfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, acp.Options{})
		w.greets(`{"_meta":{"terminal_output":true}}`)
		f := w.creates(`"command":"sleep 9"`)
		w.agent.says(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","content":[{"type":"terminal","terminalId":"pty-1"}]}}}`)
		w.editor.hears()
		const half = `{"jsonrpc":"2.0","meth`
		io.WriteString(w.agent.in, half)
		w.agent.in.Close()
		synctest.Wait()
		f.print("not shown any more")
		w.end()
		w.editor.out.Close()
		if got := <-w.editor.lines; got != half {
			t.Errorf("the editor hears %q", got)
		}
		synctest.Wait()
		w.editor.silent()
	})
	synctest.Test(t, func(t *testing.T) {
		w := start(t, acp.Options{})
		w.greets(`{}`)
		w.asks("9", "wait_for_exit", `"terminalId":"`+w.creates(`"command":"sleep 9"`).id+`"`)
		const half = `{"jsonrpc":"2.0","meth`
		io.WriteString(w.editor.in, half)
		w.editor.in.Close()
		if got := <-w.agent.lines; got != half {
			t.Errorf("the agent hears %q", got)
		}
	})
}

// When either side ends, the terminals end too.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, acp.Options{})
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		w.asks("9", "wait_for_exit", `"terminalId":"`+f.id+`"`)
		w.agent.in.Close()
		if err := <-w.done; err != nil || !f.wasKilled() {
			t.Errorf("the agent has gone: %v, killed: %v", err, f.wasKilled())
		}
		w.done <- nil
	})
	synctest.Test(t, func(t *testing.T) { // the agent ends while a create waits
		w := start(t, acp.Options{})
		late := make(chan struct{})
		w.terminals.spawn = func(context.Context, acp.Command) error { <-late; return nil } // ignores that ctx ends
		w.greets(`{}`)
		w.asks("9", "create", `"command":"sleep 9"`)
		synctest.Wait()
		w.agent.in.Close()
		synctest.Wait()
		close(late)
		check.OK(t, <-w.done)
		w.done <- nil
		if f := <-w.terminals.spawned; !f.wasKilled() {
			t.Error("it was left running")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := start(t, acp.Options{})
		w.greets(`{}`)
		w.cancel()
		if line, ok := <-w.agent.lines; ok {
			t.Errorf("told to end, the agent hears %s", line)
		}
		w.agent.says(`{"jsonrpc":"2.0","method":"last/words"}`)
		w.editor.wants(`{"jsonrpc":"2.0","method":"last/words"}`)
	})
	synctest.Test(t, func(t *testing.T) { // writes to the editor fail
		fromAgent, agent := io.Pipe()
		broken := errors.New("broken")
		done := make(chan error, 1)
		go func() {
			done <- acp.New(acp.Options{Terminals: newFakes()}).Run(t.Context(), acp.Pipe{In: strings.NewReader(""), Out: failing{broken}}, acp.Pipe{In: fromAgent, Out: io.Discard})
		}()
		io.WriteString(agent, "x\n")
		if err := <-done; !errors.Is(err, broken) {
			t.Errorf("ended with %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The proxy stops reading from an agent that sends requests but does not read. When the
// agent reads, it gets all answers.
func TestAgentThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fromAgent, agentIn := io.Pipe()
		agentOut, toAgent := io.Pipe()
		editorIn, editor := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- acp.New(acp.Options{Terminals: newFakes()}).Run(t.Context(), acp.Pipe{In: editorIn, Out: io.Discard}, acp.Pipe{In: fromAgent, Out: toAgent})
		}()
		const requests = 3000
		go func() {
			io.WriteString(editor, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
		}()
		first := make([]byte, 1)
		io.ReadFull(agentOut, first)
		go func() {
			for i := range requests {
				fmt.Fprintf(agentIn, `{"jsonrpc":"2.0","id":%d,"method":"terminal/output","params":{"sessionId":"s","terminalId":"t"}}`+"\n", i)
			}
		}()
		time.Sleep(time.Minute)
		got := 0
		buf := make([]byte, 1<<20)
		for got < requests+1 {
			n := must.Get(agentOut.Read(buf))(t)
			got += bytes.Count(buf[:n], []byte{'\n'})
		}
		agentIn.Close()
		editor.Close()
		check.OK(t, <-done)
	})
}

// Forwarded lines are byte-identical. The editor gets all lines of the agent, except
// requests and notifications of the five methods, and cancellations of those.
func FuzzForward(f *testing.F) {
	for _, line := range strange {
		f.Add([]byte(line), false)
	}
	f.Add([]byte(strings.Join(strange, "\n")), true)
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"terminal/output","params":{}}`+"\n\n{\"method\":\"terminal\\/kill\"}"), true)
	f.Fuzz(func(t *testing.T, in []byte, newline bool) {
		if newline {
			in = append(in, '\n')
		}
		var toEditor bytes.Buffer
		taking, agent := io.Pipe()
		answered := &untilAnswered{agent: agent, then: in}
		p := acp.New(acp.Options{Terminals: newFakes()})
		hello := `{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":1}}` + "\n"
		editor := acp.Pipe{In: io.MultiReader(strings.NewReader(hello), block{t.Context()}), Out: &toEditor}
		must.Do(t, p.Run(t.Context(), editor, acp.Pipe{In: taking, Out: answered}))
		var want []byte
		for line := range bytes.Lines(in) {
			if !ours(line) {
				want = append(want, line...)
			}
		}
		if !bytes.Equal(toEditor.Bytes(), want) {
			t.Errorf("%.300q became %.300q, want %.300q", in, toEditor.Bytes(), want)
		}
	})
}

// untilAnswered is an agent that sends its lines when it gets the first line, and then
// ends.
type untilAnswered struct {
	agent *io.PipeWriter
	then  []byte
	begun bool
}

func (u *untilAnswered) Write(p []byte) (int, error) {
	if !u.begun {
		u.begun = true
		go func() {
			u.agent.Write(u.then)
			u.agent.Close()
		}()
	}
	return len(p), nil
}

// block is a reader that blocks until its context ends: an editor that sends nothing
// more.
type block struct{ ctx context.Context }

func (b block) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, io.EOF }

// ours reports whether the proxy must answer the line. It uses encoding/json, which the
// proxy does not use for that.
func ours(line []byte) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil || depth(line) > 64 {
		return false
	}
	var method string
	if json.Unmarshal(m["method"], &method) != nil {
		return false
	}
	switch method {
	case "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		return true
	}
	return false
}

// depth returns the nesting depth of the JSON text.
func depth(text []byte) (deepest int) {
	d := json.NewDecoder(bytes.NewReader(text))
	for now := 0; ; {
		token, err := d.Token()
		if err != nil {
			return deepest
		}
		if delim, ok := token.(json.Delim); ok {
			if delim == '{' || delim == '[' {
				now++
			} else {
				now--
			}
			deepest = max(deepest, now)
		}
	}
}
