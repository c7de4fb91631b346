//go:build unix

package installer

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/must"
)

// fakeLaunchd answers launchctl as its manual page and published logs show it. It was not
// compared with a Mac.
type fakeLaunchd struct {
	screen          bool // a person is logged in at the screen
	loaded, running bool
	lingering       int // number of print calls that still find the service after bootout
	fail            string
	calls           []string
	check           error // the result of a check of the configuration
}

func (f *fakeLaunchd) run(_ context.Context, name string, args ...string) (string, error) {
	call := strings.Join(args, " ")
	if strings.HasSuffix(call, "tether config check") {
		return "", f.check
	}
	if args[0] == "print" {
		return f.print(args[1])
	}
	f.calls = append(f.calls, call)
	if f.fail != "" && strings.HasPrefix(call, f.fail) {
		return "", errors.New("Bootstrap failed: 5: Input/output error")
	}
	switch args[0] {
	case "bootstrap":
		f.loaded, f.running = true, true
	case "bootout":
		f.running = false
		if f.lingering == 0 {
			f.loaded = false
		}
	case "kickstart":
		f.running = true
	case "kill":
		f.running = false
	}
	return "", nil
}

func (f *fakeLaunchd) print(target string) (string, error) {
	missing := errors.New("Could not find domain or service")
	if !strings.HasSuffix(target, Label) {
		if f.screen {
			return "", nil
		}
		return "", missing
	}
	if f.lingering > 0 {
		if f.lingering--; f.lingering == 0 {
			f.loaded = false
		}
	}
	switch {
	case !f.loaded:
		return "", missing
	case f.running:
		return "gui/501/" + Label + " = {\n\tstate = running\n\tspawn = {\n\t\tstate = waiting\n\t}\n}\n", nil
	}
	return "gui/501/" + Label + " = {\n\tstate = not running\n}\n", nil
}

func newLaunchd(t *testing.T, screen bool) (*launchd, *fakeLaunchd, Service) {
	root := t.TempDir()
	f := &fakeLaunchd{screen: screen}
	home := filepath.Join(root, "Users/zoë b")
	m := &launchd{run: f.run, uid: 501, dir: filepath.Join(home, "Library/LaunchAgents"), daemon: filepath.Join(root, "Library/LaunchDaemons"),
		log: func(s Service) string { return filepath.Join(s.UserHome, "Library/Logs/tether.log") }}
	return m, f, Service{Program: "/opt/homebrew/bin/tether", User: "zoe", UID: 501, UserHome: home}
}

func TestLaunchdLife(t *testing.T) {
	for domain, screen := range map[string]bool{"gui/501": true, "user/501": false} {
		m, f, s := newLaunchd(t, screen)
		target := domain + "/" + Label
		step := func(what string, err error, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, f.calls, cmp.Transformer("empty", func(l []string) []string { return append([]string{}, l...) })); err != nil || diff != "" {
				t.Errorf("%s: %v, -want +got\n%s", what, err, diff)
			}
			f.calls = nil
		}
		ctx := t.Context()
		change, err := m.Install(ctx, s)
		step("install", err, "enable "+target, "bootstrap "+domain+" "+m.path())
		if change != Installed || !f.running {
			t.Errorf("change %v, running %v", change, f.running)
		}
		_, err = m.Install(ctx, s)
		step("install again", err, "kickstart "+target)
		s.Program = "/usr/local/bin/tether"
		f.lingering = 3
		_, err = m.Install(ctx, s)
		step("update", err, "bootout "+target, "enable "+target, "bootstrap "+domain+" "+m.path())
		step("stop", m.Stop(ctx), "kill SIGTERM "+target)
		step("stop again", m.Stop(ctx))
		step("restart", m.Restart(ctx), "kickstart "+target)
		st, err := m.Status(ctx)
		if diff := cmp.Diff(Status{Installed: true, Service: s, Path: m.path(), Enabled: true, Running: true, State: "running"}, st); err != nil || diff != "" {
			t.Errorf("status: %v, -want +got\n%s", err, diff)
		}
		step("uninstall", m.Uninstall(ctx), "bootout "+target)
		step("uninstall again", m.Uninstall(ctx))
		if left := files(t, m.dir); len(left) > 0 {
			t.Errorf("left %q", left)
		}
		if err := m.Start(ctx); err == nil || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("start of nothing: %v", err)
		}
	}
}

func TestLaunchdHalfInstalled(t *testing.T) {
	m, f, s := newLaunchd(t, true)
	f.fail = "bootstrap"
	_, err := m.Install(t.Context(), s)
	if p, ok := errors.AsType[*Problem](err); !ok || !strings.Contains(p.Next, "Login Items") {
		t.Errorf("got %v", err)
	}
	if left := files(t, m.dir); len(left) > 0 || f.loaded {
		t.Errorf("left %q", left)
	}
	f.fail = ""
	must.Get(m.Install(t.Context(), s))(t)
	f.fail = "bootstrap gui"
	other := s
	other.Program = "/broken"
	if _, err := m.Install(t.Context(), other); err == nil {
		t.Error("no error")
	}
	if st, err := m.Status(t.Context()); err != nil || st.Service.Program != s.Program || st.Running {
		t.Errorf("status %+v, %v", st, err)
	}
	if argv := m.Printed(5, true); !slices.Contains(argv, filepath.Join(s.UserHome, "Library/Logs/tether.log")) {
		t.Errorf("printed by %q", argv)
	}
}

func TestLaunchdConflicts(t *testing.T) {
	m, _, s := newLaunchd(t, true)
	machine := *m
	machine.system, machine.dir = true, m.daemon
	other := s
	other.User, other.UserHome, other.System = "amy", "/Users/amy", true
	must.Get(machine.Install(t.Context(), other))(t)
	s.System = true
	if _, err := machine.Install(t.Context(), s); err == nil || !strings.Contains(err.Error(), "runs as amy") {
		t.Errorf("two users: %v", err)
	}
	s.System = false
	if _, err := m.Install(t.Context(), s); err != nil {
		t.Errorf("another user's: %v", err)
	}
	must.Do(t, machine.Uninstall(t.Context()))
	s.System = true
	if _, err := machine.Install(t.Context(), s); err == nil || !strings.Contains(err.Error(), "zoe's own") {
		t.Errorf("own and machine's: %v", err)
	}
}
