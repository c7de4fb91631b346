package local_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A body that is wrong is told which field needs what, without names of Go's.
func TestBadBodiesAreExplained(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	for _, c := range []struct{ path, body, want string }{
		{"/pty/spawn", `{"command":"ls"}`, "command must be a list of strings, not a string"},
		{"/pty/spawn", `{"command":[1]}`, "each of command must be a string, not a number"},
		{"/pty/spawn", `{"cols":70000}`, "cols must be an integer from 0 to 65535, not 70000"},
		{"/pty/spawn", `{"private":"yes"}`, "private must be true or false, not a string"},
		{"/pty/spawn", `{"nonsense":1}`, `"nonsense" is not a known field`},
		{"/v1/terminals", `{"cwd":7}`, "cwd must be a string, not a number"},
		{"/v1/terminals", `{"set_env":{"A":"b"}}`, "set_env must be a list of strings, not an object"},
		{"/v1/terminals", `["ls"]`, "the message must be an object, not a list"},
		{"/v1/terminals", `{"cwd":"/"} {}`, "more than one JSON value"},
		{"/v1/terminals", `{"cwd":"/"`, "not JSON: the message is incomplete"},
		{"/v1/terminals", `ls`, "not JSON: invalid character 'l'"},
		{"/v1/terminals", ``, "the message is empty; a JSON object is required"},
		{"/v1/hosts", `{"url":["ws://x"]}`, "url must be a string, not a list"},
		{"/v1/approvals/q-1", `{"allow":1}`, "allow must be true or false, not a number"},
		{"/v1/approvals/q-1", `{"for_seconds":"1h"}`, "for_seconds must be an integer, not a string"},
	} {
		_, answer := w.request(http.MethodPost, c.path, c.body)
		_, body, _ := strings.Cut(answer, "\r\n\r\n")
		var got struct{ Error localapi.Error }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%s %s: %v in %q", c.path, c.body, err, answer)
		}
		if got.Error.Code != localapi.CodeBadRequest || !strings.HasSuffix(got.Error.Message, c.want) && !strings.Contains(got.Error.Message, c.want+" ") {
			t.Errorf("%s %s: %+v, want %q", c.path, c.body, got.Error, c.want)
		}
		for _, name := range []string{"Go ", "json:", "[]", "uint", "struct"} {
			if strings.Contains(got.Error.Message, name) {
				t.Errorf("%s %s: %q has Go's words", c.path, c.body, got.Error.Message)
			}
		}
	}
}

