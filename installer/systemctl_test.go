//go:build unix

package installer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// fakeSystemd answers systemctl and loginctl as systemd 252 does, as far as a Manager
// uses the answers.
type fakeSystemd struct {
	t      *testing.T
	dir    string // directory of units
	linger string
	fail   map[string]string // error messages by the beginning of the command that fails with them

	enabled, active bool
	calls           []string
	checks          []string // the commands that checked the configuration
	check           error    // the result of such a command
}

func (f *fakeSystemd) run(_ context.Context, name string, args ...string) (string, error) {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--user" })
	call := name + " " + strings.Join(args, " ")
	for word, complaint := range f.fail {
		if strings.HasPrefix(call, word) {
			return "", errors.New(complaint)
		}
	}
	unit := filepath.Join(f.dir, UnitName)
	switch {
	case strings.HasSuffix(call, "tether config check"):
		f.checks = append(f.checks, call)
		return "", f.check
	case call == "systemctl show --property=UnitPath --value":
		return "/run/user/1000/systemd/user.control " + f.dir + " /usr/lib/systemd/user\n", nil
	case strings.HasPrefix(call, "systemctl show"):
		return f.show(unit), nil
	case name == "journalctl":
		return "tether: it has said so\n", nil
	}
	f.calls = append(f.calls, strings.TrimSuffix(strings.TrimPrefix(call, "systemctl "), " "+UnitName))
	switch args[0] {
	case "enable":
		f.enabled = true
	case "disable":
		f.enabled, f.active = false, f.active && args[1] != "--now"
	case "start", "restart":
		f.active = true
	case "stop":
		f.active = false
	case "enable-linger":
		return "", os.WriteFile(filepath.Join(f.linger, args[1]), nil, 0o600)
	case "disable-linger":
		return "", os.Remove(filepath.Join(f.linger, args[1]))
	}
	return "", nil
}

func (f *fakeSystemd) show(unit string) string {
	if !exists(unit) {
		return "LoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\nFragmentPath=\nMainPID=0\nResult=success\n"
	}
	state, file := "inactive\nSubState=dead", "disabled"
	if f.active {
		state = "active\nSubState=running"
	}
	if f.enabled {
		file = "enabled"
	}
	return fmt.Sprintf("LoadState=loaded\nActiveState=%s\nUnitFileState=%s\nFragmentPath=%s\nMainPID=0\nResult=success\n", state, file, unit)
}

// newSystemd returns a Manager whose system is a temporary directory and the fake.
func newSystemd(t *testing.T, system bool) (*systemd, *fakeSystemd) {
	t.Helper()
	root := t.TempDir()
	p := places{running: root, system: filepath.Join(root, "etc"), linger: filepath.Join(root, "linger"), procs: filepath.Join(root, "proc")}
	f := &fakeSystemd{t: t, dir: filepath.Join(root, "home/.config/systemd/user"), linger: p.linger, fail: map[string]string{}}
	if system {
		f.dir = p.system
	}
	for _, dir := range []string{p.system, p.linger, filepath.Join(root, "home/.config")} {
		must.Do(t, os.MkdirAll(dir, 0o755))
	}
	return &systemd{run: f.run, system: system, places: p}, f
}

func serviceIn(m *systemd) Service {
	return Service{Program: "/usr/bin/tether", System: m.system, User: "dev", UID: 1000, UserHome: filepath.Join(m.places.running, "home")}
}

// files lists the files below a directory.
func files(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	must.Do(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, root+"/"))
		}
		return err
	}))
	return all
}

