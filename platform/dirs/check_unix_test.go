//go:build unix

package dirs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/dirs"
)

// The remedy names the variable that has led to the directory of somebody else.
func TestCheckNamesTheVariable(t *testing.T) {
	foreign := "/usr" // for an ordinary user
	if os.Geteuid() == 0 {
		foreign = t.TempDir()
		for _, dir := range []string{foreign, filepath.Join(foreign, "tether"), filepath.Join(foreign, ".local", "state", "tether"), filepath.Join(foreign, "run")} {
			must.Do(t, os.MkdirAll(dir, 0o700))
			must.Do(t, os.Chown(dir, 4242, 4242))
		}
	}
	for name, want := range map[string]string{
		"HOME":            "set HOME to your own home directory, or TETHER_HOME to",
		"TETHER_HOME":     "unset TETHER_HOME",
		"XDG_RUNTIME_DIR": "unset XDG_RUNTIME_DIR",
		"XDG_STATE_HOME":  "unset XDG_STATE_HOME",
	} {
		for _, other := range []string{"TETHER_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"} {
			t.Setenv(other, "")
		}
		t.Setenv("HOME", t.TempDir())
		t.Setenv(name, foreign)
		d := must.Get(dirs.For("linux", os.Getenv))(t)
		if err := d.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
