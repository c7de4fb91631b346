//go:build unix

package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// systemd is the Manager of Linux: units of users' systemd managers and of the system's
// manager.
type systemd struct {
	run    Runner
	system bool
	places places
}

// places are systemd's paths. Tests use other paths.
type places struct {
	running string // exists while systemd runs
	system  string // directory of the machine's units
	linger  string // directory with a file for each user who lingers
	procs   string // the /proc file system
}

// systemctl runs systemctl for the user's manager or, if m.system is set, the machine's
// manager.
func (m *systemd) systemctl(ctx context.Context, args ...string) (string, error) {
	if !m.system {
		args = append([]string{"--user"}, args...)
	}
	out, err := m.run(ctx, "systemctl", args...)
	return out, m.explain(err)
}

// explain adds the remedy to an error of systemctl.
func (m *systemd) explain(err error) error {
	if err == nil {
		return nil
	}
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) })
	}
	switch {
	case m.system && says("ccess denied", "uthentication required", "ermission denied"):
		return noRights(err)
	case says("connect to bus", "connect to user scope bus", "XDG_RUNTIME_DIR"):
		return &Problem{Text: "your user's systemd does not answer", Err: err,
			Next: "log in directly instead of with su or sudo, or enable lingering: sudo loginctl enable-linger YOUR-NAME"}
	case says("executable file not found"):
		return noSystemd()
	}
	return err
}

func noRights(err error) error {
	return &Problem{Text: "a service of the machine needs an administrator", Err: err, Next: "use sudo; or leave out --system for a service of your own"}
}

func noSystemd() error {
	return &Problem{Text: "nothing starts a service", Err: ErrNoManager,
		Next: "tether daemon --background starts the daemon now, tether stop ends it; put the first where this system starts programs, such as ~/.profile"}
}

// check finds obstacles to any operation.
func (m *systemd) check() error {
	if _, err := os.Stat(m.places.running); err != nil {
		return noSystemd()
	}
	return nil
}

// path returns the path of the unit file. For a unit of a user it asks the user's
// manager, whose environment may differ from this process's.
func (m *systemd) path(ctx context.Context) (string, error) {
	if err := m.check(); err != nil {
		return "", err
	}
	if m.system {
		return filepath.Join(m.places.system, UnitName), nil
	}
	out, err := m.systemctl(ctx, "show", "--property=UnitPath", "--value")
	if err != nil {
		return "", err
	}
	// The first match is the user's own directory. systemd's .control and generated
	// directories have other names.
	for dir := range strings.FieldsSeq(out) {
		if strings.HasSuffix(dir, "/systemd/user") {
			return filepath.Join(dir, UnitName), nil
		}
	}
	return "", fmt.Errorf("your user's systemd has no directory for units: %q", strings.TrimSpace(out))
}

// Install implements Manager.
func (m *systemd) Install(ctx context.Context, s Service) (Change, error) {
	path, err := m.path(ctx)
	if err != nil {
		return Unchanged, err
	}
	old, was, found, err := installed(path)
	if err == nil {
		err = m.conflict(s, was, found)
	}
	if err != nil {
		return Unchanged, err
	}
	undoLinger := func() error { return nil }
	s.Lingers = found && was.Lingers
	if s.System && !m.lingers(s.User) {
		if _, err := m.run(ctx, "loginctl", "enable-linger", s.User); err != nil {
			return Unchanged, m.explain(err)
		}
		s.Lingers = true
		undoLinger = func() error { return m.unlinger(context.WithoutCancel(ctx), s) }
	}
	unit := SystemdUnit(s)
	if !found {
		err = m.installNew(ctx, s, path, unit)
		if err != nil {
			return Unchanged, undo(err, undoLinger)
		}
		return Installed, nil
	}
	change, err := m.installOver(ctx, s, path, unit, old)
	if err != nil {
		err = undo(err, undoLinger)
	}
	return change, err
}

