package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/platform/secret"
)

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := secret.Dir(dir); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "f")
	for _, want := range []string{"first", "", "second"} {
		if err := secret.WriteFile(name, []byte(want)); err != nil {
			t.Fatal(err)
		}
		got, err := secret.ReadFile(name)
		if err != nil || string(got) != want {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Dir(dir): 0o700, name: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %o", path, info.Mode(), err, want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left beside the file: %v", left)
	}
}

func TestAppend(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for range 2 {
		f, err := secret.OpenAppend(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if got, err := secret.ReadFile(name); err != nil || string(got) != "xx" {
		t.Errorf("read %q, %v; want xx", got, err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(path("open"), nil, 0o600))
	must(os.Chmod(path("open"), 0o640))
	must(os.WriteFile(path("closed"), nil, 0o600))
	must(os.Symlink(path("closed"), path("link")))
	must(os.Mkdir(path("dir"), 0o700))
	must(os.Mkdir(path("opendir"), 0o700))
	must(os.Chmod(path("opendir"), 0o755))
	must(os.Symlink(path("dir"), path("dirlink")))
	must(os.WriteFile(path("big"), make([]byte, 1<<20+1), 0o600))

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