func TestBadMessagesAreAnswered(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	foreign := must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Private: true}))(t)
	<-w.children
	person, agent := w.ui(), w.uiOf(w.client.As("b"))
	const none = "Session not found"
	for _, c := range []struct {
		name, message string
		u             *ui
		id, code      string
		error         string // contained in the error
	}{
		{"not JSON", `hello`, person, "", "bad_request", "not JSON"},
		{"empty", ``, person, "", "bad_request", "not JSON"},
		{"half a message", `{"type":"pty:attach","id":"` + tm.ID, person, "", "bad_request", "not JSON"},
		{"two messages", `{"type":"ping"}{"type":"ping"}`, person, "", "bad_request", "not JSON"},
		{"a list", `[1]`, person, "", "bad_request", "the message must be an object, not a list"},
		{"a string", `"pty:attach"`, person, "", "bad_request", "the message must be an object, not a string"},
		{"null", `null`, person, "", "bad_request", "without a type"},
		{"no type", `{"id":"x"}`, person, "x", "bad_request", "without a type"},
		{"unknown type", `{"type":"pty:nothing","id":"x"}`, person, "x", "bad_request", `type "pty:nothing" is not known`},
		{"a server's type", `{"type":"pty:output","id":"x","data":"y"}`, person, "x", "bad_request", "is not known"},
		{"type as number", `{"type":1,"id":"x"}`, person, "x", "bad_request", "type must be a string, not a number"},
		{"no id", `{"type":"pty:attach"}`, person, "", "bad_request", "pty:attach: id is missing"},
		{"id as number", `{"type":"pty:attach","id":5}`, person, "", "bad_request", "id must be a string, not a number"},
		{"long id", `{"type":"pty:attach","id":"` + strings.Repeat("x", 100) + `"}`, person, "", "bad_request", "at most 64 bytes"},
		{"unknown id", `{"type":"pty:attach","id":"pty-nothing"}`, person, "pty-nothing", "no_such_terminal", none},
		{"beginning of an id", `{"type":"pty:attach","id":"` + tm.ID[:8] + `"}`, person, tm.ID[:8], "no_such_terminal", none},
		{"a name", `{"type":"pty:attach","id":"a"}`, person, "a", "no_such_terminal", none},
		{"odd id", `{"type":"pty:attach","id":"\u0000\ud83d\ude00\"\u2028"}`, person, "\u0000😀\"\u2028", "no_such_terminal", none},
		{"a private one's id", `{"type":"pty:attach","id":"` + foreign.ID + `"}`, agent, foreign.ID, "no_such_terminal", none},
		{"input into a private one", `{"type":"pty:input","id":"` + foreign.ID + `","data":"x"}`, agent, foreign.ID, "no_such_terminal", none},
		{"resizing a private one", `{"type":"pty:resize","id":"` + foreign.ID + `","cols":1,"rows":1}`, agent, foreign.ID, "no_such_terminal", none},
		{"input without data", `{"type":"pty:input","id":"` + tm.ID + `"}`, person, tm.ID, "bad_request", "data is missing"},
		{"input as number", `{"type":"pty:input","id":"` + tm.ID + `","data":7}`, person, tm.ID, "bad_request", "data must be a string, not a number"},
		{"input nowhere", `{"type":"pty:input","id":"x","data":"y"}`, person, "x", "no_such_terminal", none},
		{"resize without size", `{"type":"pty:resize","id":"` + tm.ID + `"}`, person, tm.ID, "bad_request", "cols and rows are both needed"},
		{"half a size", `{"type":"pty:resize","id":"` + tm.ID + `","cols":80}`, person, tm.ID, "bad_request", "both needed"},
		{"size of nothing", `{"type":"pty:resize","id":"` + tm.ID + `","cols":0,"rows":24}`, person, tm.ID, "bad_request", "0x24 is out of range"},
		{"large size", `{"type":"pty:resize","id":"` + tm.ID + `","cols":1001,"rows":24}`, person, tm.ID, "bad_request", "out of range"},
		{"huge size", `{"type":"pty:resize","id":"` + tm.ID + `","cols":70000,"rows":24}`, person, tm.ID, "bad_request", "cols must be an integer from 0 to 65535, not 70000"},
		{"negative size", `{"type":"pty:resize","id":"` + tm.ID + `","cols":-1,"rows":24}`, person, tm.ID, "bad_request", "cols must be an integer from 0 to 65535, not -1"},
		{"size in text", `{"type":"pty:resize","id":"` + tm.ID + `","cols":"80","rows":"24"}`, person, tm.ID, "bad_request", "cols must be an integer from 0 to 65535, not a string"},
		{"broken size", `{"type":"pty:resize","id":"` + tm.ID + `","cols":80.5,"rows":24}`, person, tm.ID, "bad_request", "cols must be an integer from 0 to 65535, not 80.5"},
		{"since before the start", `{"type":"pty:attach","id":"` + tm.ID + `","since":-1}`, person, tm.ID, "bad_request", "since must not be negative"},
		{"since as text", `{"type":"pty:attach","id":"` + tm.ID + `","since":"0"}`, person, tm.ID, "bad_request", "since must be an integer, not a string"},
		{"a negative end", `{"type":"pty:ack","id":"` + tm.ID + `","end":-5}`, person, tm.ID, "bad_request", "end must not be negative"},
		{"deep", `{"type":"pty:attach","id":` + strings.Repeat("[", 20000) + `}`, person, "", "bad_request", "not JSON"},
	} {
		c.u.send(c.message)
		got := c.u.nextOf("pty:error")
		text, _ := got["error"].(string)
		if got["code"] != c.code || got["id"] != c.id || !strings.Contains(text, c.error) {
			t.Errorf("%s: %v, want id %q, code %s, error with %q", c.name, got, c.id, c.code, c.error)
		}
	}
	must.Do(t, person.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)))
	if got := person.nextOf("pty:error"); got["code"] != "bad_request" || !strings.Contains(got["error"].(string), "text frames") {
		t.Errorf("a binary message: %v", got)
	}
	// What is silent: unknown fields, and what makes no difference.
	for _, message := range []string{
		`{"type":"pty:detach","id":"` + tm.ID + `"}`, `{"type":"pty:detach","id":"pty-nothing"}`,
		`{"type":"pty:ack","id":"pty-nothing","end":1}`,
	} {
		person.send(message)
	}
	if left := streamed(person.settled()); len(left) > 0 {
		t.Errorf("answered with %v", left)
	}
	// And everything still works.
	person.ask("pty:input", tm.ID, "data", "typed", "future", true)
	testkit.Eventually(t, patience, "input arrives", func() bool { return child.Typed() == "typed" })
	child.End(0)
	testkit.Eventually(t, patience, "it exited", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Exit != nil
	})
	person.settled()
	person.ask("pty:input", tm.ID, "data", "x")
	person.ask("pty:resize", tm.ID, "cols", 9, "rows", 9)
	for range 2 {
		if got := person.nextOf("pty:error"); got["code"] != "exited" || got["id"] != tm.ID {
			t.Errorf("into an exited one: %v", got)
		}
	}
}

