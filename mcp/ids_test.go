package mcp_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// keptIDs come back byte for byte.
var keptIDs = []string{
	`0`, `-1`, `-0`, `7`, `20.0`, `2e1`, `9007199254740993`, `-9223372036854775809`, `123456789012345678901234567890`, `1` + strings.Repeat("0", 300),
	`""`, `"a"`, `"1"`, `"a\u003cb"`, `"a<b&c>"`, `"\/"`, `"é\u0301"`, `"\"id-\""`, `"` + strings.Repeat("x", 5000) + `"`,
}

// refusedIDs are no ids.
var refusedIDs = []string{`null`, `1.5`, `-0.1`, `1e-1`, `1e999`, `true`, `{}`, `[]`, `{"a":1}`, `[1]`}

// rawAnswer is an answer with its id as it was sent.
type rawAnswer struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct{ Code int }
}

// checkIDs asks for a ping and a tool with each id.
func checkIDs(t *testing.T, ask func(line string) rawAnswer) {
	t.Helper()
	for _, id := range keptIDs {
		for _, call := range []string{`"method":"ping"`, `"method":"tools/call","params":{"name":"list_terminals"}`} {
			if got := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, call)); string(got.ID) != id || got.Result == nil {
				t.Errorf("%s: the answer to id %.100s has %.100s and %+v", call, id, got.ID, got.Error)
			}
		}
	}
	for _, id := range refusedIDs {
		if got := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)); string(got.ID) != "null" || got.Error == nil || got.Error.Code != -32600 {
			t.Errorf("the answer to id %s has %s and %+v", id, got.ID, got.Error)
		}
	}
}

func TestIDsComeBack(t *testing.T) {
	client := raw(t, newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})}))
	checkIDs(t, func(line string) rawAnswer {
		client.send(line)
		return client.raw()
	})
}

// raw receives a message.
func (c *rawClient) raw() (a rawAnswer) {
	c.t.Helper()
	line, err := c.in.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &a) != nil {
		c.t.Fatalf("%v in %q", err, line)
	}
	return a
}

func TestIDsComeBackOverHTTP(t *testing.T) {
	server := listen(t, newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})}))
	session := ""
	ask := func(line string) (a rawAnswer) {
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader(line)))(t)
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {session}}
		if session == "" {
			r.Header.Del("Mcp-Session-Id")
		}
		answer := must.Get(http.DefaultClient.Do(r))(t)
		defer answer.Body.Close()
		body := must.Get(io.ReadAll(answer.Body))(t)
		session = cmp.Or(session, answer.Header.Get("Mcp-Session-Id"))
		if _, data, ok := bytes.Cut(body, []byte("data: ")); ok {
			body, _, _ = bytes.Cut(data, []byte("\n"))
		}
		if err := json.Unmarshal(body, &a); err != nil {
			t.Fatalf("%v in %d %s", err, answer.StatusCode, body)
		}
		return a
	}
	const hello = `{"jsonrpc":"2.0","id":9007199254740993,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	if got := ask(hello); string(got.ID) != "9007199254740993" {
		t.Errorf("the handshake is answered to %s", got.ID)
	}
	checkIDs(t, ask)
}

// A call with an id that the SDK does not keep can be cancelled, and its progress has the
// token.
func TestOddIDsInNotifications(t *testing.T) { synctest.Test(t, testOddIDsInNotifications) }

func testOddIDsInNotifications(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-a", agenttools.OwnerUser)
	client := raw(t, newServer(t, mcp.Options{Tools: toolsOver(f)}))
	const id = "9007199254740993"
	client.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"pty-a","timeoutMs":600000},"_meta":{"progressToken":` + id + `}}}`)
	line, err := client.in.ReadString('\n')
	if err != nil || !strings.Contains(line, `"progressToken":`+id) {
		t.Errorf("%v, progress %s", err, line)
	}
	client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	for {
		if got := client.raw(); got.ID != nil {
			if string(got.ID) != id || !strings.Contains(string(got.Result), "canceled") {
				t.Errorf("the answer to %s: %+v", got.ID, got)
			}
			return
		}
	}
}

// Parameters of events that are whole numbers count as such, however they are written.
func TestWholeNumbersOfEvents(t *testing.T) {
	s, _, _ := eventServer(t)
	c := talkLines(t, s, "2025-11-25")
	c.send(`{"jsonrpc":"2.0","id":5.0,"method":"events/poll","params":{"name":"terminal.idle","arguments":{"idleMs":2e3},"maxEvents":5.0,"maxAgeMs":1e3}}`)
	if got := c.answered("5.0"); got.Error != nil || got.Result["cursor"] == nil {
		t.Errorf("answered %+v", got)
	}
	c.send(`{"jsonrpc":"2.0","id":6,"method":"events/poll","params":{"name":"terminal.idle","maxEvents":1.5}}`)
	if got := c.answered("6"); got.Error == nil {
		t.Errorf("half an event is answered with %+v", got)
	}
}