func (m *systemd) installNew(ctx context.Context, s Service, path, unit string) error {
	c := &unitControl{m: m, path: path, text: unit}
	leave := context.WithoutCancel(ctx) // Ctrl-C must not stop the undoing of changes
	if err := c.Install(); err != nil {
		return undo(m.explain(err), func() error { return m.clean(leave, path) })
	}
	if _, err := m.systemctl(ctx, "daemon-reload"); err != nil {
		return undo(err, func() error { return m.clean(leave, path) })
	}
	if err := m.start(ctx, c.Start); err != nil {
		return undo(err, func() error { return m.clean(leave, path) })
	}
	return nil
}

// installOver replaces a unit that tether installed before, or finds that there is
// nothing to do.
func (m *systemd) installOver(ctx context.Context, s Service, path, unit, old string) (Change, error) {
	leave := context.WithoutCancel(ctx)
	change := Unchanged
	restore := func() error { return nil }
	restarts := unit != old || m.outdated(ctx, s.Program)
	if restarts {
		if err := m.valid(ctx, s); err != nil {
			return Unchanged, err
		}
	}
	if unit != old {
		change = Updated
		restore = func() error {
			err := write(path, old)
			_, reload := m.systemctl(leave, "daemon-reload")
			_, restart := m.systemctl(leave, "restart", UnitName)
			return errors.Join(err, reload, restart)
		}
		if err := write(path, unit); err != nil {
			return Unchanged, err
		}
	}
	if _, err := m.systemctl(ctx, "daemon-reload"); err != nil {
		return Unchanged, undo(err, restore)
	}
	if _, err := m.systemctl(ctx, "enable", UnitName); err != nil {
		return Unchanged, undo(err, restore)
	}
	verb := "start"
	if restarts {
		verb, change = "restart", Updated
	}
	err := m.start(ctx, func() error { _, err := m.systemctl(ctx, verb, UnitName); return err })
	if err != nil {
		return Unchanged, undo(err, restore)
	}
	return change, nil
}

// start runs start. If that fails, the error has the last lines that the service printed.
func (m *systemd) start(ctx context.Context, start func() error) error {
	// After several crashes systemd refuses to start a service until reset-failed.
	_, _ = m.systemctl(ctx, "reset-failed", UnitName) // fails if there were no crashes
	began := time.Now()
	err := m.explain(start())
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Problem](err); ok {
		return err
	}
	if said := m.lastLogLines(context.WithoutCancel(ctx), began); said != "" {
		err = fmt.Errorf("%w\nits last output:\n%s", err, said)
	}
	return &Problem{Text: "the service does not start", Err: err, Next: "repair that and try again; tether daemon runs the daemon in the foreground"}
}

// conflict finds a service that would serve the same user.
func (m *systemd) conflict(s, was Service, found bool) error {
	if !m.system {
		_, other, ok, err := installed(filepath.Join(m.places.system, UnitName))
		if err == nil && ok && other.User == s.User {
			return &Problem{Text: "tether runs for " + s.User + " already, as a service of the machine", Next: "keep that service, or remove it first: sudo tether service uninstall --system"}
		}
		return nil
	}
	if found && was.User != s.User {
		return &Problem{Text: fmt.Sprintf("the service of the machine runs as %s, and there is only one", was.User),
			Next: fmt.Sprintf("%s can install a service without --system; or remove the other first: tether service uninstall --system", s.User)}
	}
	if path := filepath.Join(s.UserHome, ".config/systemd/user", UnitName); exists(path) {
		return &Problem{Text: fmt.Sprintf("tether is a service of %s's own already: %s", s.User, path),
			Next: "keep that service, or let " + s.User + " remove it first: tether service uninstall"}
	}
	return nil
}

// outdated reports whether the running program differs from the one on disk, as after an
// upgrade in place.
func (m *systemd) outdated(ctx context.Context, program string) bool {
	shown, err := m.show(ctx)
	if err != nil || shown["MainPID"] == "0" {
		return false
	}
	runs, err1 := os.Stat(filepath.Join(m.places.procs, shown["MainPID"], "exe"))
	disk, err2 := os.Stat(program)
	return err1 == nil && err2 == nil && !os.SameFile(runs, disk)
}

