//go:build linux || darwin

package shell_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/shell"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == shell.PrintVerb {
		if err := shell.PrintEnvironment(os.Stdout, os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startFiles are the files that a login of each shell reads, and a command that sets a
// variable there.
var startFiles = []struct{ shell, file, set string }{
	{"bash", ".bash_profile", "export FROM_LOGIN='a b\nc'"},
	{"zsh", ".zprofile", "export FROM_LOGIN='a b\nc'"},
	{"fish", ".config/fish/config.fish", "set -gx FROM_LOGIN 'a b\nc'"},
	{"sh", ".profile", "export FROM_LOGIN='a b\nc'"},
}

// home makes a home directory in which the shell's start-up file says script, and returns
// the shell's path.
func home(t *testing.T, name, file, script string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	dir := t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
	must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(script+"\n"), 0o644))
	t.Setenv("HOME", dir)
	return path
}

func TestEnvironmentIsThatOfALogin(t *testing.T) {
	self := must.Get(os.Executable())(t)
	t.Setenv("ONLY_THE_DAEMONS", "x")
	t.Setenv("TETHER_SECRET", "x")
	for _, c := range startFiles {
		t.Run(c.shell, func(t *testing.T) {
			path := home(t, c.shell, c.file, "echo noise; "+c.set+"; echo more noise >&2")
			env := must.Get(shell.Environment(t.Context(), path, self))(t)
			if !slices.Contains(env, "FROM_LOGIN=a b\nc") {
				t.Errorf("what the start-up file set is missing in %q", env)
			}
			for _, e := range env {
				name, _, _ := strings.Cut(e, "=")
				if strings.HasPrefix(name, "TETHER_") || name == "ONLY_THE_DAEMONS" || name == "_" || name == "PWD" {
					t.Errorf("%q does not belong there", e)
				}
			}
			if !slices.Contains(env, "SHELL="+path) || !slices.Contains(env, "HOME="+os.Getenv("HOME")) {
				t.Errorf("no SHELL or HOME in %q", env)
			}
		})
	}
}

// A Cache knows the umask that the start-up files set.
func TestUmaskOfALogin(t *testing.T) {
	self := must.Get(os.Executable())(t)
	c := &shell.Cache{Path: home(t, "bash", ".bash_profile", "umask 037; export TETHER_LOGIN_UMASK=1"), Self: self, Limit: testkit.Patience}
	if c.Umask() != 0 {
		t.Errorf("umask %o of a login that was not asked", c.Umask())
	}
	if _, err := c.Get(t.Context()); err != nil || c.Umask() != 0o037 {
		t.Errorf("umask %o, %v", c.Umask(), err)
	}
}

func TestEnvironmentThatHangsIsGivenUp(t *testing.T) {
	self, _ := os.Executable()
	pidFile := filepath.Join(t.TempDir(), "pid")
	path := home(t, "bash", ".bash_profile", "sleep 1000 & echo $! > "+pidFile+"; wait")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := shell.Environment(ctx, path, self)
		ended <- err
	}()
	testkit.Eventually(t, testkit.Patience, "the shell hangs", func() bool {
		pid, err := os.ReadFile(pidFile)
		return err == nil && strings.HasSuffix(string(pid), "\n")
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's", err)
	}
	pid := must.Get(os.ReadFile(pidFile))(t)
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("what the start-up file began is alive: %s", stat)
	}
}

func TestEnvironmentThatIsNotPrintedIsAnError(t *testing.T) {
	self, _ := os.Executable()
	path := home(t, "bash", ".bash_profile", "exit 3")
	if _, err := shell.Environment(t.Context(), path, self); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error = %v, want one with the exit status", err)
	}
	if _, err := shell.Environment(t.Context(), "/usr/bin/elvish", self); !errors.Is(err, shell.ErrUnsupported) {
		t.Errorf("error = %v, want ErrUnsupported", err)
	}
}

// The daemon keeps no more of a start-up file's output than the bound, however much it
// prints.
func TestEnvironmentAfterMuchOutputIsAnError(t *testing.T) {
	self, _ := os.Executable()
	path := home(t, "sh", ".profile", "head -c 7000000 /dev/zero")
	if env, err := shell.Environment(t.Context(), path, self); err == nil {
		t.Errorf("after 7 MB of other output it has read %q", env)
	}
}

func TestCacheAsksOnceAndOnRequest(t *testing.T) {
	self, _ := os.Executable()
	count := filepath.Join(t.TempDir(), "count")
	path := home(t, "bash", ".bash_profile", "echo x >> "+count+"; export ASKED=$(wc -l < "+count+" | tr -d ' ')")
	c := shell.Cache{Path: path, Self: self, Limit: testkit.Patience}
	for want, get := range []func(context.Context) ([]string, error){nil, c.Get, c.Refresh} {
		if get == nil {
			continue
		}
		for range 3 {
			env := must.Get(get(t.Context()))(t)
			if !slices.Contains(env, "ASKED="+string(rune('0'+want))) {
				t.Fatalf("call %d got %q", want, env)
			}
			if want == 2 {
				break
			}
		}
	}
}

// One start waits for start-up files that are slow, not each; when they have ended in the
// background, their result counts.
func TestSlowLoginIsWaitedForOnce(t *testing.T) {
	self, _ := os.Executable()
	dir := t.TempDir()
	count, end := filepath.Join(dir, "count"), filepath.Join(dir, "end")
	path := home(t, "bash", ".bash_profile", "echo x >> "+count+"; while ! [ -e "+end+" ]; do sleep 0.05; done; export FROM_LOGIN=1")
	c := shell.Cache{Path: path, Self: self, Limit: 200 * time.Millisecond}
	for range 3 {
		if env, err := c.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "take more than 200ms") {
			t.Fatalf("%q, %v; want an error that tells the time", env, err)
		}
	}
	if asked, err := os.ReadFile(count); err != nil || string(asked) != "x\n" {
		t.Errorf("the shell was asked %d times (%v), want once", len(asked)/2, err)
	}
	must.Do(t, os.WriteFile(end, nil, 0o600))
	must.Get(c.Refresh(t.Context()))(t)
	if env, err := c.Get(t.Context()); err != nil || !slices.Contains(env, "FROM_LOGIN=1") {
		t.Errorf("afterwards: %q, %v", env, err)
	}
}

// A caller that gives up leaves nothing behind for the next one.
func TestCallerThatGivesUpIsNoFailure(t *testing.T) {
	self, _ := os.Executable()
	path := home(t, "bash", ".bash_profile", "export FROM_LOGIN=1")
	c := shell.Cache{Path: path, Self: self, Limit: testkit.Patience}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's", err)
	}
	if env, err := c.Get(t.Context()); err != nil || !slices.Contains(env, "FROM_LOGIN=1") {
		t.Errorf("the next one: %q, %v", env, err)
	}
}

func TestLine(t *testing.T) {
	argv := shell.Line(`printf '%s|' "a b" $((1+1)) | tr '|' '\n'`)
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if string(out) != "a b\n2\n" || err != nil {
		t.Errorf("%q printed %q, %v", argv, out, err)
	}
}
