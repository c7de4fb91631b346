//go:build linux || darwin

package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// wantClosed fails the test unless only this user may use these files.
func wantClosed(t *testing.T, mode os.FileMode, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want mode %o", path, info.Mode(), err, mode)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must.Do(t, os.WriteFile(path("open"), nil, 0o600))
	must.Do(t, os.Chmod(path("open"), 0o640))
	must.Do(t, os.WriteFile(path("closed"), nil, 0o600))
	must.Do(t, os.Symlink(path("closed"), path("link")))
	must.Do(t, os.Mkdir(path("dir"), 0o700))
	must.Do(t, os.Mkdir(path("opendir"), 0o700))
	must.Do(t, os.Chmod(path("opendir"), 0o755))
	must.Do(t, os.Symlink(path("dir"), path("dirlink")))
	must.Do(t, os.WriteFile(path("big"), make([]byte, 1<<20+1), 0o600))

	read := func(name string) error { _, err := secret.ReadFile(path(name)); return err }
	add := func(name string) error {
		f, err := secret.OpenAppend(path(name))
		if err == nil {
			f.Close()
		}
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"read open file", read("open"), "chmod 600 "},
		{"append to open file", add("open"), "chmod 600 "},
		{"read link", read("link"), "link"},
		{"append to link", add("link"), "link"},
		{"read directory", read("dir"), "not a file"},
		{"open directory", secret.Dir(path("opendir")), "chmod 700 "},
		{"linked directory", secret.Dir(path("dirlink")), "not a directory"},
		{"file as directory", secret.Dir(path("closed")), "not a directory"},
		{"large file", read("big"), secret.ErrTooLarge.Error()},
		{"write without directory", secret.WriteFile(path("none/f"), nil), "no such file"},
		{"write over directory", secret.WriteFile(path("dir"), nil), "dir"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", c.name, c.err, c.want)
		}
	}
	if err := read("missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v; want ErrNotExist", err)
	}
	if left, _ := filepath.Glob(path(".*")); len(left) > 0 {
		t.Errorf("failed writes left %v", left)
	}
}
