package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"tether/agent/acp"
	"tether/internal/testkit"
)

// bubble runs f with a proxy in fake time.
func bubble(t *testing.T, name string, f func(t *testing.T, w *world)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, start(t, acp.Options{})) })
	})
}

// wantCode checks an error that the agent got as an answer.
func wantCode(t *testing.T, what, answer string, code int, part string) {
	t.Helper()
	var e struct {
		Code    int
		Message string
		Data    struct{ Reason string }
	}
	if json.Unmarshal([]byte(answer), &e) != nil || e.Code != code || !strings.Contains(answer, part) {
		t.Errorf("%s: %s, want code %d with %q", what, answer, code, part)
	}
}

const exited3 = `{"exitCode":3,"signal":null}`

func TestTerminal(t *testing.T) {
	bubble(t, "from create to release", func(t *testing.T, w *world) {
		w.greets(`{}`)
		w.asks("7", "create", `"command":"npm","args":["test"],"env":[{"name":"A","value":"1"}],"outputByteLimit":100`)
		w.agent.wants(`{"jsonrpc":"2.0","id":7,"result":{"terminalId":"pty-1","_meta":{"tether":{"shell":false,"cwd":"/work"}}}}`)
		f := <-w.terminals.spawned
		if f.command.Cwd != "/work" || strings.Join(f.command.Env, " ") != "A=1" {
			t.Errorf("ran %+v", f.command)
		}
		f.print("one\r\n")
		f.print("\x1b[31mtw")
		synctest.Wait()
		if got := w.answer("output", "pty-1"); !sameJSON(t, got, `{"output":"one\ntw","truncated":false}`) {
			t.Errorf("while it runs: %s", got)
		}
		w.asks("8", "wait_for_exit", `"terminalId":"pty-1"`)
		synctest.Wait()
		w.agent.silent()
		f.print("o\x1b[0m\r\n")
		f.exit(acp.Exit{Code: 3})
		w.agent.wants(`{"jsonrpc":"2.0","id":8,"result":` + exited3 + `}`)
		want := `{"output":"one\ntwo\n","truncated":false,"exitStatus":` + exited3 + `}`
		if got := w.answer("output", "pty-1"); !sameJSON(t, got, want) {
			t.Errorf("at the end: %s", got)
		}
		for _, method := range []string{"kill", "release"} {
			if got := w.answer(method, "pty-1"); got != "{}" {
				t.Errorf("%s: %s", method, got)
			}
		}
		for _, method := range []string{"output", "wait_for_exit", "kill", "release"} {
			wantCode(t, method, w.answer(method, "pty-1"), -32002, "was released")
		}
		if f.wasKilled() {
			t.Error("it was killed after its end")
		}
	})
	bubble(t, "a shell line in its own directory", func(t *testing.T, w *world) {
		w.greets(`{}`)
		other := testkit.Abs("/else")
		w.asks("7", "create", `"command":"a | b","cwd":`+strconv.Quote(other))
		w.agent.wants(`{"jsonrpc":"2.0","id":7,"result":{"terminalId":"pty-1","_meta":{"tether":{"shell":true,"cwd":` + strconv.Quote(other) + `}}}}`)
		if f := <-w.terminals.spawned; f.command.Line != "a | b" || f.command.Cwd != other {
			t.Errorf("ran %+v", f.command)
		}
	})
	bubble(t, "a word that is no program is the shell's", func(t *testing.T, w *world) {
		w.terminals.spawn = func(_ context.Context, c acp.Command) error {
			if c.Line == "" {
				return &acp.Failure{Kind: acp.CannotStart, Message: "no such program"}
			}
			return nil
		}
		w.greets(`{}`)
		if f := w.creates(`"command":"times"`); f.command.Line != "times" {
			t.Errorf("ran %+v", f.command)
		}
		w.asks("7", "create", `"command":"times","args":["-x"]`)
		wantCode(t, "with arguments", errorIn(t, w.agent.hears()), -32602, `"reason":"cannot_start"`)
	})
	bubble(t, "killed", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		w.asks("8", "wait_for_exit", `"terminalId":"`+f.id+`"`)
		w.asks("9", "kill", `"terminalId":"`+f.id+`"`)
		got := []string{w.agent.hears(), w.agent.hears()}
		if !strings.Contains(strings.Join(got, ""), `"id":8,"result":{"exitCode":null,"signal":"SIGTERM"}`) {
			t.Errorf("the waiter hears %q", got)
		}
		if got := w.answer("output", f.id); !sameJSON(t, got, `{"output":"","truncated":false,"exitStatus":{"exitCode":null,"signal":"SIGTERM"}}`) {
			t.Errorf("output: %s", got)
		}
	})
	bubble(t, "released while it runs and is waited for", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		w.asks("8", "wait_for_exit", `"terminalId":"`+f.id+`"`)
		w.asks("9", "release", `"terminalId":"`+f.id+`"`)
		got := w.agent.hears() + w.agent.hears()
		if !strings.Contains(got, `"id":8,"result":{"exitCode":null,"signal":"SIGTERM"}`) || !strings.Contains(got, `"id":9,"result":{}`) || !f.wasKilled() {
			t.Errorf("%s, killed: %v", got, f.wasKilled())
		}
	})
	bubble(t, "a notification is obeyed and not answered", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		w.agent.says(`{"jsonrpc":"2.0","method":"terminal/release","params":{"sessionId":"s","terminalId":"` + f.id + `"}}`)
		synctest.Wait()
		if !f.wasKilled() {
			t.Error("it was not released")
		}
		w.agent.silent()
		w.editor.silent()
	})
}

