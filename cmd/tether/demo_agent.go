package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"tether/agenttools"
	"tether/cmd/tether/internal/display"
	"tether/internal/demo"
	"tether/mcp"
)

// showBroken lends the port of the dev server, at site, and shows what an agent at the
// host gets of its broken page.
func (s *stage) showBroken(ctx context.Context, site string) error {
	at, err := url.Parse(site)
	if err == nil {
		err = s.tether(ctx, "lend", demoServer, "--port", at.Port())
	}
	if err != nil {
		return err
	}
	return s.agentFetches(ctx, demo.Broken)
}

// agentFetches shows what an agent at the host gets if it asks the dev server for a page.
func (s *stage) agentFetches(ctx context.Context, path string) error {
	arguments := map[string]any{"terminalId": demoServer, "path": path}
	text, err := s.callTool(ctx, "fetch_page", arguments)
	if err != nil {
		return err
	}
	var a agenttools.FetchAnswer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return fmt.Errorf("fetch_page answered %q: %w", text, err)
	}
	if a.Printed == nil {
		return fmt.Errorf("fetch_page has nothing of what the server printed: %s", text)
	}
	asked, _ := json.Marshal(arguments) // it has only strings
	fmt.Fprintf(s.app.stdout, "fetch_page %s\nthe page, %d %s:\n%sthe server printed meanwhile:\n%s", asked, a.Status, a.StatusText, quoted(a.Body), quoted(a.Printed.Text))
	return nil
}

// quoted returns a text of a program with a mark before each line.
func quoted(text string) string {
	text = display.PrintableLines(strings.TrimSpace(text) + "\n")
	return "  | " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  | ") + "\n"
}

// callTool calls a tool at the host as an agent there, in the version of MCP that needs
// no session, and returns the text of its answer.
func (s *stage) callTool(ctx context.Context, tool string, arguments any) (string, error) {
	const version, method = "2026-07-28", "tools/call"
	token, err := os.ReadFile(s.token())
	if err != nil {
		return "", err
	}
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": map[string]any{"name": tool, "arguments": arguments,
		"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": struct{}{},
			"io.modelcontextprotocol/clientInfo": map[string]string{"name": "tether demo", "version": "1"}}}})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http"+strings.TrimPrefix(s.url, "ws")+mcp.Path, bytes.NewReader(message))
	if err != nil {
		return "", err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + strings.TrimSpace(string(token)), "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": tool} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return "", err
	}
	if at := bytes.LastIndex(text, []byte("data: ")); at >= 0 { // an event stream, whose last event is the answer
		text = text[at+len("data: "):]
	}
	var got struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Result.Content) == 0 || got.Result.IsError {
		return "", fmt.Errorf("%s at the host: %s %s", tool, answer.Status, text)
	}
	return got.Result.Content[0].Text, nil
}
