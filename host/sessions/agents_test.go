package sessions

import (
	"encoding/json"
	"strings"
	"testing"

	"tether/ahp"
)

func TestMachineToolNames(t *testing.T) {
	for _, tt := range []struct{ machine, tool, want string }{
		{"laptop", "run", "laptop__run"},
		{"ann's laptop/2", "read.it", "ann-s-laptop-2__read_it"},
		{"größe", "run", "gr--e__run"},
		{strings.Repeat("m", 80), "run", strings.Repeat("m", 59) + "__run"},
		{"laptop", strings.Repeat("t", 128), "__" + strings.Repeat("t", 62)},
	} {
		if got := toolName(tt.machine, tt.tool); got != tt.want || len(got) > 64 {
			t.Errorf("%s %s: got %s, want %s", tt.machine, tt.tool, got, tt.want)
		}
	}
}

func TestResultText(t *testing.T) {
	failed := &ahp.ToolError{Message: "no"}
	for name, tt := range map[string]struct {
		result     ahp.ToolResult
		text, fail string
	}{
		"text":           {ahp.ToolResult{Success: true, Content: []ahp.ToolContent{ahp.TextContent("a"), {Type: "resource", Raw: []byte(`{}`)}, ahp.TextContent("b")}}, "a\nb", ""},
		"structured":     {ahp.ToolResult{Success: true, StructuredContent: json.RawMessage(`{"a":1}`)}, `{"a":1}`, ""},
		"nothing":        {ahp.ToolResult{Success: true, PastTenseMessage: ahp.Text{Value: "did it"}}, "did it", ""},
		"failed":         {ahp.ToolResult{Error: failed, Content: []ahp.ToolContent{ahp.TextContent("why")}}, "", "no\nwhy"},
		"failed twice":   {ahp.ToolResult{Error: failed, Content: []ahp.ToolContent{ahp.TextContent("no")}}, "", "no"},
		"failed somehow": {ahp.ToolResult{}, "", "the tool failed"},
	} {
		text, err := resultText(tt.result, func(uri string) string { return uri })
		if text != tt.text || (err != nil) != (tt.fail != "") || err != nil && err.Error() != tt.fail {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
}
