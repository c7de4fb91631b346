package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// Every description can be read, and has a recording with a version, which names nothing
// of the machine that made it.
func TestToolsAreRecorded(t *testing.T) {
	t.Chdir("../../..")
	table := must.Get(os.ReadFile(versions))(t)
	names, err := filepath.Glob(toolsDir + "/*.txt")
	if err != nil || len(names) < 32 {
		t.Fatalf("%d tools, %v", len(names), err)
	}
	watchers := 0
	for _, name := range names {
		tool, err := readTool(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if !tool.once {
			watchers++
		}
		base := filepath.Join(outDir, tool.name)
		if !strings.Contains(string(table), "\n"+tool.name+"\t") {
			t.Errorf("%s has no %s; make record-problems TOOLS=%s", versions, tool.name, tool.name)
		}
		for _, file := range []string{base + ".out", base + ".want"} {
			data, err := os.ReadFile(file)
			check.OK(t, err)
			if len(data) > maxOutput || strings.Contains(string(data), "/tmp/") || strings.Contains(string(data), "/root/") {
				t.Errorf("%s has %d bytes, or names of a machine", file, len(data))
			}
		}
	}
	if watchers < 20 {
		t.Errorf("%d tools that watch files, want 20", watchers)
	}
}

// What the machine is called, and secrets, are not in a recording.
func TestMasked(t *testing.T) {
	rules := must.Get(redact.Compile(redact.Options{Tokens: true}))(t)
	secret := "ghp_" + strings.Repeat("a1B2c3", 6)
	out := string(masked(rules, [][2]string{{"/x/vite", home}}, []byte("\x1b[31m/x/vite/app/a.ts\x1b[0m token "+secret+"\r\n")))
	if !strings.HasPrefix(out, "\x1b[31m/home/dev/app/a.ts\x1b[0m token ") || strings.Contains(out, secret) {
		t.Errorf("%q", out)
	}
}

// A column is taken from what the tool printed, and a line that it did not print is an
// error.
func TestShown(t *testing.T) {
	for _, c := range []struct{ where, text, want string }{
		{"src/a.ts:3", "src/a.ts:3:7: bad", "src/a.ts:3:7"},
		{"src/a.ts:3", "src/a.ts(3,7): bad", "src/a.ts:3:7"},
		{"src/a.ts:3", "a.ts line 3", "src/a.ts:3"},
		{"src/a.ts:0", "a.ts", "src/a.ts:0"},
		{"src/a.ts:3", "a.ts:4:1", ""},
	} {
		if got, err := shown(c.where, c.text); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s in %q: %q, %v", c.where, c.text, got, err)
		}
	}
}
