package mcp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
)

// Extra is a tool outside the set: it may come and go, and its answers come from elsewhere.
type Extra struct {
	agenttools.Tool
	// Call calls it with arguments that are a JSON object, or nothing. The text, or the error's, is for the model. It blocks until ctx ends at
	// the most.
	Call func(ctx context.Context, args json.RawMessage) (string, error)
}

// anyObject is the schema of a tool that has none that can be used.
const anyObject = `{"type":"object"}`

// Sync updates the announced tools to those of Options.Extra, and notifies the sessions of changes. It may be called at any time, and is
// called before tools are listed or called.
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
			continue // the set's own come first
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

func same(a, b agenttools.Tool) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.ReadOnly == b.ReadOnly &&
		string(a.InputSchema) == string(b.InputSchema)
}

// addExtra registers a tool. go-sdk (v1.8.0) panics at schemas that it does not like; who offers the tool may be anybody, so such a tool
// takes any object.
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

// errToolGone is answered to a call of a tool that is not offered any more.
var errToolGone = errors.New("this tool is no longer offered: list the tools again")

// callExtra calls the present tool with that name. Its answer was written elsewhere.
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

// callSafely is the tool's Call, which ends alone when it meets a bug.
func (s *Server) callSafely(ctx context.Context, e Extra, args json.RawMessage) (answer string, err error) {
	defer s.tools.Survive(e.Name, func() { answer, err = "", agenttools.ErrBug })
	return e.Call(ctx, args)
}

// syncing brings the tools up to date before they are listed or called.
func (s *Server) syncing(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "tools/list" || method == "tools/call" {
			s.Sync()
		}
		return next(ctx, method, req)
	}
}
