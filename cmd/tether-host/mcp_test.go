package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// bridge runs tether-host mcp between a real MCP client and a host.
func bridge(t *testing.T, url, token string) (*sdk.ClientSession, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "private", "token")
	must.Do(t, secret.Dir(filepath.Dir(file)))
	must.Do(t, secret.WriteFile(file, []byte(token+"\n")))
	agentIn, toAgent := io.Pipe() // the host's messages
	fromAgent, agentOut := io.Pipe()
	u := &hostURL{url: url, tokenFile: file}
	ended := make(chan error, 1)
	go func() {
		err := mcpBridge(context.Background(), u, fromAgent, toAgent)
		toAgent.CloseWithError(err)
		fromAgent.Close()
		ended <- err
	}()
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.IOTransport{Reader: agentIn, Writer: agentOut}, nil)
	if err != nil {
		agentOut.Close()
		if why := <-ended; why != nil {
			err = why
		}
		return nil, err
	}
	t.Cleanup(func() {
		session.Close()
		agentOut.Close()
		<-ended
	})
	return session, nil
}

func TestBridge(t *testing.T) {
	testkit.Leaks(t)
	tokens := filepath.Join(t.TempDir(), "state", "tokens.json")
	r := start(t, "--tokens", tokens)
	agent := command(t, exitOK, "token", "create", "bot", "--role", "agent", "--tokens", tokens)
	session := must.Get(bridge(t, r.url, agent))(t)
	answer, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_terminals"})
	if err != nil || answer.IsError || answer.Content[0].(*sdk.TextContent).Text != "[]" {
		t.Errorf("list_terminals: %v %+v", err, answer)
	}
	if _, err := bridge(t, r.url, "wrong"); err == nil || !strings.Contains(err.Error(), "refused the token") {
		t.Errorf("with a wrong token: %v", err)
	}
	machine := command(t, exitOK, "token", "create", "laptop", "--tokens", tokens)
	if _, err := bridge(t, r.url, machine); err == nil || !strings.Contains(err.Error(), "neither the role agent nor observer") {
		t.Errorf("with a machine's token: %v", err)
	}
}

func TestURLsOfHosts(t *testing.T) {
	for _, c := range []struct {
		url   string
		web   bool
		token bool
		want  string
		err   string
	}{
		{"ws://127.0.0.1:9187", false, true, "ws://127.0.0.1:9187/mcp", ""},
		{"http://localhost:1/", true, true, "http://localhost:1/mcp", ""},
		{"wss://host.example/tether", true, true, "https://host.example/tether/mcp", ""},
		{"ws://[::1]:9187", false, true, "ws://[::1]:9187/mcp", ""},
		{"https://host.example", false, false, "wss://host.example/mcp", ""},
		{"ws://host.example", false, false, "ws://host.example/mcp", ""},
		{"ws://host.example", false, true, "", "clear text"},
		{"host.example", false, false, "", "not the URL of a host"},
		{"ftp://host.example", false, false, "", "scheme"},
	} {
		got, err := (&hostURL{url: c.url}).at("mcp", c.web, c.token)
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v; want %q, %q", c.url, got, err, c.want, c.err)
		}
	}
}
