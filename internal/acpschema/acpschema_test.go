package acpschema_test

import (
	"strings"
	"testing"

	"tether/internal/acpschema"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		definition, value string
		ok                bool
	}{
		{"TerminalOutputResponse", `{"output":"","truncated":false,"exitStatus":{"exitCode":null,"signal":"SIGKILL"}}`, true},
		{"TerminalOutputResponse", `{"output":1,"truncated":false}`, false},
		{"SessionNotification", `{"sessionId":"s"}`, false},
		{"CreateTerminalResponse", `{}`, false},
		{"CreateTerminalResponse", `{"terminalId":"t","_meta":{"x":1}}`, true},
		{"NoSuchThing", `{}`, false},
		{"CreateTerminalResponse", `{`, false},
	} {
		if err := acpschema.Check(c.definition, []byte(c.value)); (err == nil) != c.ok {
			t.Errorf("%s as %s: %v", c.value, c.definition, err)
		}
	}
}

func TestConversation(t *testing.T) {
	var c acpschema.Conversation
	c.Asked("1", "terminal/output")
	c.Asked(`"x"`, "terminal/output")
	for _, m := range []struct{ line, wrong string }{
		{`{"jsonrpc":"2.0","id":1,"result":{"output":"","truncated":false}}`, ""},
		{`{"jsonrpc":"2.0","id":"x","result":{"output":""}}`, "TerminalOutputResponse"},
		{`{"jsonrpc":"2.0","id":9,"result":{"anything":1}}`, ""},
		{`{"jsonrpc":"2.0","id":9,"error":{"code":-32002,"message":"gone"}}`, ""},
		{`{"jsonrpc":"2.0","id":9,"error":{"message":"gone"}}`, "Error"},
		{`{"jsonrpc":"2.0","method":"session/update","params":{}}`, "SessionNotification"},
		{`{"jsonrpc":"2.0","method":"vendor/thing","params":7}`, ""},
		{`{"jsonrpc":"1.0","method":"vendor/thing"}`, "jsonrpc"},
		{`half`, "half"},
	} {
		err := c.Hears([]byte(m.line))
		if (err == nil) != (m.wrong == "") || err != nil && !strings.Contains(err.Error(), m.wrong) {
			t.Errorf("%s: %v, want %q", m.line, err, m.wrong)
		}
	}
}
