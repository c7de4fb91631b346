package acp_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"tether/agent/acp"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
)

// asking makes the fake daemon ask for approval before each start.
func asking(w *world) {
	w.terminals.spawn = func(ctx context.Context, c acp.Command) error {
		allowed, err := c.Ask(ctx, "it destroys work")
		switch {
		case err != nil:
			return err
		case !allowed:
			return &acp.Failure{Kind: acp.Denied, Message: "denied by the user"}
		}
		return nil
	}
}

func TestAsk(t *testing.T) {
	question := func(t *testing.T, w *world) (id string, line string) {
		t.Helper()
		w.greets(`{}`)
		w.asks("5", "create", `"command":"rm","args":["-r","a b"]`)
		line = w.editor.hears()
		var m struct{ ID, Method string }
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Method != "session/request_permission" {
			t.Fatalf("the editor hears %s", line)
		}
		return m.ID, line
	}
	answer := func(id, outcome string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","result":{"outcome":` + outcome + `}}`
	}
	for name, c := range map[string]struct{ outcome, agent, status string }{
		"allowed":   {`{"outcome":"selected","optionId":"run"}`, `"result":{"terminalId":"pty-1"`, "completed"},
		"refused":   {`{"outcome":"selected","optionId":"refuse"}`, `"error":{"code":-32603,"message":"denied by the user"`, "failed"},
		"not UTF-8": {`{"outcome":"selected","optionId":"run","x":"` + "\xe9" + `"}`, `"error":{"code":-32603`, "failed"},
		"a half":    {`{"outcome":"selected","optionId":"run","x":"\ud83d"}`, `"error":{"code":-32603`, "failed"},
		"nonsense":  {`{"outcome":"selected","optionId":"?"}`, `"error":{"code":-32603`, "failed"},
		"cancelled": {`{"outcome":"cancelled"}`, `"error":{"code":-32800`, ""},
		"no answer": {`7`, `"error":{"code":-32603`, "failed"},
	} {
		bubble(t, name, func(t *testing.T, w *world) {
			asking(w)
			id, line := question(t, w)
			for _, want := range []string{`rm -r 'a b'`, "/work", "it destroys work", `"sessionId":"s"`, `"optionId":"run"`} {
				if !strings.Contains(line, want) {
					t.Errorf("the question has no %s: %s", want, line)
				}
			}
			w.editor.says(answer(id, c.outcome))
			if c.status != "" {
				w.editor.wants(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"` + id + `","status":"` + c.status + `"}}}`)
			}
			if got := w.agent.hears(); !strings.Contains(got, c.agent) {
				t.Errorf("the agent hears %s, want %s", got, c.agent)
			}
			w.editor.says(answer(id, c.outcome)) // once more, and late
			synctest.Wait()
			w.agent.silent()
		})
	}
	bubble(t, "the editor cannot be asked", func(t *testing.T, w *world) {
		asking(w)
		id, _ := question(t, w)
		w.editor.says(`{"jsonrpc":"2.0","id":"` + id + `","error":{"code":-32601,"message":"?"}}`)
		w.editor.hears()
		wantCode(t, "create", errorIn(t, w.agent.hears()), -32603, "denied by the user")
	})
	bubble(t, "the agent does not want it any more", func(t *testing.T, w *world) {
		asking(w)
		id, _ := question(t, w)
		w.agent.says(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}`)
		w.editor.wants(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"` + id + `"}}`)
		w.editor.hears()
		wantCode(t, "create", errorIn(t, w.agent.hears()), -32800, "cancelled")
	})
	bubble(t, "the agent goes while the question waits", func(t *testing.T, w *world) {
		asking(w)
		question(t, w)
		w.agent.in.Close()
		check.OK(t, <-w.done)
		w.done <- nil
	})
}

// The question hides nothing from the person: invisible characters, and characters that
// change the direction of text, are spelt out. That applies to the command, its directory
// and the names of the variables.
func TestQuestionsHideNothing(t *testing.T) {
	bubble(t, "", func(t *testing.T, w *world) {
		w.terminals.spawn = func(ctx context.Context, c acp.Command) error {
			_, err := c.Ask(ctx, "a reason")
			return err
		}
		w.greets(`{}`)
		w.asks("7", "create", `"command":"ls","args":["a\u202eb\u200b"],"cwd":`+strconv.Quote(testkit.Abs("/"))+`,"env":[{"name":"LD_PRELOAD","value":"canary"}]`)
		line := w.editor.hears()
		var m struct {
			Params struct {
				ToolCall struct {
					Content []struct{ Content struct{ Text string } }
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || len(m.Params.ToolCall.Content) != 1 {
			t.Fatalf("%s, %v", line, err)
		}
		text := m.Params.ToolCall.Content[0].Content.Text
		for _, want := range []string{"a<U+202E>b<U+200B>", "with LD_PRELOAD", "a reason"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q does not say %q", text, want)
			}
		}
		if strings.ContainsAny(text, "\u202e\u200b") || strings.Contains(text, "canary") {
			t.Errorf("%q", text)
		}
	})
}
