package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"tether/events"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// eventServer is a server with one terminal that sends events.
func eventServer(t *testing.T) (*mcp.Server, *fakeTerminals, *fakeTerminal) {
	f, web := withTerminal("pty-web")
	return newServer(t, mcp.Options{Tools: toolsOver(f), Events: events.New(events.Options{Terminals: f})}), f, web
}

// wire is a message of the server's.
type wire struct {
	ID     json.RawMessage
	Method string
	Params map[string]any
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
		Data    map[string]any
	}
}

// talk speaks to a server with lines of JSON.
type talk struct {
	t   *testing.T
	say io.Writer
	in  *bufio.Reader
}

func (c *talk) send(format string, args ...any) {
	c.t.Helper()
	must.Get(fmt.Fprintf(c.say, format+"\n", args...))(c.t)
}

// hear returns the next message for which ok is true.
func (c *talk) hear(what string, ok func(wire) bool) wire {
	c.t.Helper()
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			c.t.Fatalf("%s: %v", what, err)
		}
		line = bytes.TrimPrefix(line, []byte("data: "))
		var m wire
		if json.Unmarshal(line, &m) == nil && ok(m) {
			return m
		}
	}
}

func (c *talk) told(kind string) wire {
	c.t.Helper()
	return c.hear(kind, func(m wire) bool { return m.Method == "notifications/events/"+kind })
}

func (c *talk) answered(id string) wire {
	c.t.Helper()
	return c.hear("the answer to "+id, func(m wire) bool { return string(m.ID) == id })
}

