package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is what somebody who may call a tool is told of it.
type Tool struct {
	Name, Title, Description string
	InputSchema              json.RawMessage // a JSON Schema, of an object
	ReadOnly                 bool            // it changes nothing
}

// Tools returns the tools that the principal may use, for a door that brings
// calls in another way than MCP does.
func (s *Server) Tools() []Tool {
	var all []Tool
	for _, t := range s.tools {
		all = append(all, Tool{t.name, t.title, t.description, json.RawMessage(t.schema), t.hints.ReadOnlyHint})
	}
	return all
}

// Call calls a tool as a session would and returns the text of its answer,
// which is JSON. args is an object, or nothing. It blocks for as long as the tool
// does, until ctx or the server ends. The error's text is for the model.
func (s *Server) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	for _, t := range s.tools {
		if t.name != name {
			continue
		}
		req := &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Name: name, Arguments: args}}
		ctx, cancel := s.callContext(ctx, req)
		defer cancel()
		r, err := t.call(ctx, call{args: args, req: req})
		if err != nil {
			return "", err
		}
		return encode(r.text)
	}
	return "", fmt.Errorf("no such tool: %.40q", name)
}
