package mcp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
)

// Extra is a tool that is not part of Options.Tools. It may be added and removed while
// the server runs, and another program provides its answers.
type Extra struct {
	agenttools.Tool
	// Call carries out the tool. args is a JSON object, or empty. The model gets the
	// returned text, or the text of the error. Call returns when ctx ends, at the latest.
	Call func(ctx context.Context, args json.RawMessage) (string, error)
}

// anyObject is the input schema of a tool without a usable schema.
const anyObject = `{"type":"object"}`

// Sync registers the tools that Options.Extra returns, removes those that it no longer
// returns, and notifies the sessions of changes. It may be called at any time. The server
// calls it before each tools/list and tools/call.
func (s *Server) Sync() {
	if s.opts.Extra == nil {
		return
	}
	s.extraMu.Lock()
	defer s.extraMu.Unlock()
	own := make(map[string]bool)
	for _, t := range s.tools.Tools() {
		own[t.Name] = true
	}
	now := make(map[string]Extra)
	for _, e := range s.opts.Extra() {
		if own[e.Name] {
			continue // a tool of the set has the name already
		}
		if now[e.Name] = e; !same(s.extra[e.Name].Tool, e.Tool) {
			s.addExtra(e)
		}
	}
	for name := range s.extra {
		if _, ok := now[name]; !ok {
			s.server.RemoveTools(name)
		}
	}
	s.extra = now
}

// same reports whether both tools are announced to clients in the same way.
func same(a, b agenttools.Tool) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.ReadOnly == b.ReadOnly &&
		string(a.InputSchema) == string(b.InputSchema)
}

// addExtra registers a tool. go-sdk (v1.8.0) panics at a schema that it does not accept,
// and the schema comes from another program. Such a tool is registered with the schema
// anyObject.
func (s *Server) addExtra(e Extra) {
	defer func() {
		if recover() != nil {
			e.InputSchema = json.RawMessage(anyObject)
			s.register(e)
		}
	}()
	s.register(e)
}

func (s *Server) register(e Extra) {
	schema := e.InputSchema
	if len(schema) == 0 {
		schema = json.RawMessage(anyObject)
	}
	name := e.Name
	s.server.AddTool(&sdk.Tool{Name: name, Title: e.Title, Description: e.Description, InputSchema: schema,
		Annotations: &sdk.ToolAnnotations{Title: e.Title, ReadOnlyHint: e.ReadOnly}},
		func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			ctx, cancel := s.callContext(ctx, req)
			defer cancel()
			return s.callExtra(ctx, name, req.Params.Arguments), nil
		})
}

// errToolGone is the answer to a call of a tool that is no longer offered.
var errToolGone = errors.New("this tool is no longer offered: list the tools again")

// callExtra calls the extra tool that has the name now. The answer is marked as
// untrusted, because another program wrote it.
func (s *Server) callExtra(ctx context.Context, name string, args json.RawMessage) *sdk.CallToolResult {
	s.extraMu.Lock()
	e, ok := s.extra[name]
	s.extraMu.Unlock()
	answer, err := "", errToolGone
	if ok {
		answer, err = s.callSafely(ctx, e, args)
	}
	if err != nil {
		answer = err.Error()
	}
	return &sdk.CallToolResult{IsError: err != nil, Content: text(answer), Meta: sdk.Meta{metaUntrusted: true}}
}

// callSafely calls the tool. If it panics, only this call fails, with agenttools.ErrBug.
func (s *Server) callSafely(ctx context.Context, e Extra, args json.RawMessage) (answer string, err error) {
	defer s.tools.Survive(e.Name, func() { answer, err = "", agenttools.ErrBug })
	return e.Call(ctx, args)
}

// syncing is a middleware that calls Sync before tools are listed or called.
func (s *Server) syncing(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "tools/list" || method == "tools/call" {
			s.Sync()
		}
		return next(ctx, method, req)
	}
}