// talkLines opens a session over lines, in a version of the protocol with or without
// sessions.
func talkLines(t *testing.T, s *mcp.Server, version string) *talk {
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), there) }()
	t.Cleanup(func() { here.Close(); <-served })
	c := &talk{t, here, bufio.NewReader(here)}
	if version < "2026" {
		c.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version)
		r := c.answered(`"i"`).Result["capabilities"].(map[string]any)
		if r["events"] == nil || r["extensions"].(map[string]any)["io.modelcontextprotocol/events"] == nil {
			t.Errorf("initialize offers %v", r)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// meta returns the _meta of each request in a version of the protocol.
func meta(version string) string {
	if version < "2026" {
		return "{}"
	}
	return `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/events":{}}}}`
}

// The number of unanswered requests for streams is bounded if the client does not read.
func TestFloodOfStreams(t *testing.T) {
	s, _, _ := eventServer(t)
	c := talkLines(t, s, "2026-07-28")
	const n = 5000
	var sent atomic.Int32
	go func() { // ends with the pipe
		for i := range n {
			if _, err := fmt.Fprintf(c.say, `{"jsonrpc":"2.0","id":%d,"method":"events/stream","params":{"_meta":%s,"name":"no.such"}}`+"\n", i, meta("2026-07-28")); err != nil {
				return
			}
			sent.Add(1)
		}
	}()
	was, same := int32(0), 0
	eventually(t, "it is not read any more", func() bool {
		now := sent.Load()
		if same++; now != was || now == 0 {
			was, same = now, 0
		}
		return same == 10
	})
	if was > n/10 {
		t.Errorf("%d requests were read while no answer is taken", was)
	}
}

func TestEventsOverLines(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s, f, web := eventServer(t)
			c := talkLines(t, s, version)
			if version > "2026" {
				c.send(`{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{"_meta":%s}}`, meta(version))
				r := c.answered("9").Result
				caps, _ := r["capabilities"].(map[string]any)
				if r["resultType"] != "complete" || caps["events"] == nil || caps["extensions"].(map[string]any)["io.modelcontextprotocol/events"] == nil {
					t.Errorf("server/discover: %v", r)
				}
			}
			c.send(`{"jsonrpc":"2.0","id":1,"method":"events/list","params":{"_meta":%s}}`, meta(version))
			list := c.answered("1").Result
			for _, k := range list["events"].([]any) {
				k := k.(map[string]any)
				if k["inputSchema"] == nil || k["payloadSchema"] == nil || len(k["delivery"].([]any)) == 0 || k["description"] == "" {
					t.Errorf("an event is listed as %v", k)
				}
			}
			const line = `"name":"terminal.line","arguments":{"pattern":"error","terminalId":"pty-web"}`
			c.send(`{"jsonrpc":"2.0","id":2,"method":"events/poll","params":{%s,"_meta":%s}}`, line, meta(version))
			page := c.answered("2").Result
			if page["resultType"] != "complete" || page["cursor"] == "" || len(page["events"].([]any)) != 0 || page["truncated"] != false || page["hasMore"] != false {
				t.Errorf("poll: %v", page)
			}
			web.print("error one\r\nfine\r\n")
			c.send(`{"jsonrpc":"2.0","id":"s","method":"events/stream","params":{%s,"cursor":%q,"_meta":%s}}`, line, page["cursor"], meta(version))
			if active := c.told("active").Params; active["truncated"] != false || active["_meta"].(map[string]any)["io.modelcontextprotocol/subscriptionId"] != "s" {
				t.Errorf("active: %v", active)
			}
			ev := c.told("event").Params
			if data := ev["data"].(map[string]any); data["line"] != "error one" || data["terminalId"] != "pty-web" || ev["cursor"] == "" || ev["eventId"] == "" || ev["name"] != "terminal.line" {
				t.Errorf("event: %v", ev)
			}
			c.send(`{"jsonrpc":"2.0","id":3,"method":"events/poll","params":{"name":"nothing","_meta":%s}}`, meta(version))
			want := map[bool]int{true: -32011, false: -32023}[version < "2026"]
			if e := c.answered("3").Error; e == nil || e.Code != want || e.Data["kind"] != "event" {
				t.Errorf("an unknown event: %+v, want code %d", e, want)
			}
			c.send(`{"jsonrpc":"2.0","id":4,"method":"events/stream","params":{"name":"terminal.line","_meta":%s}}`, meta(version))
			if e := c.answered("4").Error; e == nil || e.Code != -32602 || e.Data["field"] != "pattern" {
				t.Errorf("without a pattern: %+v", e)
			}
			c.send(`{"jsonrpc":"2.0","id":5,"method":"events/subscribe","params":{%s,"delivery":{"mode":"webhook","url":"https://x.example/","secret":"whsec_x"},"_meta":%s}}`, line, meta(version))
			if e := c.answered("5").Error; e == nil || e.Data["feature"] != "deliveryMode" {
				t.Errorf("a webhook: %+v", e)
			}
			// If the client cancels, the stream ends. If the terminal is withdrawn, the
			// stream is terminated.
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}`)
			c.send(`{"jsonrpc":"2.0","id":"z","method":"events/stream","params":{%s,"_meta":%s}}`, line, meta(version))
			c.told("active")
			f.mu.Lock()
			f.all = nil
			f.mu.Unlock()
			if end := c.told("terminated").Params["error"].(map[string]any); !strings.HasPrefix(end["message"].(string), "Forbidden") {
				t.Errorf("withdrawn: %v", end)
			}
			if r := c.answered(`"z"`).Result; r["resultType"] != "complete" {
				t.Errorf("the result of a stream: %v", r)
			}
		})
	}
}

func TestStreamOverHTTP(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s, _, web := eventServer(t)
			url := listen(t, s).URL
			session := ""
			if version < "2026" {
				_, header, _ := post(t, url, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version))
				session = header.Get("Mcp-Session-Id")
				post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session, "Mcp-Protocol-Version", version)
			}
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"events/stream","params":{"name":"terminal.line","arguments":{"pattern":"error"},"_meta":%s}}`, meta(version))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
			for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session, "Mcp-Protocol-Version": version, "Mcp-Method": "events/stream"} {
				if v != "" {
					req.Header.Set(k, v)
				}
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", resp, err)
			}
			defer resp.Body.Close()
			c := &talk{t: t, in: bufio.NewReader(resp.Body)}
			if active := c.told("active").Params; active["_meta"].(map[string]any)["io.modelcontextprotocol/subscriptionId"] != 7.0 {
				t.Errorf("active: %v", active)
			}
			web.print("an error\n")
			if ev := c.told("event").Params; ev["data"].(map[string]any)["line"] != "an error" {
				t.Errorf("event: %v", ev)
			}
			cancel()
			eventually(t, "the stream to end", func() bool { return web.open() == 0 })
		})
	}
}

// A server that shuts down ends no subscription: a client gets an error, if anything, and
// continues at the next server.
func TestShutdownFailsStreams(t *testing.T) {
	s, _, _ := eventServer(t)
	c := talkLines(t, s, "2025-11-25")
	c.send(`{"jsonrpc":"2.0","id":"s","method":"events/stream","params":{"name":"terminal.line","arguments":{"pattern":"error"}}}`)
	c.told("active")
	go s.Close()
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m wire
		if json.Unmarshal(line, &m) != nil {
			t.Fatalf("%s", line)
		}
		if string(m.ID) == `"s"` && m.Error == nil || m.Method == "notifications/events/terminated" {
			t.Errorf("the stream was ended: %s", line)
		}
	}
}
