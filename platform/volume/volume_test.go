package volume

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDeepest(t *testing.T) {
	mounts := []string{"/", "/home", "/home/me/net", "/ho"}
	for path, want := range map[string]string{
		"/": "/", "/etc": "/", "/home": "/home", "/homes": "/", "/home/me/nets": "/home", "/home/me/net/x": "/home/me/net", "/ho/x": "/ho",
	} {
		if got := deepest(mounts, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var table Table
	if table.Of(file) == "" || table.Of(file) != table.Of(dir) {
		t.Errorf("%q, %q", table.Of(file), table.Of(dir))
	}
	f, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if f, err := Open(dir); err == nil {
		f.Close()
		t.Error("a directory was opened")
	}
	if f, err := Open("/dev/null"); err == nil {
		f.Close()
		t.Error("a device was opened")
	}
}
