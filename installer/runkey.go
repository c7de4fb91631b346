package installer

import (
	"context"
	"strings"
)

// logon is the Manager of a Windows user: a registry value whose command Windows runs at
// logon. Windows does not supervise the program, so tether's own commands start and stop
// the daemon.
type logon struct {
	run   Runner
	key   values
	where string // the key's name, for people
}

// values is the registry key. Value returns "" for a missing value.
type values interface {
	Value(name string) (string, error)
	Set(name, value string) error
	Delete(name string) error // a missing value is no error
}

// Install implements Manager.
func (m *logon) Install(ctx context.Context, s Service) (Change, error) {
	old, err := m.key.Value(RunValue)
	if err != nil {
		return Unchanged, err
	}
	line := LogonCommand(s)
	if old != "" && !isLogonCommand(old) {
		return Unchanged, &Problem{Text: m.where + ` has a value "` + RunValue + `" that is not ours: ` + old, Next: "rename it, or remove it"}
	}
	change := Unchanged
	if line != old {
		change = Installed
		if old != "" {
			change = Updated
		}
		if err := m.key.Set(RunValue, line); err != nil {
			return Unchanged, &Problem{Text: "write " + m.where, Err: err, Next: "see whether a policy of this machine forbids programs at logon"}
		}
	}
	args := []string{"daemon", "--background"}
	if change == Updated {
		args = append(args, "--replace")
	}
	if _, err := m.run(ctx, s.Program, args...); err != nil {
		return Unchanged, undo(err, func() error { return m.restore(old) })
	}
	return change, nil
}

func (m *logon) restore(old string) error {
	if old == "" {
		return m.key.Delete(RunValue)
	}
	return m.key.Set(RunValue, old)
}

// isLogonCommand reports whether LogonCommand made the line.
func isLogonCommand(line string) bool {
	return strings.HasSuffix(line, " service logon") || strings.Contains(line, " service logon --home ")
}

// program returns the first word of a line whose words windowsWord quoted. The path of a
// program contains no quotes.
func program(line string) string {
	if rest, ok := strings.CutPrefix(line, `"`); ok {
		first, _, _ := strings.Cut(rest, `"`)
		return first
	}
	first, _, _ := strings.Cut(line, " ")
	return first
}

// Uninstall implements Manager.
func (m *logon) Uninstall(ctx context.Context) error {
	line, err := m.installed()
	if err != nil || line == "" {
		return err
	}
	if err := m.Stop(ctx); err != nil {
		return err
	}
	return m.key.Delete(RunValue)
}

func (m *logon) installed() (string, error) {
	line, err := m.key.Value(RunValue)
	if err != nil || !isLogonCommand(line) {
		return "", err
	}
	return line, nil
}

// Start implements Manager.
func (m *logon) Start(ctx context.Context) error { return m.act(ctx, "daemon", "--background") }

// Stop implements Manager.
func (m *logon) Stop(ctx context.Context) error {
	if line, err := m.installed(); err == nil && line != "" && !m.answers(ctx) {
		return nil
	}
	return m.act(ctx, "stop", "--keep")
}

// Restart implements Manager.
func (m *logon) Restart(ctx context.Context) error {
	return m.act(ctx, "daemon", "--background", "--replace")
}

func (m *logon) act(ctx context.Context, args ...string) error {
	line, err := m.installed()
	if err != nil {
		return err
	}
	if line == "" {
		return errNotInstalled(false)
	}
	_, err = m.run(ctx, program(line), args...)
	return err
}

func (m *logon) answers(ctx context.Context) bool {
	line, err := m.installed()
	if err != nil || line == "" {
		return false
	}
	_, err = m.run(ctx, program(line), "status")
	return err == nil
}

// Status implements Manager.
func (m *logon) Status(ctx context.Context) (Status, error) {
	line, err := m.installed()
	if err != nil || line == "" {
		return Status{State: "not installed"}, err
	}
	st := Status{Installed: true, Path: m.where, Enabled: true, Running: m.answers(ctx), State: "stopped", Service: Service{Program: program(line)}}
	if st.Running {
		st.State = "running"
	}
	return st, nil
}

// Printed implements Manager.
func (m *logon) Printed(int, bool) []string { return nil }
