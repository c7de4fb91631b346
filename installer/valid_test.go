//go:build unix

package installer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// wrong returns the error of a check that finds the configuration wrong.
func wrong(t *testing.T) error {
	t.Helper()
	return &commandError{"tether config check", "tether: config.toml:1: x\n  correct it", exec.Command("sh", "-c", "exit 2").Run()}
}

// wantLeft fails unless err says that the service is left as it is, and why.
func wantLeft(t *testing.T, what string, err error) {
	t.Helper()
	p, ok := errors.AsType[*Problem](err)
	if !ok || !strings.HasSuffix(p.Error(), "would not start: config.toml:1: x") || p.Next != "correct it" {
		t.Errorf("%s with a wrong configuration: %#v", what, err)
	}
}

// With a wrong configuration, a restart and an update that restarts change nothing and
// leave the daemon running.
func TestSystemdRestartWithAWrongConfiguration(t *testing.T) {
	for _, system := range []bool{false, true} {
		m, f := newSystemd(t, system)
		s := serviceIn(m)
		s.Home = "/srv/t"
		ctx := t.Context()
		must.Get(m.Install(ctx, s))(t)
		path := filepath.Join(f.dir, UnitName)
		before, err := os.ReadFile(path)
		must.Do(t, err)
		f.calls, f.check = nil, wrong(t)
		wantLeft(t, "restart", m.Restart(ctx))
		s.AllowRoot = true
		_, err = m.Install(ctx, s)
		wantLeft(t, "update", err)
		after, err := os.ReadFile(path)
		if err != nil || string(after) != string(before) || len(f.calls) > 0 || !f.active {
			t.Errorf("it was changed: calls %q, %v, the unit is\n%s", f.calls, err, after)
		}
		begins := map[bool]string{false: "env ", true: "runuser -u dev -- env "}[system]
		for _, check := range f.checks {
			if !strings.HasPrefix(check, begins) || !strings.HasSuffix(check, " HOME="+s.UserHome+" TETHER_HOME=/srv/t /usr/bin/tether config check") {
				t.Errorf("the check was %q", check)
			}
		}
		f.check = errors.New("runuser: not found")
		if err := m.Restart(ctx); err != nil {
			t.Errorf("with a check that cannot be run: %v", err)
		}
	}
}

func TestLaunchdRestartWithAWrongConfiguration(t *testing.T) {
	m, f, s := newLaunchd(t, true)
	ctx := t.Context()
	must.Get(m.Install(ctx, s))(t)
	f.calls, f.check = nil, wrong(t)
	wantLeft(t, "restart", m.Restart(ctx))
	s.Home = "/srv/t"
	_, err := m.Install(ctx, s)
	wantLeft(t, "update", err)
	if _, was, _, err := installed(m.path()); err != nil || was.Home != "" || len(f.calls) > 0 || !f.running {
		t.Errorf("it was changed: calls %q, %+v, %v", f.calls, was, err)
	}
}

// The check has the variables of the service, not those of the caller.
func TestValid(t *testing.T) {
	s := Service{Program: filepath.Join(t.TempDir(), "tether"), Home: "/srv/t", UserHome: "/home/dev"}
	script := "#!/bin/sh\necho \"tether: $HOME $TETHER_HOME $TETHER_LEND_DEFAULT$XDG_CONFIG_HOME is wrong\" >&2\necho '  correct it' >&2\nexit $CODE\n"
	must.Do(t, os.WriteFile(s.Program, []byte(script), 0o700))
	t.Setenv("TETHER_LEND_DEFAULT", "x")
	t.Setenv("XDG_CONFIG_HOME", "/x")
	for code, want := range map[string]string{"2": "/home/dev /srv/t  is wrong", "0": "", "1": ""} {
		t.Setenv("CODE", code)
		err := s.valid(t.Context(), Execute)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+want)) {
			t.Errorf("exit status %s: %v, want %q", code, err, want)
		}
	}
}
