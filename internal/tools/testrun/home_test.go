package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

func TestHomeEnv(t *testing.T) {
	got := homeEnv([]string{"PATH=/bin", "HOME=/home/p", "ZDOTDIR=/z", "ENVY=1", "BASH_ENV=/b", "XDG_CONFIG_HOME=/c", "XDG_RUNTIME_DIR=/run/1"}, "/new",
		[]string{"GOCACHE=/cache"})
	want := []string{"PATH=/bin", "ENVY=1", "XDG_RUNTIME_DIR=/run/1", "GOCACHE=/cache", "HOME=/new", "GORACE=atexit_sleep_ms=20"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// In the new home a shell reads no file of the person's, and the go command works as
// before and leaves no new files.
func TestNewHome(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	own := t.TempDir()
	for _, name := range []string{".profile", ".bashrc", ".bash_profile"} {
		must.Do(t, os.WriteFile(filepath.Join(own, name), []byte("echo from the person\n"), 0o600))
	}
	before := must.Get(goKeeps())(t)
	for _, v := range before { // of the run this test is in
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	t.Setenv("HOME", own)
	t.Setenv("ENV", filepath.Join(own, ".profile"))
	home, env, err := newHome()
	must.Do(t, err)
	defer os.RemoveAll(home)
	run := func(name string, args ...string) string {
		c := exec.Command(name, args...)
		c.Env = env
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%s %q: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := run("/bin/sh", "-l", "-i", "-c", "echo $HOME"); got != home && !strings.HasSuffix(got, "\n"+home) || strings.Contains(got, "person") {
		t.Errorf("a shell says %q, want %s", got, home)
	}
	cache := os.Getenv("GOCACHE")
	if got := run(goTool, "env", "GOCACHE"); got != cache {
		t.Errorf("GOCACHE is %s, was %s", got, cache)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) != 2 {
		t.Errorf("in the home there is %v, %v", left, err)
	}
}
