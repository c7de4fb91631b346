package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/agenttools"
	"tether/internal/testkit/must"
)

// recordedRun is a tool's output at a terminal, as printed in /home/me/app.
func recordedRun(t *testing.T, name string) string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("../problems/testdata/runs", name+".pty.out")))(t)
	return strings.ReplaceAll(string(data), "/tmp/app/vite", "/home/me/app")
}

// The examples in docs/MCP.md equal the tools' present answers about a recorded run of a
// broken Vite.
func TestDocumentedExamples(t *testing.T) {
	document := must.Get(os.ReadFile("../docs/MCP.md"))(t)
	plain := func(text string) string { return strings.Join(strings.Fields(text), "") } // lines are broken in the document
	f := &fakeTerminals{}
	vite := f.add("pty-4fc7qcnq", agenttools.OwnerUser)
	vite.info.Name, vite.info.Cwd = "vite", "/home/me/app"
	session := one(t, f)
	shows := func(tool string, args any) string {
		t.Helper()
		text, isError := answer(t, session, tool, args)
		if isError {
			t.Fatalf("%s %v: %s", tool, args, text)
		}
		call, _ := json.Marshal(args)
		for _, want := range []string{tool + " " + string(call), text} {
			if !strings.Contains(plain(string(document)), plain(want)) {
				t.Errorf("docs/MCP.md does not show\n%s", want)
			}
		}
		return text
	}
	vite.print(recordedRun(t, "vite-dev-syntax"))
	var first agenttools.ProblemsAnswer
	must.Do(t, json.Unmarshal([]byte(shows("problems", m{"terminalId": "vite"})), &first))
	fixed := recordedRun(t, "vite-dev-fixed")
	vite.print(fixed[strings.LastIndex(fixed, "\x1b[1;1H"):])
	shows("problems", m{"since": first.Cursor, "terminalId": "vite"})
}
