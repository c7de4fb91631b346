// Package acpschema validates messages of the Agent Client Protocol with its published
// schema of version 1, for tests.
//
//	var c acpschema.Conversation
//	err := c.Hears(line)
package acpschema

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

//go:embed schema-v1.json
var published []byte

// all returns the published definitions by name.
var all = sync.OnceValues(func() (map[string]json.RawMessage, error) {
	var s struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	return s.Defs, json.Unmarshal(published, &s)
})

// resolved caches a schema (*jsonschema.Resolved) for each definition that was checked,
// by its name.
var resolved sync.Map

var reference = regexp.MustCompile(`"#/\$defs/(\w+)"`)

// resolve returns the schema of a definition. It resolves only the definitions to which
// that one refers, since all of them take a second.
func resolve(definition string) (*jsonschema.Resolved, error) {
	if r, ok := resolved.Load(definition); ok {
		return r.(*jsonschema.Resolved), nil
	}
	defs, err := all()
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{Ref: "#/$defs/" + definition, Defs: map[string]*jsonschema.Schema{}}
	for queue := []string{definition}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if s.Defs[name] != nil {
			continue
		}
		var d jsonschema.Schema
		if err := json.Unmarshal(defs[name], &d); err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		s.Defs[name] = &d
		for _, m := range reference.FindAllSubmatch(defs[name], -1) {
			queue = append(queue, string(m[1]))
		}
	}
	r, err := s.Resolve(nil)
	if err == nil {
		resolved.Store(definition, r)
	}
	return r, err
}

// Check returns an error if the value does not match the definition of that name, such as
// "SessionNotification". It is safe for concurrent use.
func Check(definition string, value json.RawMessage) error {
	r, err := resolve(definition)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("%s: %.200s: %w", definition, value, err)
	}
	if err := r.Validate(v); err != nil {
		return fmt.Errorf("no %s: %w\n%.500s", definition, err, value)
	}
	return nil
}

// definitions has the definitions of each method's parameters and result. "" means that
// there is none.
var definitions = map[string][2]string{
	"initialize":                 {"InitializeRequest", "InitializeResponse"},
	"session/new":                {"NewSessionRequest", "NewSessionResponse"},
	"session/prompt":             {"PromptRequest", "PromptResponse"},
	"session/cancel":             {"CancelNotification", ""},
	"session/update":             {"SessionNotification", ""},
	"session/request_permission": {"RequestPermissionRequest", "RequestPermissionResponse"},
	"terminal/create":            {"CreateTerminalRequest", "CreateTerminalResponse"},
	"terminal/output":            {"TerminalOutputRequest", "TerminalOutputResponse"},
	"terminal/wait_for_exit":     {"WaitForTerminalExitRequest", "WaitForTerminalExitResponse"},
	"terminal/kill":              {"KillTerminalRequest", "KillTerminalResponse"},
	"terminal/release":           {"ReleaseTerminalRequest", "ReleaseTerminalResponse"},
	"$/cancel_request":           {"CancelRequestNotification", ""},
}

// Conversation checks the messages that one side receives. The zero value is ready to
// use. It is not safe for concurrent use.
type Conversation struct{ asked map[string]string } // method by id of the request

// Asked notes that this side has sent a request, so that Hears can check the answer. id
// is the id as JSON.
func (c *Conversation) Asked(id, method string) {
	if c.asked == nil {
		c.asked = map[string]string{}
	}
	c.asked[id] = method
}

// Hears checks a message that this side receives. It returns nil for a message without a
// known definition.
func (c *Conversation) Hears(line []byte) error {
	var m struct {
		JSONRPC               string
		ID                    json.RawMessage
		Method                string
		Params, Result, Error json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("%.200s: %w", line, err)
	}
	method := c.asked[string(m.ID)]
	switch {
	case m.JSONRPC != "2.0":
		return fmt.Errorf("jsonrpc is %q in %.200s", m.JSONRPC, line)
	case m.Method != "":
		return checkAs(definitions[m.Method][0], m.Params)
	case m.Error != nil:
		return Check("Error", m.Error)
	}
	delete(c.asked, string(m.ID))
	return checkAs(definitions[method][1], m.Result)
}

// checkAs is Check that accepts any value if definition is "".
func checkAs(definition string, value json.RawMessage) error {
	if definition == "" {
		return nil
	}
	return Check(definition, value)
}
