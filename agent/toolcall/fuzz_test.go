package toolcall_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tether/agent/toolcall"
	"tether/ahp"
)

// With any request of a host nothing breaks, and accepted arguments are one JSON object
// of a bounded size, as sent.
func FuzzArguments(f *testing.F) {
	for _, input := range []string{`"{}"`, `"{\"a\":1}"`, `"{} {}"`, `"null"`, `"[]"`, `""`, `{"uri":"x"}`, `7`, `"{\"a\":\"\\ud800\"}"`, `"\u0000"`, `"{\"a\":1,\"a\":2}"`} {
		f.Add([]byte(`{"id":"1","kind":"toolClientExecution","chat":"a:b","turnId":"t","clientId":"c","toolCall":{"status":"running","toolCallId":"x","toolName":"y","toolInput":` + input + `}}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r ahp.InputRequest
		if json.Unmarshal(raw, &r) != nil || r.ToolCall == nil {
			return
		}
		args, err := toolcall.Arguments(*r.ToolCall)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "toolInput ") {
				t.Errorf("%q: the error %q does not name the field", raw, err)
			}
			return
		}
		if trimmed := bytes.TrimSpace(args); !json.Valid(args) || trimmed[0] != '{' || len(args) > 256<<10 {
			t.Errorf("%q: %q was taken for arguments", raw, args)
		}
		var text string
		if json.Unmarshal(r.ToolCall.ToolInput, &text) == nil && text != "" && text != string(args) {
			t.Errorf("%q: arguments %q, sent were %q", raw, args, text)
		}
	})
}
