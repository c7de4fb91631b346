package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// bin is the directory for the programs that tests start as processes.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "tether-host-test"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(bin)
	os.Exit(status)
}

// build makes tether and tether-host, once for all tests.
var build = sync.OnceValue(func() error { return testkit.Build(bin) })

// stage is a directory with an npm that plays a dev server, both programs in the PATH,
// and a home for the daemon.
type stage struct {
	t   *testing.T
	dir string
	env []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	testkit.Unix(t, testkit.Programs)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build the programs with")
	}
	must.Do(t, build())
	home := testkit.Home(t)
	s := &stage{t: t, dir: t.TempDir()}
	const npm = "#!/bin/sh\necho \"> vite\"\necho \"ready at http://localhost:3000/\"\nexec sleep 1000\n"
	must.Do(t, os.WriteFile(filepath.Join(s.dir, "npm"), []byte(npm), 0o755))
	s.env = append(os.Environ(), "TETHER_HOME="+home, "TETHER_ALLOW_ROOT=1", "TETHER_LEND_AS_ROOT=true", "NO_COLOR=1",
		"PATH="+strings.Join([]string{s.dir, bin, os.Getenv("PATH")}, ":"))
	t.Cleanup(func() { _ = s.command("tether", "stop").Run() })
	return s
}

// signed makes a token of the person's, which shows that they are behind commands without
// a terminal. It is for before the first agent.
func (s *stage) signed() {
	s.t.Helper()
	token := must.Get(s.command("tether", "token", "create", "--person", "tests").Output())(s.t)
	path := filepath.Join(s.dir, "person.token")
	must.Do(s.t, os.WriteFile(path, token, 0o600))
	s.env = append(s.env, "TETHER_TOKEN_FILE="+path)
}

func (s *stage) command(name string, args ...string) *exec.Cmd {
	if !strings.Contains(name, "/") && strings.HasPrefix(name, "tether") {
		name = filepath.Join(bin, name)
	}
	c := exec.Command(name, args...)
	c.Env, c.Dir = s.env, s.dir
	return c
}
