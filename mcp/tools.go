package mcp

import (
	"context"
	"encoding/json"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
)

// metaUntrusted marks a result with text from programs.
const metaUntrusted = "tether/untrusted"

// metaResultSize tells Claude Code how many characters of a tool's answer to show. Without it, it shows of an answer of more than 50,000
// the first 2 KB alone, which of a terminal are the least interesting; maxResultSize is the most that it takes. Seen with 2.1.197.
const (
	metaResultSize = "anthropic/maxResultSizeChars"
	maxResultSize  = 500_000
)

// progressEvery is how often a client that asked for it hears that a call goes on, so that it does not give up.
const progressEvery = 5 * time.Second

// addTools registers the tools that the principal may use.
func (s *Server) addTools() {
	for _, t := range s.tools.Tools() {
		hints := &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, IdempotentHint: t.Idempotent, OpenWorldHint: &t.OpenWorld}
		if !t.ReadOnly {
			hints.DestructiveHint = &t.Destructive
		}
		var meta sdk.Meta
		if t.Long {
			meta = sdk.Meta{metaResultSize: maxResultSize}
		}
		s.server.AddTool(&sdk.Tool{Meta: meta, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, Annotations: hints}, s.handler(t.Name))
	}
}

// handler turns a call into the protocol's form. A tool's failure is a result that the model can read, not a failure of the protocol.
func (s *Server) handler(tool string) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := s.callContext(ctx, req)
		defer cancel()
		progress := func(ctx context.Context, what string) func() { return notifyProgress(ctx, req, what) }
		r, err := s.tools.Call(ctx, tool, req.Params.Arguments, progress)
		if err != nil {
			return &sdk.CallToolResult{IsError: true, Content: text(err.Error())}, nil
		}
		return encode(r)
	}
}

// encode is a result as the protocol wants it: the answer as text, and as structured content unless there is more for programs.
func encode(r agenttools.Result) (*sdk.CallToolResult, error) {
	body, err := r.Text()
	if err != nil {
		return nil, err
	}
	out := &sdk.CallToolResult{Content: text(body), StructuredContent: r.Structured}
	if r.Structured == nil {
		out.StructuredContent = json.RawMessage(body)
	}
	if r.Untrusted {
		out.Meta = sdk.Meta{metaUntrusted: true}
	}
	return out, nil
}

func text(s string) []sdk.Content { return []sdk.Content{&sdk.TextContent{Text: s}} }

// notifyProgress tells the client from time to time that the call is alive. The function it returns ends that.
func notifyProgress(ctx context.Context, req *sdk.CallToolRequest, what string) func() {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for n := 1.0; ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: what})
		}
	}()
	return func() { cancel(); <-ended }
}
