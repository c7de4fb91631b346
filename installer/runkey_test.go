package installer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/check"
)

// memory is a registry key.
type memory map[string]string

func (m memory) Value(name string) (string, error) { return m[name], nil }
func (m memory) Set(name, value string) error      { m[name] = value; return nil }
func (m memory) Delete(name string) error          { delete(m, name); return nil }

func TestLogonLife(t *testing.T) {
	key, running, fails := memory{"Other": "x"}, false, false
	var calls []string
	m := &logon{key: key, where: "HKCU", run: func(_ context.Context, name string, args ...string) (string, error) {
		call := strings.Join(args, " ")
		if call == "status" && !running || fails {
			return "", errors.New("not running")
		}
		if call != "status" {
			running = args[0] == "daemon"
			calls = append(calls, name+": "+call)
		}
		return "", nil
	}}
	ctx := t.Context()
	s := Service{Program: `C:\Users\Zoë B\tether.exe`, Home: `D:\t h`, User: `PC\Zoë B`, UID: -1}
	fails = true
	if _, err := m.Install(ctx, s); err == nil || key[RunValue] != "" {
		t.Errorf("half installed: %v, %q", err, key)
	}
	fails = false
	for i, want := range []Change{Installed, Unchanged} {
		if change, err := m.Install(ctx, s); err != nil || change != want {
			t.Errorf("install %d: %v, %v", i, change, err)
		}
	}
	s.Program = `C:\new\tether.exe`
	if change, err := m.Install(ctx, s); err != nil || change != Updated {
		t.Errorf("update: %v, %v", change, err)
	}
	want := Status{Installed: true, Path: "HKCU", Enabled: true, Running: true, State: "running", Service: Service{Program: s.Program}}
	if st, err := m.Status(ctx); err != nil || !cmp.Equal(want, st) {
		t.Errorf("status %+v, %v", st, err)
	}
	check.OK(t, errors.Join(m.Restart(ctx), m.Stop(ctx), m.Stop(ctx), m.Start(ctx), m.Uninstall(ctx), m.Uninstall(ctx)))
	if diff := cmp.Diff(memory{"Other": "x"}, key); diff != "" || running {
		t.Errorf("left: -want +got\n%s, running %v", diff, running)
	}
	old, now := `C:\Users\Zoë B\tether.exe: `, `C:\new\tether.exe: `
	if diff := cmp.Diff([]string{old + "daemon --background", old + "daemon --background", now + "daemon --background --replace",
		now + "daemon --background --replace", now + "stop --keep", now + "daemon --background", now + "stop --keep"}, calls); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if err := m.Start(ctx); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("start of nothing: %v", err)
	}
	key[RunValue] = "notours.exe"
	if _, err := m.Install(ctx, s); err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("over somebody else's: %v", err)
	}
	if err := m.Uninstall(ctx); err != nil || key[RunValue] != "notours.exe" {
		t.Errorf("somebody else's: %v, %q", err, key)
	}
}
