package acp_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/acp"
	"tether/internal/testkit/must"
)

// update returns a session/update about tool call c.
func update(kind, members string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"%s","toolCallId":"c"%s}}}`, kind, members)
}

// embed returns a content member with these terminals.
func embed(ids ...string) string {
	var items []string
	for _, id := range ids {
		items = append(items, `{"type":"terminal","terminalId":"`+id+`"}`)
	}
	return `,"content":[` + strings.Join(items, ",") + `]`
}

// texts returns a content member with these texts.
func texts(all ...string) string {
	var items []string
	for _, text := range all {
		quoted, _ := json.Marshal(text)
		items = append(items, `{"type":"content","content":{"type":"text","text":`+string(quoted)+`}}`)
	}
	return `,"content":[` + strings.Join(items, ",") + `]`
}

const executes = `,"title":"Run","kind":"execute"`

// announcement returns the id of the terminal that the line announces to the editor.
func announcement(t *testing.T, line string) string {
	t.Helper()
	var m struct {
		Params struct {
			Update struct {
				Meta struct {
					Info struct {
						ID string `json:"terminal_id"`
					} `json:"terminal_info"`
				} `json:"_meta"`
			}
		}
	}
	must.Do(t, json.Unmarshal([]byte(line), &m))
	return m.Params.Update.Meta.Info.ID
}

func TestTerminalsInRichEditors(t *testing.T) {
	const rich = `{"_meta":{"terminal_output":true}}`
	output := func(id, data string) string {
		quoted, _ := json.Marshal(data)
		return update("tool_call_update", fmt.Sprintf(`,"_meta":{"terminal_output":{"terminal_id":"%s","data":%s}}`, id, quoted))
	}
	exit := func(id, status string) string {
		return update("tool_call_update", fmt.Sprintf(`,"_meta":{"terminal_exit":{"terminal_id":"%s",%s}}`, id, status))
	}
	bubble(t, "shown in an update", func(t *testing.T, w *world) {
		w.greets(rich)
		w.agent.says(update("tool_call", executes+`,"_meta":{"agent":{"x":1.0}}`))
		line := w.editor.hears()
		id := announcement(t, line)
		if want := update("tool_call", executes+`,"_meta":{"agent":{"x":1.0},"terminal_info":{"terminal_id":"`+id+`","cwd":"/work"}}`); id == "" || line != want {
			t.Errorf("announced by %s, want %s", line, want)
		}
		f := w.creates(`"command":"a b"`)
		f.print("\x1b[1mone\x1b[0m\r\n")
		synctest.Wait()
		w.agent.says(update("tool_call_update", embed(f.id)))
		w.editor.wants(update("tool_call_update", embed(id)))
		w.editor.wants(output(id, "\x1b[1mone\x1b[0m\r\n"))
		f.print("two\r\n")
		w.editor.wants(output(id, "two\r\n"))
		f.print("three")
		f.exit(acp.Exit{Code: 3})
		w.editor.wants(output(id, "three"))
		w.editor.wants(exit(id, `"exit_code":3,"signal":null`))
		w.answer("release", f.id)
		w.agent.says(update("tool_call_update", `,"status":"completed"`+embed(f.id)))
		w.editor.wants(update("tool_call_update", `,"status":"completed"`+embed(id)))
		synctest.Wait()
		w.editor.silent()
	})
	bubble(t, "shown at once", func(t *testing.T, w *world) {
		w.greets(rich)
		f := w.creates(`"command":"a b"`)
		w.agent.says(update("tool_call", `,"title":"Run","kind":"other"`+embed(f.id)))
		line := w.editor.hears()
		id := announcement(t, line)
		if !sameJSON(t, line, update("tool_call", `,"title":"Run","kind":"other","_meta":{"terminal_info":{"terminal_id":"`+id+`","cwd":"/work"}}`+embed(id))) {
			t.Error(line)
		}
		w.answer("release", f.id)
		w.editor.wants(exit(id, `"exit_code":null,"signal":"SIGTERM"`))
	})
	bubble(t, "what was not announced is a text", func(t *testing.T, w *world) {
		w.greets(rich)
		w.agent.says(update("tool_call", `,"title":"Look","kind":"read"`))
		w.editor.wants(update("tool_call", `,"title":"Look","kind":"read"`))
		f := w.creates(`"command":"a b"`)
		w.agent.says(update("tool_call_update", embed(f.id)))
		w.editor.wants(update("tool_call_update", texts("(no output yet)")))
	})
	bubble(t, "a second terminal in the call is a text", func(t *testing.T, w *world) {
		w.greets(rich)
		w.agent.says(update("tool_call", executes))
		id := announcement(t, w.editor.hears())
		one, two := w.creates(`"command":"a b"`), w.creates(`"command":"a b"`)
		two.print("second\r\n")
		synctest.Wait()
		w.agent.says(update("tool_call_update", embed(one.id, two.id)))
		line := w.editor.hears()
		if !strings.Contains(line, `"terminalId":"`+id+`"`) || !strings.Contains(line, `second`) || strings.Contains(line, two.id) {
			t.Error(line)
		}
	})
	bubble(t, "a second terminal that the agent has removed stays away", func(t *testing.T, w *world) {
		w.greets(rich)
		w.agent.says(update("tool_call", executes))
		w.editor.hears()
		one, two := w.creates(`"command":"a b"`), w.creates(`"command":"a b"`)
		w.agent.says(update("tool_call_update", embed(one.id, two.id)))
		w.editor.hears()
		w.agent.says(update("tool_call_update", embed(one.id)))
		w.editor.hears()
		two.print("second\r\n")
		time.Sleep(2 * acp.TextPause)
		synctest.Wait()
		w.editor.silent()
	})
	bubble(t, "a text that a second tool_call has removed stays away", func(t *testing.T, w *world) {
		w.greets(rich)
		w.agent.says(update("tool_call", `,"title":"Look","kind":"read"`))
		w.editor.hears()
		f := w.creates(`"command":"a b"`)
		w.agent.says(update("tool_call_update", embed(f.id)))
		w.editor.hears()
		w.agent.says(update("tool_call", executes+`,"content":[]`))
		w.editor.hears()
		f.print("text\r\n")
		time.Sleep(2 * acp.TextPause)
		synctest.Wait()
		w.editor.silent()
	})
	bubble(t, "an editor that does not read misses the middle of a flood", func(t *testing.T, w *world) {
		w.greets(rich)
		w.agent.says(update("tool_call", executes))
		w.editor.hears()
		f := w.creates(`"command":"a b"`)
		for range 40 {
			f.print(strings.Repeat("端", 16<<10))
		}
		f.exit(acp.Exit{})
		synctest.Wait()
		w.agent.says(update("tool_call_update", embed(f.id)))
		w.editor.hears()
		if line := w.editor.hears(); !strings.Contains(line, "bytes not shown") || strings.Contains(line, "\ufffd") {
			t.Errorf("%.300s", line)
		}
		frames := 0
		for line := ""; !strings.Contains(line, "terminal_exit"); frames++ {
			if line = w.editor.hears(); strings.Contains(line, "\ufffd") {
				t.Fatalf("frame %d cuts a character: %.300s", frames, line)
			}
		}
		if frames < 10 {
			t.Errorf("%d more frames", frames)
		}
	})
}

// Output that is printed while the proxy begins to show a terminal is shown, even if no
// more output follows.
func TestFirstTextIsNotMissed(t *testing.T) {
	bubble(t, "at once", func(t *testing.T, w *world) {
		w.greets(`{"terminal":true}`)
		for i := range 300 {
			f := w.creates(`"command":"a b"`)
			w.agent.says(update("tool_call", executes+embed(f.id)))
			for range i % 30 {
				runtime.Gosched()
			}
			f.print("one\r\n")
			time.Sleep(4 * acp.TextPause)
			synctest.Wait()
			last := ""
			for len(w.editor.lines) > 0 {
				last = w.editor.hears()
			}
			if !strings.Contains(last, "one") {
				t.Fatalf("%d: the editor shows %s", i, last)
			}
			f.exit(acp.Exit{})
			w.answer("release", f.id)
			time.Sleep(4 * acp.TextPause)
			synctest.Wait()
			for len(w.editor.lines) > 0 {
				w.editor.hears()
			}
		}
	})
}

func TestTerminalsAsText(t *testing.T) {
	bubble(t, "refreshed", func(t *testing.T, w *world) {
		w.greets(`{"terminal":true}`)
		f := w.creates(`"command":"a b"`)
		w.agent.says(update("tool_call", executes+embed(f.id)))
		w.editor.wants(update("tool_call", executes+texts("(no output yet)")))
		began := time.Now()
		for i := range 100 {
			f.print(fmt.Sprintf("\x1b[32m%d\x1b[0m\r\n", i))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		refreshes := 0
		for ; len(w.editor.lines) > 0; refreshes++ {
			w.editor.hears()
		}
		if most := int(time.Since(began)/acp.TextPause) + 1; refreshes < 2 || refreshes > most {
			t.Errorf("%d refreshes in %v, want at most %d", refreshes, time.Since(began), most)
		}
		f.print("the end\r\n")
		f.exit(acp.Exit{Code: 2})
		line := w.editor.hears()
		if !strings.Contains(line, "the end\\n```\\n\\nexit status 2") {
			t.Errorf("the last: %s", line)
		}
		w.answer("release", f.id)
		w.agent.says(update("tool_call_update", `,"status":"completed"`+embed(f.id)))
		if again := w.editor.hears(); !strings.Contains(again, "the end\\n```\\n\\nexit status 2") {
			t.Errorf("after the release: %s", again)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		w.editor.silent()
	})
	bubble(t, "replaced by the agent", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"a b"`)
		w.agent.says(update("tool_call", executes+embed(f.id)))
		w.editor.hears()
		final := update("tool_call_update", texts("the agent's own"))
		w.agent.says(final)
		if line := w.editor.hears(); line != final {
			t.Errorf("became %s", line)
		}
		f.print("more\r\n")
		f.exit(acp.Exit{})
		time.Sleep(time.Minute)
		synctest.Wait()
		w.editor.silent()
	})
	bubble(t, "beside other content, ended by a signal, with fences", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"a b"`)
		f.print("```\r\n````\r\n")
		f.exit(acp.Exit{Signal: "SIGKILL"})
		synctest.Wait()
		w.agent.says(update("tool_call", executes+`,"content":[{"type":"diff","path":"/a","newText":"b"},{"type":"terminal","terminalId":"`+f.id+`"}]`))
		line := w.editor.hears()
		if !strings.Contains(line, `[{"type":"diff","path":"/a","newText":"b"},`) || !strings.Contains(line, "`````\\n```\\n````\\n`````\\n\\nended by SIGKILL") {
			t.Error(line)
		}
	})
	bubble(t, "nothing was printed", func(t *testing.T, w *world) {
		w.greets(`{}`)
		f := w.creates(`"command":"a b"`)
		f.exit(acp.Exit{})
		synctest.Wait()
		w.agent.says(update("tool_call", executes+embed(f.id)))
		w.editor.wants(update("tool_call", executes+texts("(no output)")))
	})
}

// The oldest calls are forgotten. If the agent sends a forgotten call again, its terminal
// is announced again.
func TestManyCalls(t *testing.T) {
	bubble(t, "", func(t *testing.T, w *world) {
		w.greets(`{"_meta":{"terminal_output":true}}`)
		call := func(i int) string {
			w.agent.says(strings.Replace(update("tool_call", executes), `"c"`, fmt.Sprintf(`"c%d"`, i), 1))
			return announcement(t, w.editor.hears())
		}
		ids := map[string]bool{}
		for i := range acp.MaxCalls + 1 {
			ids[call(i)] = true
		}
		if again := call(1); again != "" {
			t.Errorf("the second is announced again as %s", again)
		}
		if again := call(0); again == "" || ids[again] || len(ids) != acp.MaxCalls+1 {
			t.Errorf("the first is announced as %q, %d different ids", again, len(ids))
		}
	})
}
