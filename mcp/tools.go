package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/retry"
)

// metaUntrusted is the key in _meta that marks a result with text from programs.
const metaUntrusted = "tether/untrusted"

// metaResultSize tells Claude Code how many characters of a tool's answer to show the
// model. Without it, Claude Code shows only the first 2 KB of an answer with more than
// 50,000 characters, and the beginning of a terminal's output is the least interesting
// part. maxResultSize is the largest value that Claude Code accepts. Seen with Claude
// Code 2.1.197.
const (
	metaResultSize = "anthropic/maxResultSizeChars"
	maxResultSize  = 500_000
)

// Clients that have many tools show their model only names, and find tools by a search.
// metaSearchHint has words for the search, and metaAlwaysLoad keeps a tool out of it.
// Claude Code reads both; Qwen Code searches names and descriptions.
const (
	metaSearchHint = "anthropic/searchHint"
	metaAlwaysLoad = "anthropic/alwaysLoad"
)

// shows has the clients that show their model less than the default of an answer, and how
// many bytes of a text they show whole. Names are those of clientInfo. docs/MCP.md says
// what each client shows.
var shows = map[string]int{
	"codex-mcp-client": 10_000, // Codex 0.171.0; of more it leaves out the middle
	// Cline 3.0.65 shows 8,000 characters of the result's JSON, in which quotes of the
	// text are escaped once more, and leaves out the middle.
	"@cline/core": 5_000,
}

// progressEvery is the time between progress notifications of a call. A client that asked
// for them knows that the call still runs, and does not give up.
const progressEvery = 5 * time.Second

// addTools registers the tools that the principal may use.
func (s *Server) addTools() {
	for _, t := range s.tools.Tools() {
		hints := &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, IdempotentHint: t.Idempotent, OpenWorldHint: &t.OpenWorld}
		if !t.ReadOnly {
			hints.DestructiveHint = &t.Destructive
		}
		meta := sdk.Meta{}
		if t.Long {
			meta[metaResultSize] = maxResultSize
		}
		if t.Hint != "" {
			meta[metaSearchHint] = t.Hint
			meta[metaAlwaysLoad] = true
		}
		s.server.AddTool(&sdk.Tool{Meta: meta, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, Annotations: hints}, s.handler(t.Name))
	}
}

// handler returns the SDK's handler for a tool. A failure of the tool is a result that
// the model can read, not an error of the protocol.
func (s *Server) handler(tool string) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := s.callContext(ctx, req)
		defer cancel()
		by := agenttools.Caller{Progress: func(ctx context.Context, what string) func() { return notifyProgress(ctx, req, what) }}
		if client := req.ClientInfo(); client != nil {
			by.Shows = shows[client.Name]
		}
		r, err := s.tools.Call(ctx, tool, req.Params.Arguments, by)
		if err != nil {
			return &sdk.CallToolResult{IsError: true, Content: text(err.Error())}, nil
		}
		return encode(r)
	}
}

// encode converts a result to the protocol's form. The answer is sent as text. It is
// structured content, too, unless it holds output: clients that show their model only
// structured content show the text where there is none, and others show both. If the
// result has its own structured content, that is sent.
func encode(r agenttools.Result) (*sdk.CallToolResult, error) {
	texts, err := r.Texts()
	if err != nil {
		return nil, err
	}
	out := &sdk.CallToolResult{Content: text(texts...), StructuredContent: r.Structured}
	if r.Structured == nil && !r.Untrusted {
		out.StructuredContent = json.RawMessage(texts[0])
	}
	if b := r.Blob; b != nil && strings.HasPrefix(b.Type, "image/") {
		out.Content = append(out.Content, &sdk.ImageContent{Data: b.Data, MIMEType: b.Type})
	} else if b != nil {
		out.Content = append(out.Content, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: b.URI, MIMEType: b.Type, Blob: b.Data}})
	}
	if r.Untrusted {
		out.Meta = sdk.Meta{metaUntrusted: true}
	}
	return out, nil
}

func text(texts ...string) (all []sdk.Content) {
	for _, s := range texts {
		all = append(all, &sdk.TextContent{Text: s})
	}
	return all
}

// notifyProgress starts a goroutine that sends progress notifications if the client asked
// for them. The returned function ends the goroutine and waits for its end.
func notifyProgress(ctx context.Context, req *sdk.CallToolRequest, what string) func() {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1.0; retry.Wait(ctx, progressEvery); n++ {
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: what})
		}
	}()
	return func() { cancel(); <-ended }
}
