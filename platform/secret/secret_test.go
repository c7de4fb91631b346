package secret_test

import (
	"os"
	"path/filepath"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/secret"
)

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	must.Do(t, secret.Dir(dir))
	name := filepath.Join(dir, "f")
	for _, want := range []string{"first", "", "second"} {
		must.Do(t, secret.WriteFile(name, []byte(want)))
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
		f := must.Get(secret.OpenAppend(name))(t)
		must.Get(f.WriteString("x"))(t)
		f.Close()
	}
	if got, err := secret.ReadFile(name); err != nil || string(got) != "xx" {
		t.Errorf("read %q, %v; want xx", got, err)
	}
}
