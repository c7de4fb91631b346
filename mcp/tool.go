package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool: what clients are told, and what a call does. Its error's
// text is for the model.
type tool struct {
	name, title, description string
	schema                   string // JSON Schema of the arguments
	hints                    sdk.ToolAnnotations
	long                     bool // its answer may have more than 50 KB, see metaResultSize
	call                     func(ctx context.Context, c call) (result, error)
}

// call is one call of a tool.
type call struct {
	args json.RawMessage
	req  *sdk.CallToolRequest
}

// result is what a tool answers: text is marshalled into the text content and
// is the structured content too, unless structured is set. untrusted says that
// it holds what programs printed.
type result struct {
	text       any
	structured any
	untrusted  bool
}

// metaUntrusted marks a result with text from programs.
const metaUntrusted = "tether/untrusted"

// metaResultSize tells Claude Code how many characters of a tool's answer to show. Without it, it shows of an answer of more than
// 50,000 the first 2 KB alone, which of a terminal are the least interesting; maxResultSize is the most that it takes. Seen with 2.1.197.
const (
	metaResultSize = "anthropic/maxResultSizeChars"
	maxResultSize  = 500_000
)

// addTools registers the tools that the principal may use.
func (s *Server) addTools() {
	s.tools = []tool{s.listTool(), s.readTool(), s.waitTool()}
	if s.control != nil {
		s.tools = append(s.tools, s.spawnTool(), s.promoteTool(), s.killTool(), s.writeTool(), s.signalTool())
	}
	for i, t := range s.tools {
		t = s.survive(t)
		s.tools[i] = t
		hints := t.hints
		var meta sdk.Meta
		if t.long {
			meta = sdk.Meta{metaResultSize: maxResultSize}
		}
		s.server.AddTool(&sdk.Tool{
			Meta: meta, Name: t.name, Title: t.title, Description: t.description, InputSchema: json.RawMessage(t.schema), Annotations: &hints,
		}, s.handler(t))
	}
}

// handler turns a call into the protocol's form. A tool's failure is a result
// that the model can read, not a failure of the protocol.
func (s *Server) handler(t tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := s.callContext(ctx, req)
		defer cancel()
		r, err := t.call(ctx, call{args: req.Params.Arguments, req: req})
		if err != nil {
			return &sdk.CallToolResult{IsError: true, Content: text(err.Error())}, nil
		}
		body, err := encode(r.text)
		if err != nil {
			return nil, err
		}
		out := &sdk.CallToolResult{Content: text(body), StructuredContent: r.structured}
		if r.structured == nil {
			out.StructuredContent = json.RawMessage(body)
		}
		if r.untrusted {
			out.Meta = sdk.Meta{metaUntrusted: true}
		}
		return out, nil
	}
}

func text(s string) []sdk.Content { return []sdk.Content{&sdk.TextContent{Text: s}} }

// encode is v as JSON that a model reads without trouble: <, > and & stay.
func encode(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func (c call) decode(into any) error { return Decode(c.args, into) }

// Decode reads the arguments of a call into a struct and says what is wrong
// with them in words that a model can act on. No arguments are an empty object.
func Decode(args json.RawMessage, into any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("the arguments must be an object, not %s", wrong.Value)
	case errors.As(err, &wrong):
		name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // without the embedded struct's
		return fmt.Errorf("%s must be %s, not %s", name, kindOf(wrong.Type), wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown argument %s; known arguments: %s", name, strings.Join(fields(into), ", "))
	}
	return fmt.Errorf("arguments: %w", err)
}

func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of strings"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a " + t.Kind().String()
}

// fields are the arguments that a struct takes.
func fields(of any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of).Elem()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

// target is the argument that most tools have: an id or a name, and after resolve an id.
type target struct {
	TerminalID string `json:"terminalId"`
}

// terminalSchema describes it.
const terminalSchema = `"terminalId":{"type":"string","description":"id or name from list_terminals, such as pty-abc123 or dev-server"}`

const targetSchema = `{"type":"object","properties":{` + terminalSchema + `},"required":["terminalId"],"additionalProperties":false}`

func (t target) check() error {
	if t.TerminalID == "" {
		return errors.New("terminalId is missing; list_terminals lists the terminals")
	}
	return nil
}

// decodeTarget decodes the arguments of a tool that takes nothing but a terminal.
func (s *Server) decodeTarget(c call, in *target) error {
	if err := c.decode(in); err != nil {
		return err
	}
	return s.resolve(in)
}

// said is an error in the words of the tools' contract, which are sentences.
type said string

func (s said) Error() string { return string(s) }

// about is an error of a terminal in the tools' words.
func about(id string, err error) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return said(fmt.Sprintf("Terminal not found: %.60q; list_terminals lists them", id))
	case errors.Is(err, ErrExited):
		return fmt.Errorf("terminal %s has exited; read_terminal shows what it printed", id)
	}
	return err
}

// inRange says what is wrong with a number, if anything.
func inRange(name string, v, lo, hi int64) error {
	if v < lo || v > hi {
		return fmt.Errorf("%s %d is out of range, it must be %d to %d", name, v, lo, hi)
	}
	return nil
}

func oneOf(name, v string, words ...string) error {
	if !slices.Contains(words, v) {
		return fmt.Errorf("%s %.40q must be one of %s", name, v, strings.Join(words, ", "))
	}
	return nil
}

func no() *bool  { return new(bool) }
func yes() *bool { v := true; return &v }

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
