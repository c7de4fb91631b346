package houserules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

var (
	usesAction = regexp.MustCompile(`uses:\s*(\S+)(\s+# v\d+\.\d+\.\d+)?`)
	pinned     = regexp.MustCompile(`^[\w.-]+/[\w.-]+@[0-9a-f]{40}$`)
	callsMake  = regexp.MustCompile(`\bmake ([a-z-]+)`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)
)

// checkWorkflow demands that a workflow pins each action by its commit, with the version
// in a comment, and that the targets it makes exist in the Makefile. A test cannot run
// workflows, so it checks only their text.
func checkWorkflow(name, text string, targets map[string]bool) []string {
	var bad []string
	for _, m := range usesAction.FindAllStringSubmatch(text, -1) {
		if !pinned.MatchString(m[1]) || m[2] == "" {
			bad = append(bad, fmt.Sprintf("%s: %s is not pinned by its commit, with its version behind it", name, m[1]))
		}
	}
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "#")
		for _, m := range callsMake.FindAllStringSubmatch(code, -1) {
			if !targets[m[1]] {
				bad = append(bad, fmt.Sprintf("%s: there is no target %s", name, m[1]))
			}
		}
	}
	return bad
}

func TestWorkflows(t *testing.T) {
	t.Chdir(root)
	makefile := must.Get(os.ReadFile("Makefile"))(t)
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	for _, name := range files {
		text := must.Get(os.ReadFile(name))(t)
		report(t, checkWorkflow(name, string(text), targets))
	}
}

// CI keeps the pictures that make test-web leaves for people.
func TestPicturesAreKept(t *testing.T) {
	t.Chdir(root)
	script := must.Get(os.ReadFile("scripts/test-web.sh"))(t)
	ci := must.Get(os.ReadFile(".github/workflows/ci.yml"))(t)
	const pictures = "bin/screenshots"
	if !strings.Contains(string(script), "TETHER_SCREENSHOTS=$PWD/"+pictures) {
		t.Errorf("scripts/test-web.sh leaves no pictures in %s", pictures)
	}
	_, rest, _ := strings.Cut(string(ci), "- run: .ci/run\n")
	step, _, _ := strings.Cut(rest, "\n\n")
	if !strings.Contains(step, "actions/upload-artifact@") || !strings.Contains(step, "path: "+pictures) {
		t.Errorf("ci.yml does not keep %s after .ci/run:\n%s", pictures, step)
	}
}

func TestWorkflowsCanFail(t *testing.T) {
	t.Chdir(root)
	targets := map[string]bool{"test": true}
	commit := strings.Repeat("a1", 20)
	for text, bad := range map[string]int{
		"uses: a/b@" + commit + " # v1.2.3\nrun: make test": 0,
		"uses: a/b@" + commit:                               1,
		"uses: a/b@v1 # v1.2.3":                             1,
		"run: sudo make tset":                               1,
		"# we make everything":                              0,
	} {
		if got := checkWorkflow("a.yml", text, targets); len(got) != bad {
			t.Errorf("%q: complaints %q, want %d", text, got, bad)
		}
	}
}
