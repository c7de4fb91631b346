package mcp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// recordedRun is a tool's output at a terminal, as printed in /home/me/app.
func recordedRun(t *testing.T, name string) string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("../problems/testdata/runs", name+".pty.out")))(t)
	for _, dir := range []string{"vite", "rust"} {
		data = bytes.ReplaceAll(data, []byte("/tmp/app/"+dir), []byte("/home/me/app"))
	}
	return string(data)
}

// The examples in docs/MCP.md equal the tools' present answers about recorded runs of a
// broken Vite and a failing cargo test.
func TestDocumentedExamples(t *testing.T) {
	document := must.Get(os.ReadFile("../docs/MCP.md"))(t)
	plain := func(text string) string { return strings.Join(strings.Fields(text), "") } // lines are broken in the document
	f := &fakeTerminals{}
	vite, cargo := f.add("pty-4fc7qcnq", agenttools.OwnerUser), f.add("pty-2zlji3pt", agenttools.OwnerUser)
	for x, name := range map[*fakeTerminal]string{vite: "vite", cargo: "cargo"} {
		x.info.Name, x.info.Cwd = name, "/home/me/app"
	}
	session := one(t, f)
	shows := func(tool string, args any) string {
		t.Helper()
		text, isError := answer(t, session, tool, args)
		if isError {
			t.Fatalf("%s %v: %s", tool, args, text)
		}
		if tool == "read_terminal" {
			var a agenttools.ReadAnswer
			must.Do(t, json.Unmarshal([]byte(text), &a))
			text = a.History
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
	cargo.print(recordedRun(t, "cargo-test-fails"))
	cargo.exit(vocab.Exit{Code: 101, Reason: "exited", At: time.UnixMilli(1706234571234)})
	shows("problems", m{"terminalId": "cargo"})
	shows("read_terminal", m{"format": "digest", "terminalId": "cargo"})
}