// clean removes all parts of the service that exist.
func (m *systemd) clean(ctx context.Context, path string) error {
	// disable fails for a missing unit; only the result of removing the files counts.
	_, _ = m.systemctl(ctx, "disable", "--now", UnitName)
	err := remove(path, m.keepDir(path))
	_, reload := m.systemctl(ctx, "daemon-reload")
	_, _ = m.systemctl(ctx, "reset-failed", UnitName) // fails if the unit had not failed
	return errors.Join(err, reload)
}

// keepDir returns the directory at which remove stops: it is kept even if it is empty.
func (m *systemd) keepDir(path string) string {
	dir := filepath.Dir(path)
	if m.system {
		return dir
	}
	_ = os.Remove(filepath.Join(dir, "default.target.wants")) // succeeds only if it is empty
	return filepath.Dir(filepath.Dir(dir))
}

// Uninstall implements Manager.
func (m *systemd) Uninstall(ctx context.Context) error {
	path, err := m.path(ctx)
	if err != nil {
		return err
	}
	_, s, found, err := installed(path)
	if err != nil || !found {
		return err
	}
	c := &unitControl{m: m, path: path}
	if err := c.Stop(); err != nil {
		return m.explain(err)
	}
	if err := c.Uninstall(); err != nil {
		return m.explain(err)
	}
	return errors.Join(m.clean(ctx, path), m.unlinger(ctx, s))
}

// lingers reports whether the user's manager runs without a login.
func (m *systemd) lingers(name string) bool { return exists(filepath.Join(m.places.linger, name)) }

func (m *systemd) unlinger(ctx context.Context, s Service) error {
	if !s.Lingers || !m.lingers(s.User) {
		return nil
	}
	_, err := m.run(ctx, "loginctl", "disable-linger", s.User)
	return err
}

// Start implements Manager.
func (m *systemd) Start(ctx context.Context) error {
	return m.act(ctx, func(_ Service, c *unitControl) error { return m.start(ctx, c.Start) })
}

// Stop implements Manager.
func (m *systemd) Stop(ctx context.Context) error {
	return m.act(ctx, func(_ Service, c *unitControl) error { return m.explain(c.Stop()) })
}

// Restart implements Manager.
func (m *systemd) Restart(ctx context.Context) error {
	return m.act(ctx, func(s Service, c *unitControl) error {
		if err := m.valid(ctx, s); err != nil {
			return err
		}
		return m.start(ctx, c.Restart)
	})
}

func (m *systemd) valid(ctx context.Context, s Service) error {
	return s.valid(ctx, m.run, "runuser", "-u", s.User, "--")
}

// act calls do with the installed service and its control. The service is zero if another
// program installed it.
func (m *systemd) act(ctx context.Context, do func(Service, *unitControl) error) error {
	path, err := m.path(ctx)
	if err != nil {
		return err
	}
	shown, err := m.show(ctx)
	if err != nil {
		return err
	}
	if shown["LoadState"] == "not-found" {
		return errNotInstalled(m.system)
	}
	_, s, _, _ := installed(path) // ignores the error, because a unit from a package is accepted, too
	return do(s, &unitControl{m: m, path: path})
}

// unitControl writes and removes a unit, and acts on it.
type unitControl struct {
	m          *systemd
	path, text string
}

func (c *unitControl) Install() error {
	if err := write(c.path, c.text); err != nil {
		return err
	}
	if _, err := c.m.systemctl(context.Background(), "daemon-reload"); err != nil {
		return err
	}
	return c.do("enable")
}

func (c *unitControl) Uninstall() error {
	return errors.Join(c.do("disable"), remove(c.path, c.m.keepDir(c.path)))
}

func (c *unitControl) Start() error   { return c.do("start") }
func (c *unitControl) Stop() error    { return c.do("stop") }
func (c *unitControl) Restart() error { return c.do("restart") }

func (c *unitControl) do(verb string) error {
	_, err := c.m.systemctl(context.Background(), verb, UnitName)
	return err
}