func TestOversizedMessageEndsItsClientAlone(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, _ := w.spawn("a")
	u, other := w.ui(), w.ui()
	big := `{"type":"pty:input","id":"` + tm.ID + `","data":"` + strings.Repeat("x", 10<<20) + `"}`
	go func() { _ = u.conn.Write(t.Context(), websocket.MessageText, []byte(big)) }() // fails when it is not taken
	if got := closed(t, u); got.Code != websocket.StatusMessageTooBig {
		t.Errorf("closed with %v", got)
	}
	other.ask("pty:attach", tm.ID)
	other.nextOf("pty:attached")
}

func TestSpawnForInterfaces(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{MaxTerminals: 3})
	u := w.ui()
	post := func(kind, body string) *http.Response {
		t.Helper()
		header := ""
		if kind != "" {
			header = "Content-Type: " + kind + "\r\n"
		}
		resp := ask(t, w, fmt.Sprintf("POST /pty/spawn HTTP/1.1\r\nHost: tether\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body))
		if resp == nil {
			t.Fatal("no answer")
		}
		return resp
	}
	const isJSON = "application/json"
	for _, c := range []struct {
		name, kind, body string
		status           int
		code             localapi.Code
	}{
		{"another type", "text/plain", `{}`, 415, localapi.CodeUnsupportedType},
		{"a form", "application/x-www-form-urlencoded", `cwd=/`, 415, localapi.CodeUnsupportedType},
		{"no type", "", `{}`, 415, localapi.CodeUnsupportedType},
		{"not JSON", isJSON, `{`, 400, localapi.CodeBadRequest},
		{"unknown field", isJSON, `{"cwdd":"/"}`, 400, localapi.CodeBadRequest},
		{"wrong type of field", isJSON, `{"cwd":1}`, 400, localapi.CodeBadRequest},
		{"relative directory", isJSON, `{"cwd":"x"}`, 400, localapi.CodeBadRequest},
		{"size", isJSON, `{"cwd":"/","cols":2000,"rows":2}`, 400, localapi.CodeBadRequest},
		{"missing program", isJSON, `{"cwd":"/","command":["missing"]}`, 422, localapi.CodeCannotStart},
		{"oversized", isJSON, `{"cwd":"/` + strings.Repeat("x", 1<<20) + `"}`, 413, localapi.CodeTooLarge},
	} {
		resp := post(c.kind, rooted(c.body))
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", c.name, resp.Status, c.status)
		} else if got := codeOf(t, resp); got != c.code {
			t.Errorf("%s: %s, want %s", c.name, got, c.code)
		}
	}
	for _, c := range []struct{ kind, body, cwd string }{
		{isJSON, `{"cwd":"/tmp","cols":100,"rows":50,"name":"n","command":["x"]}`, "/tmp"},
		{"application/json; charset=utf-8", `{"command":["x"]}`, ""},
		{isJSON, `{"cwd":"/","command":["x"],"private":true}`, "/"},
	} {
		resp := post(c.kind, rooted(c.body))
		var got struct {
			OK       bool
			ID       string
			Terminal map[string]any
		}
		must.Do(t, json.NewDecoder(resp.Body).Decode(&got))
		if !got.OK || got.ID == "" || got.Terminal["id"] != got.ID || got.Terminal["owner"] != "user" || got.Terminal["visible"] != true ||
			c.cwd != "" && got.Terminal["cwd"] != testkit.Abs(c.cwd) {
			t.Errorf("%s: %+v", c.body, got)
		}
		if e := u.event("created"); e["terminal"].(map[string]any)["id"] != got.ID {
			t.Errorf("event %v", e)
		}
	}
	resp := post(isJSON, `{"command":["x"]}`)
	if resp.StatusCode != http.StatusTooManyRequests || codeOf(t, resp) != localapi.CodeLimit {
		t.Errorf("one too many: %s", resp.Status)
	}
	resp = ask(t, w, "POST /pty/spawn HTTP/1.1\r\nHost: tether\r\nTether-Principal: a\r\nContent-Length: 0\r\n\r\n")
	if codeOf(t, resp) != localapi.CodeDenied {
		t.Errorf("an agent spawns a terminal of the person's: %s", resp.Status)
	}
	if l, err := w.client.List(t.Context()); err != nil || len(l.Terminals) != 3 {
		t.Errorf("afterwards %d terminals, %v", len(l.Terminals), err)
	}
}

func TestVanishedClientsLeaveNothing(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	for i := range 50 {
		conn := w.dial()
		raw := "GET /pty HTTP/1.1\r\nHost: tether\r\n" + upgradeHeaders + "\r\n"
		if i%2 == 0 {
			raw += "\x81\xfe" // the first two bytes of a frame
		}
		must.Get(io.WriteString(conn, raw))(t)
		if i%3 == 0 {
			buf := make([]byte, 64)
			must.Get(conn.Read(buf))(t)
		}
		conn.Close()
		u := w.ui()
		u.ask("pty:attach", tm.ID)
		u.conn.CloseNow()
	}
	child.Print("x")
	testkit.Eventually(t, patience, "nobody is attached", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Attached == 0 && got.Bytes == 1
	})
}