// errorIn returns the error of an answer.
func errorIn(t *testing.T, line string) string {
	t.Helper()
	var m struct{ Error json.RawMessage }
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error == nil {
		t.Errorf("%s is no error: %v", line, err)
	}
	return string(m.Error)
}

func TestRefusals(t *testing.T) {
	bubble(t, "ids", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		wantCode(t, "unknown", w.answer("output", "pty-none"), -32002, "no terminal")
		w.agent.says(`{"jsonrpc":"2.0","id":"x","method":"terminal/kill","params":{"sessionId":"other","terminalId":"` + f.id + `"}}`)
		wantCode(t, "another session's", errorIn(t, w.agent.hears()), -32002, "no terminal")
		w.agent.says(`{"jsonrpc":"2.0","id":"x","method":"terminal/kill"}`)
		wantCode(t, "no params", errorIn(t, w.agent.hears()), -32602, "required")
		w.agent.says(`{"jsonrpc":"2.0","id":"x","method":"terminal/output","params":{"sessionId":1,"terminalId":"a"}}`)
		wantCode(t, "a number", errorIn(t, w.agent.hears()), -32602, "sessionId")
	})
	bubble(t, "no directory is known", func(t *testing.T, w *world) {
		w.greets(`{}`)
		w.agent.says(`{"jsonrpc":"2.0","id":"x","method":"terminal/create","params":{"sessionId":"other","command":"ls"}}`)
		wantCode(t, "create", errorIn(t, w.agent.hears()), -32602, "no cwd")
	})
	for kind, want := range map[acp.FailureKind]struct {
		code int
		part string
	}{
		acp.Invalid: {-32602, `"reason":"invalid"`}, acp.CannotStart: {-32602, `"reason":"cannot_start"`}, acp.Gone: {-32002, `"reason":"gone"`},
		acp.Denied: {-32603, `"data":{"reason":"denied","hint":"ask"}`}, acp.Internal: {-32603, `"reason":"internal"`},
	} {
		bubble(t, fmt.Sprint("kind ", kind), func(t *testing.T, w *world) {
			w.terminals.spawn = func(context.Context, acp.Command) error {
				return fmt.Errorf("wrapped: %w", &acp.Failure{Kind: kind, Message: "no", Hint: "ask"})
			}
			w.greets(`{}`)
			w.asks("1", "create", `"command":"a b"`)
			wantCode(t, "create", errorIn(t, w.agent.hears()), want.code, want.part)
		})
	}
	bubble(t, "other errors", func(t *testing.T, w *world) {
		w.terminals.spawn = func(context.Context, acp.Command) error { return errBroken }
		w.greets(`{}`)
		w.asks("1", "create", `"command":"a b"`)
		wantCode(t, "create", errorIn(t, w.agent.hears()), -32603, "broken")
	})
	bubble(t, "too many", func(t *testing.T, w *world) {
		w.greets(`{}`)
		for range acp.MaxTerminals {
			w.creates(`"command":"a b"`)
		}
		w.asks("1", "create", `"command":"a b"`)
		wantCode(t, "one more", errorIn(t, w.agent.hears()), -32603, "256 terminals are running")
		w.answer("release", "pty-1")
		w.creates(`"command":"a b"`)
		for _, id := range []string{"pty-4", "pty-3"} { // which the agent forgets
			w.terminals.all[id].exit(acp.Exit{})
			w.answer("wait_for_exit", id)
		}
		w.creates(`"command":"a b"`)
		wantCode(t, "the oldest that has ended", w.answer("output", "pty-3"), -32002, "was released")
		if got := w.answer("output", "pty-4"); !strings.Contains(got, "exitStatus") {
			t.Errorf("another that has ended: %s", got)
		}
	})
	bubble(t, "long forgotten", func(t *testing.T, w *world) {
		w.greets(`{}`)
		for range acp.MaxTombs + 1 {
			w.answer("release", w.creates(`"command":"a b"`).id)
		}
		wantCode(t, "the first", w.answer("output", "pty-1"), -32002, "no terminal")
		wantCode(t, "the second", w.answer("output", "pty-2"), -32002, "was released")
	})
}