func TestSystemdInstallAndUninstall(t *testing.T) {
	for _, system := range []bool{false, true} {
		t.Run(fmt.Sprintf("system %v", system), func(t *testing.T) {
			m, f := newSystemd(t, system)
			s := serviceIn(m)
			ctx := t.Context()
			if change, err := m.Install(ctx, s); err != nil || change != Installed {
				t.Fatalf("got %v, %v", change, err)
			}
			st, err := m.Status(ctx)
			s.Lingers = system
			want := Status{Installed: true, Service: s, Path: filepath.Join(f.dir, UnitName), Enabled: true, Running: true, State: "active (running)", Advice: st.Advice}
			if diff := cmp.Diff(want, st); err != nil || diff != "" {
				t.Errorf("status: %v, -want +got\n%s", err, diff)
			}
			if lingerAdvice := len(st.Advice) == 1 && strings.Contains(st.Advice[0], "enable-linger dev"); lingerAdvice == system {
				t.Errorf("advice %q", st.Advice)
			}
			f.calls = nil
			if change, err := m.Install(ctx, s); err != nil || change != Unchanged || slices.Contains(f.calls, "restart") {
				t.Errorf("the second time: %v, %v, calls %q", change, err, f.calls)
			}
			s.Program = "/opt/tether"
			if change, err := m.Install(ctx, s); err != nil || change != Updated || !slices.Contains(f.calls, "restart") {
				t.Errorf("another version: %v, %v, calls %q", change, err, f.calls)
			}
			for range 2 {
				must.Do(t, m.Uninstall(ctx))
			}
			if left := files(t, m.places.running); len(left) > 0 || f.enabled || f.active {
				t.Errorf("left: %q, enabled %v, active %v", left, f.enabled, f.active)
			}
			if config := filepath.Join(s.UserHome, ".config"); !exists(config) || exists(filepath.Join(config, "systemd")) {
				t.Error("wrong directories were removed")
			}
		})
	}
}

// Whichever step of an installation fails, everything is as before it.
func TestSystemdHalfInstalled(t *testing.T) {
	for _, verb := range []string{"daemon-reload", "enable", "start"} {
		m, f := newSystemd(t, true)
		f.fail["systemctl "+verb] = "Failed: the moon is full"
		_, err := m.Install(t.Context(), serviceIn(m))
		if err == nil || !strings.Contains(err.Error(), "moon") {
			t.Errorf("%s: got %v", verb, err)
		}
		if left := files(t, m.places.running); len(left) > 0 || f.enabled || f.active {
			t.Errorf("%s: left: %q, enabled %v, active %v", verb, left, f.enabled, f.active)
		}
	}
}

func TestSystemdHalfUpdated(t *testing.T) {
	m, f := newSystemd(t, false)
	s := serviceIn(m)
	must.Get(m.Install(t.Context(), s))(t)
	f.fail["systemctl restart"] = "Job for tether.service failed"
	other := s
	other.Program = "/opt/broken"
	_, err := m.Install(t.Context(), other)
	if err == nil || !strings.Contains(err.Error(), "it has said so") {
		t.Errorf("got %v, want the service's last words", err)
	}
	if st, err := m.Status(t.Context()); err != nil || st.Service.Program != s.Program {
		t.Errorf("status %+v, %v", st, err)
	}
}

