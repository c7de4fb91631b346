//go:build linux || darwin

package secret_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// ReadOwned accepts a file that others may read, also through a link, and refuses one
// that others may change.
func TestReadOwned(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, size int, mode os.FileMode) {
		t.Helper()
		must.Do(t, errors.Join(os.WriteFile(path(name), bytes.Repeat([]byte("x"), size), mode), os.Chmod(path(name), mode)))
	}
	put("closed", 1, 0o600)
	put("readable", 1, 0o644)
	put("group", 1, 0o664)
	put("world", 1, 0o646)
	put("large", 1<<20+1, 0o600)
	for name, target := range map[string]string{"link": "readable", "open-link": "world", "loop": "loop"} {
		must.Do(t, os.Symlink(path(target), path(name)))
	}
	for _, c := range []struct{ name, want string }{
		{"closed", ""}, {"readable", ""}, {"link", ""},
		{"group", "chmod go-w"}, {"world", "chmod go-w"}, {"open-link", "chmod go-w"},
		{"large", "larger than 1 MiB"}, {".", "is not a file"}, {"loop", "too many"},
	} {
		data, err := secret.ReadOwned(path(c.name))
		if c.want == "" && (err != nil || string(data) != "x") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v; want %q", c.name, data, err, c.want)
		}
	}
	if _, err := secret.ReadOwned(path("missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