func TestCancel(t *testing.T) {
	bubble(t, "a wait", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		w.asks(`"w\u0061it"`, "wait_for_exit", `"terminalId":"`+f.id+`"`)
		w.agent.says(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"wait"}}`)
		wantCode(t, "the wait", errorIn(t, w.agent.hears()), -32800, "cancelled")
		if f.wasKilled() {
			t.Error("cancelling the wait has killed it")
		}
		w.editor.silent()
	})
	bubble(t, "a create that waits for approval, beside others", func(t *testing.T, w *world) {
		w.terminals.spawn = func(ctx context.Context, c acp.Command) error {
			if strings.HasPrefix(c.Line, "slow") {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		w.greets(`{}`)
		w.asks("5", "create", `"command":"slow one"`)
		w.creates(`"command":"other one"`)
		w.agent.says(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}`)
		wantCode(t, "the create", errorIn(t, w.agent.hears()), -32800, "cancelled")
	})
	bubble(t, "the editor's business", func(t *testing.T, w *world) {
		w.greets(`{}`)
		line := `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`
		w.agent.says(line)
		w.editor.wants(line)
	})
}

// TestFollowing follows terminals whose daemon has gone.
func TestFollowing(t *testing.T) {
	bubble(t, "it comes back without the terminal", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		f.print("a")
		synctest.Wait()
		f.breaks(&acp.Failure{Kind: acp.Gone})
		if got := w.answer("wait_for_exit", f.id); !sameJSON(t, got, `{"exitCode":null,"signal":null}`) {
			t.Errorf("wait: %s", got)
		}
		if got := w.answer("output", f.id); !strings.Contains(got, `"output":"a\n[tether: the daemon no longer has this terminal; how the command ended is unknown]\n"`) {
			t.Errorf("output: %s", got)
		}
		if got := w.answer("release", f.id); got != "{}" {
			t.Errorf("release: %s", got)
		}
	})
	bubble(t, "it stays away", func(t *testing.T, w *world) {
		w.terminals.follow = func(string) error { return errBroken }
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		if got := w.answer("wait_for_exit", f.id); !sameJSON(t, got, `{"exitCode":null,"signal":null}`) {
			t.Errorf("wait: %s", got)
		}
	})
	bubble(t, "output was lost", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		f.print("a")
		f.add(acp.Event{Lost: 77})
		f.print("b\r\n")
		synctest.Wait()
		if got := w.answer("output", f.id); !strings.Contains(got, `"output":"a\n[tether: 77 bytes were lost here]\nb\n"`) {
			t.Errorf("output: %s", got)
		}
	})
}

// An unknown end is no exit code, and the output says so.
func TestUnknownEnd(t *testing.T) {
	bubble(t, "", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"a b"`)
		f.exit(acp.Exit{Code: -1})
		if got := w.answer("wait_for_exit", f.id); got != `{"exitCode":null,"signal":null}` {
			t.Errorf("wait_for_exit: %s", got)
		}
		if got := w.answer("output", f.id); !strings.Contains(got, "is unknown") {
			t.Errorf("output: %s", got)
		}
	})
}

// The agent cannot kill a terminal that the person has taken over.
func TestPersonsNow(t *testing.T) {
	bubble(t, "", func(t *testing.T, w *world) {
		w.terminals.kill = func(string) error { return &acp.Failure{Kind: acp.Denied, Message: "it is the person's"} }
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		wantCode(t, "kill", w.answer("kill", f.id), -32603, "the person's")
		w.asks("8", "wait_for_exit", `"terminalId":"`+f.id+`"`)
		w.asks("9", "release", `"terminalId":"`+f.id+`"`)
		got := w.agent.hears() + w.agent.hears()
		if !strings.Contains(got, `"id":9,"result":{}`) || !strings.Contains(got, `"id":8,"error":{"code":-32800`) {
			t.Errorf("release and wait: %s", got)
		}
		synctest.Wait()
		if f.followers() >= 0 {
			t.Error("it is still followed")
		}
	})
}

// A release directly after a request for the output does not shorten the answer.
func TestOutputBeforeRelease(t *testing.T) {
	bubble(t, "", func(t *testing.T, w *world) {
		w.greets(`{}`)
		text := strings.Repeat("line\n", 20_000)
		for i := range 30 {
			f := w.creates(`"command":"a b"`)
			f.print(text)
			f.exit(acp.Exit{})
			synctest.Wait()
			request := func(id, method string) string {
				return `{"jsonrpc":"2.0","id":"` + id + `","method":"terminal/` + method + `","params":{"sessionId":"s","terminalId":"` + f.id + `"}}`
			}
			w.agent.says(request("output", "output") + "\n" + request("release", "release"))
			both := w.agent.hears() + w.agent.hears()
			if n := strings.Count(both, `line\n`); n != 20_000 || strings.Contains(both, `"truncated":true`) {
				t.Fatalf("terminal %d: the answer has %d lines", i, n)
			}
		}
	})
}

func TestOutputIsEncodedOnce(t *testing.T) {
	bubble(t, "", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"a b"`)
		f.print(strings.Repeat("<&> \"quoted\" \\ \x1b[1m端\u2028\r\n", 3))
		synctest.Wait()
		first := w.answer("output", f.id)
		var got struct{ Output string }
		if err := json.Unmarshal([]byte(first), &got); err != nil || got.Output != strings.Repeat("<&> \"quoted\" \\ 端\n", 3) {
			t.Errorf("%q, %v", got.Output, err)
		}
		if again := w.answer("output", f.id); again != first {
			t.Errorf("the second time %s", again)
		}
	})
}
