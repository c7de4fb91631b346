package secret_test

import (
	"os"
	"path/filepath"
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
	wantClosed(t, 0o700, dir, filepath.Dir(dir))
	wantClosed(t, 0o600, name)
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
