//go:build linux || darwin

package shell

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUsable(t *testing.T) {
	dir := t.TempDir()
	plain, program := filepath.Join(dir, "plain"), filepath.Join(dir, "program")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{plain: false, program: true, dir: false, filepath.Join(dir, "missing"): false} {
		if got := usable(path); got != want {
			t.Errorf("usable(%q) = %t", path, got)
		}
	}
}

func TestAsk(t *testing.T) {
	if got := string(ask("/bin/sh", "-c", "echo $0 x", "name")); got != "name x\n" {
		t.Errorf("answer %q", got)
	}
	for _, script := range []string{"echo x; exit 1", "kill -9 $$"} {
		if got := ask("/bin/sh", "-c", script); got != nil {
			t.Errorf("%s: answer %q, want none", script, got)
		}
	}
	if got := ask("/no/such/tool"); got != nil {
		t.Errorf("missing tool: answer %q", got)
	}
}
