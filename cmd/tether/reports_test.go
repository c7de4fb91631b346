package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Cases from public reports of similar programs, see testdata/reports/README.md. Each is
// a script that uses the shipped programs as a person does, and prints a line with PASS
// or FAIL for each verdict.
func TestReports(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	bin := t.TempDir()
	must.Do(t, testkit.Build(bin))
	runs, err := filepath.Glob("testdata/reports/*/run.*")
	if err != nil || len(runs) < 12 {
		t.Fatalf("%d cases, %v", len(runs), err)
	}
	needs := map[string][]string{
		"proxy-gzip-sse": {"nginx", "python3", "curl"}, "proxy-idle-504": {"nginx", "curl"}, "launch-preview": {"curl"}, "blesh-typeahead": {"tmux", "python3"},
		"kitty-detach": {"python3"}, "paste-detach": {"python3"}, "mcp-whole-float": {"python3"},
	}
	for _, run := range runs {
		name := filepath.Base(filepath.Dir(run))
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			for _, program := range append(needs[name], "bash") {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed", program)
				}
			}
			if name == "blesh-typeahead" && os.Getenv("BLESH") == "" {
				t.Skip("BLESH does not name ble.sh")
			}
			shell := "bash"
			if strings.HasSuffix(run, ".py") {
				shell = "python3"
			}
			c := exec.CommandContext(t.Context(), shell, run)
			c.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), fmt.Sprint("PORT=", testkit.FreePorts(t)))
			out, err := c.CombinedOutput()
			passed := 0
			for line := range strings.Lines(string(out)) {
				switch {
				case strings.HasPrefix(line, "PASS"):
					passed++
				case strings.Contains(line, "FAIL"):
					t.Error(strings.TrimSpace(line))
				}
			}
			if err != nil || passed == 0 || t.Failed() {
				t.Errorf("%d passed, %v:\n%s", passed, err, out)
			}
		})
	}
}
