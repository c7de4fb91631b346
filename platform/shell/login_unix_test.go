//go:build linux || darwin

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

func TestUsable(t *testing.T) {
	dir := t.TempDir()
	plain, program := filepath.Join(dir, "plain"), filepath.Join(dir, "program")
	must.Do(t, os.WriteFile(plain, nil, 0o644))
	must.Do(t, os.WriteFile(program, nil, 0o755))
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

func TestUsual(t *testing.T) {
	data, _ := os.ReadFile("/etc/shells")
	for line := range strings.Lines(string(data)) {
		if path := strings.TrimSpace(line); filepath.IsAbs(path) && !Usual(path) {
			t.Errorf("%s is in /etc/shells", path)
		}
	}
	if !Usual(Login()) {
		t.Errorf("%s is the login shell", Login())
	}
	for _, path := range []string{"", "bash", "/tmp/bash", "# /etc/shells: valid login shells", "/usr/sbin/nologin"} {
		if Usual(path) {
			t.Errorf("%q is no usual shell", path)
		}
	}
}
