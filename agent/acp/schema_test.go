package acp_test

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemas are those of the published schema of version 1, see testdata/README.md.
var schemas = sync.OnceValues(func() (*jsonschema.Schema, error) {
	data, err := os.ReadFile("testdata/schema-v1.json")
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	return &s, json.Unmarshal(data, &s)
})

// resolved caches one schema for each definition.
var resolved sync.Map

// valid fails the test unless value is what the definition says.
func valid(t *testing.T, definition string, value json.RawMessage) {
	t.Helper()
	r, ok := resolved.Load(definition)
	if !ok {
		all, err := schemas()
		if err != nil {
			t.Fatal(err)
		}
		one := &jsonschema.Schema{Ref: "#/$defs/" + definition, Defs: all.Defs}
		resolvedOne, err := one.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", definition, err)
		}
		r, _ = resolved.LoadOrStore(definition, resolvedOne)
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		t.Errorf("%s: %.200s: %v", definition, value, err)
		return
	}
	if err := r.(*jsonschema.Resolved).Validate(v); err != nil {
		t.Errorf("no %s: %v\n%.500s", definition, err, value)
	}
}

// checks validates what one side hears.
type checks struct {
	toEditor bool
	asked    map[string]string // method by the id of the agent's requests
}

func (c *checks) expect(id, method string) {
	if c.asked == nil {
		c.asked = map[string]string{}
	}
	c.asked[id] = method
}

var results = map[string]string{
	"terminal/create": "CreateTerminalResponse", "terminal/output": "TerminalOutputResponse",
	"terminal/wait_for_exit": "WaitForTerminalExitResponse", "terminal/kill": "KillTerminalResponse",
	"terminal/release": "ReleaseTerminalResponse",
}

// check validates a line that the proxy has made, or changed.
func (c *checks) check(t *testing.T, line string) {
	t.Helper()
	var m struct {
		JSONRPC               string
		ID                    json.RawMessage
		Method                string
		Params, Result, Error json.RawMessage
	}
	if json.Unmarshal([]byte(line), &m) != nil {
		return // it is the other side's
	}
	switch {
	case m.Method == "initialize":
		valid(t, "InitializeRequest", m.Params)
	case m.Method == "session/update":
		valid(t, "SessionNotification", m.Params)
	case m.Method == "session/request_permission":
		valid(t, "RequestPermissionRequest", m.Params)
	case m.Error != nil && c.asked[string(m.ID)] != "":
		valid(t, "Error", m.Error)
	case c.asked[string(m.ID)] != "":
		valid(t, results[c.asked[string(m.ID)]], m.Result)
	}
	if strings.Contains(m.Method, "terminal/") && c.toEditor {
		t.Errorf("the editor hears %s", line)
	}
}

func TestSchemaCanFail(t *testing.T) {
	for definition, value := range map[string]string{
		"TerminalOutputResponse": `{"output":1,"truncated":false}`, "SessionNotification": `{"sessionId":"s"}`,
		"CreateTerminalResponse": `{}`,
	} {
		probe := &testing.T{}
		valid(probe, definition, json.RawMessage(value))
		if !probe.Failed() {
			t.Errorf("%s passes as %s", value, definition)
		}
	}
}
