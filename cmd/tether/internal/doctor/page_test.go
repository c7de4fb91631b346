package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

// Errors point to pages where packages and archives put them.
func TestPageIn(t *testing.T) {
	const page = "docs/CONFIG.md"
	for _, c := range []struct{ program, at string }{
		{"usr/bin", "usr/share/doc/tether/docs/CONFIG.md"},
		{"tether_1_linux", "tether_1_linux/docs/CONFIG.md"},
	} {
		root := t.TempDir()
		program, at := filepath.Join(root, filepath.FromSlash(c.program)), filepath.Join(root, filepath.FromSlash(c.at))
		mkdir(t, program)
		if got := pageIn(program, page); got != page {
			t.Errorf("%s: %q where there is none", c.program, got)
		}
		mkdir(t, filepath.Dir(at))
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := pageIn(program, page); got != at {
			t.Errorf("%s: %q, want %q", c.program, got, at)
		}
	}
}