func TestSystemdProblems(t *testing.T) {
	own := "[Service]\nExecStart=/bin/true\n"
	for name, tt := range map[string]struct {
		system  bool
		prepare func(m *systemd, f *fakeSystemd)
		want    string // in the error
		next    string
	}{
		"no systemd": {false, func(m *systemd, _ *fakeSystemd) { m.places.running += "/none" }, "does not run here", "--background"},
		"no systemctl": {false, func(_ *systemd, f *fakeSystemd) {
			f.fail["systemctl"] = `exec: "systemctl": executable file not found in $PATH`
		}, "does not run here", "--background"},
		"no user manager": {false, func(_ *systemd, f *fakeSystemd) { f.fail["systemctl"] = "Failed to connect to bus: No medium found" }, "does not answer", "linger"},
		"no rights":       {true, func(_ *systemd, f *fakeSystemd) { f.fail["loginctl"] = "Could not enable linger: Access denied" }, "administrator", "sudo"},
		"foreign unit":    {true, func(m *systemd, _ *fakeSystemd) { put(m.places.system, own) }, "not made by", "move it away"},
		"two users": {true, func(m *systemd, _ *fakeSystemd) {
			put(m.places.system, SystemdUnit(Service{Program: "/t", System: true, User: "amy", UID: 1001, UserHome: "/home/amy"}))
		}, "runs as amy", "without --system"},
		"own and machine's": {true, func(m *systemd, _ *fakeSystemd) {
			put(filepath.Join(m.places.running, "home/.config/systemd/user"), own)
		}, "dev's own", "uninstall"},
		"machine's and own": {false, func(m *systemd, _ *fakeSystemd) {
			put(m.places.system, SystemdUnit(Service{Program: "/t", System: true, User: "dev", UID: 1000, UserHome: "/home/dev"}))
		}, "as a service of the machine", "uninstall --system"},
	} {
		t.Run(name, func(t *testing.T) {
			m, f := newSystemd(t, tt.system)
			s := serviceIn(m)
			tt.prepare(m, f)
			_, err := m.Install(t.Context(), s)
			p, ok := errors.AsType[*Problem](err)
			if !ok || !strings.Contains(err.Error(), tt.want) || !strings.Contains(p.Next, tt.next) {
				t.Errorf("got %v %+v, want %q and %q", err, p, tt.want, tt.next)
			}
			if f.enabled || f.active || len(f.calls) > 0 {
				t.Errorf("it was begun: %q", f.calls)
			}
		})
	}
}

// After an installation that Ctrl-C has ended, everything is as before it.
func TestSystemdInterrupted(t *testing.T) {
	m, f := newSystemd(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	m.run = func(ctx context.Context, name string, args ...string) (string, error) {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if slices.Contains(args, "start") {
			cancel()
			return "", errors.New("interrupted")
		}
		return f.run(ctx, name, args...)
	}
	s := serviceIn(m)
	if _, err := m.Install(ctx, s); err == nil || strings.Contains(err.Error(), "to undo it failed") {
		t.Error(err)
	}
	if left := files(t, m.places.running); len(left) > 0 || f.enabled {
		t.Errorf("left: %q, enabled %v", left, f.enabled)
	}
}

func put(dir, text string) {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, UnitName), []byte(text), 0o600)
	}
	if err != nil {
		panic(err)
	}
}

func TestSystemdVerbs(t *testing.T) {
	m, f := newSystemd(t, false)
	for name, do := range map[string]func(context.Context) error{"start": m.Start, "stop": m.Stop, "restart": m.Restart} {
		if err := do(t.Context()); err == nil || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
	put(f.dir, "[Service]\nExecStart=/bin/true\n") // as a package may install it
	for _, do := range []func(context.Context) error{m.Start, m.Restart, m.Stop} {
		check.OK(t, do(t.Context()))
	}
	check.Equal(t, "", []string{"reset-failed", "start", "reset-failed", "restart", "stop"}, f.calls)
	st, err := m.Status(t.Context())
	if err != nil || !st.Installed || st.Enabled || st.Running || len(st.Advice) != 1 {
		t.Errorf("status %+v, %v", st, err)
	}
	if err := m.Uninstall(t.Context()); err == nil || !exists(filepath.Join(f.dir, UnitName)) {
		t.Errorf("somebody else's was removed: %v", err)
	}
}

// A program that was replaced on disk differs from the running one.
func TestSystemdOutdated(t *testing.T) {
	m, _ := newSystemd(t, false)
	dir := filepath.Join(m.places.procs, "77")
	program := filepath.Join(t.TempDir(), "tether")
	must.Do(t, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(program, nil, 0o700), os.Link(program, filepath.Join(dir, "exe"))))
	m.run = func(context.Context, string, ...string) (string, error) { return "MainPID=77\n", nil }
	if m.outdated(t.Context(), program) {
		t.Error("the same program is outdated")
	}
	must.Do(t, errors.Join(os.Remove(program), os.WriteFile(program, nil, 0o700)))
	if !m.outdated(t.Context(), program) {
		t.Error("another program is not outdated")
	}
}
