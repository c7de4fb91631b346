package acp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"tether/agent/acp"
	"tether/internal/testkit/must"
)

func TestInitialize(t *testing.T) {
	for _, c := range []struct {
		name     string
		mode     acp.Mode
		in, want string // of params; want "" means unchanged
	}{
		{"nothing offered", acp.Take, `{"protocolVersion":1}`, `{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`},
		{"no terminal", acp.Take, `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"terminal":false,"x":[1.0]},"y":1e2}`,
			`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true,"x":[1.0]},"y":1e2}`},
		{"null", acp.Take, `{"protocolVersion":1,"clientCapabilities":null}`, `{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`},
		{"nonsense", acp.Take, `{"protocolVersion":1,"clientCapabilities":"?"}`, `{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`},
		{"twice", acp.Take, `{"protocolVersion":1,"clientCapabilities":{"terminal":false},"clientCapabilities":{"terminal":false}}`,
			`{"protocolVersion":1,"clientCapabilities":{"terminal":true},"clientCapabilities":{"terminal":true}}`},
		{"the editor has some", acp.Take, `{"protocolVersion":1,"clientCapabilities":{ "terminal" : true }}`, ""},
		{"auto without", acp.Auto, `{"protocolVersion":1,"clientCapabilities":{}}`, `{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`},
		{"auto with", acp.Auto, `{"protocolVersion":1,"clientCapabilities":{"terminal":true}}`, ""},
		{"editor without", acp.Editor, `{"protocolVersion":1,"clientCapabilities":{}}`, ""},
		{"version 2", acp.Take, `{"protocolVersion":2,"info":{"name":"e","version":"1"},"capabilities":{}}`, ""},
		{"version 2 that speaks 1 too", acp.Take, `{"protocolVersion":2,"clientCapabilities":{}}`, `{"protocolVersion":2,"clientCapabilities":{"terminal":true}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, acp.Options{Mode: c.mode})
				frame := func(params string) string {
					return `{"id":"i" , "jsonrpc":"2.0","method":"initialize","params":` + params + "}"
				}
				w.editor.says(frame(c.in))
				got := w.agent.hears()
				switch {
				case c.want == "" && got != frame(c.in):
					t.Errorf("was changed to %s", got)
				case c.want != "" && strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(frame(c.want), " ", ""):
					t.Errorf("%s, want %s", got, frame(c.want))
				}
			})
		})
	}
}

func TestModes(t *testing.T) {
	const create = `{"jsonrpc":"2.0","id":5,"method":"terminal/create","params":{"sessionId":"s","command":"a b"}}`
	for _, c := range []struct {
		mode         acp.Mode
		capabilities string
		ours         bool
	}{
		{"", `{}`, true}, {acp.Take, `{"terminal":true}`, true},
		{acp.Auto, `{}`, true}, {acp.Auto, `{"terminal":true}`, false}, {acp.Auto, `{"terminal":false}`, true},
		{acp.Editor, `{}`, false}, {acp.Editor, `{"terminal":true}`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, acp.Options{Mode: c.mode})
			w.greets(c.capabilities)
			w.agent.says(create)
			synctest.Wait()
			if c.ours {
				w.agent.hears()
				w.editor.silent()
				return
			}
			if line := <-w.editor.lines; line != create+"\n" {
				t.Errorf("%s with %s: the editor hears %s", c.mode, c.capabilities, line)
			}
			answer := `{"jsonrpc":"2.0","id":5,"result":{"terminalId":"pty-editor"}}`
			w.editor.says(answer)
			w.agent.wants(answer)
			shown := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"execute","content":[{"type":"terminal","terminalId":"pty-editor"}]}}}`
			w.agent.says(shown)
			if line := w.editor.hears(); line != shown {
				t.Errorf("%s with %s: the editor hears %s", c.mode, c.capabilities, line)
			}
		})
	}
}

func TestNewerProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, acp.Options{})
		w.editor.says(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"clientCapabilities":{"_meta":{"terminal_output":true}}}}`)
		w.agent.hears()
		w.agent.says(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2}}`)
		w.editor.hears()
		if len(w.notices) != 1 || !strings.Contains(w.notices[0], "version 2") {
			t.Errorf("notices: %q", w.notices)
		}
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":5,"method":"terminal/create","params":{"sessionId":"s","command":"a b"}}`,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute"}}}`,
		} {
			w.agent.says(line)
			if got := <-w.editor.lines; got != line+"\n" {
				t.Errorf("%s became %s", line, got)
			}
		}
	})
}

func TestSessionDirectories(t *testing.T) {
	cwd := func(t *testing.T, w *world, session string) string {
		t.Helper()
		w.agent.says(`{"jsonrpc":"2.0","id":5,"method":"terminal/create","params":{"sessionId":"` + session + `","command":"a b"}}`)
		line := w.agent.hears()
		var m struct {
			Result struct {
				Meta struct{ Tether struct{ Cwd string } } `json:"_meta"`
			}
		}
		must.Do(t, json.Unmarshal([]byte(line), &m))
		return m.Result.Meta.Tether.Cwd
	}
	ask := func(w *world, method, params, answer string) {
		w.editor.says(`{"jsonrpc":"2.0","id":"q\u0031","method":"` + method + `","params":` + params + `}`)
		<-w.agent.lines
		if answer != "" {
			w.agent.says(`{"jsonrpc":"2.0","id":"q1",` + answer + `}`)
			<-w.editor.lines
		}
	}
	bubble(t, "", func(t *testing.T, w *world) {
		w.greets(`{}`)
		ask(w, "session/new", `{"cwd":"/new"}`, `"result":{"sessionId":"n"}`)
		ask(w, "session/new", `{"cwd":"/refused"}`, `"error":{"code":-32000,"message":"sign in"}`)
		ask(w, "session/fork", `{"sessionId":"n","cwd":"/fork"}`, `"result":{"sessionId":"f"}`)
		ask(w, "session/resume", `{"sessionId":"r","cwd":"/resume"}`, "")
		ask(w, "session/load", `{"sessionId":"l","cwd":"/load"}`, "")
		ask(w, "session/new", `"nonsense"`, `"result":{"sessionId":"x"}`)
		for session, want := range map[string]string{"s": "/work", "n": "/new", "f": "/fork", "r": "/resume", "l": "/load", "x": ""} {
			if got := cwd(t, w, session); got != want {
				t.Errorf("session %s is in %q, want %q", session, got, want)
			}
		}
	})
	bubble(t, "a closed session leaves nothing", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"sleep 9"`)
		ask(w, "session/close", `{"sessionId":"s"}`, `"result":{}`)
		synctest.Wait()
		if !f.wasKilled() {
			t.Error("its terminal runs on")
		}
	})
}

func TestWithMember(t *testing.T) {
	for _, c := range []struct{ object, want string }{
		{`{}`, `{"k":1}`}, {``, `{"k":1}`}, {`null`, `{"k":1}`}, {`[2]`, `{"k":1}`},
		{`{"a" : 1.50, "k":2, "b":"\u0041"}`, `{"a":1.50,"k":1,"b":"\u0041"}`},
		{`{"\u006b":2}`, `{"k":1}`}, {`{"a\"b":2}`, `{"a\"b":2,"k":1}`},
	} {
		if got := acp.WithMember(c.object, "k", "1"); got != c.want {
			t.Errorf("%s: %s, want %s", c.object, got, c.want)
		}
	}
}
