//go:build unix

package installer

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tether/internal/retry"
)

// launchd is the Manager of macOS: LaunchAgents of users, LaunchDaemons of the machine.
type launchd struct {
	run    Runner
	system bool
	uid    int
	dir    string // directory of the property list
	daemon string // directory of the machine's LaunchDaemons
	log    func(s Service) string
}

// bootPatience is how long launchd may take to unload a service or to end its daemon.
// bootout and kill return before that, and commands fail meanwhile. bootPause is the time
// between two looks.
const (
	bootPatience = 6 * time.Second // the daemon has 5 s to end
	bootPause    = 50 * time.Millisecond
)

func (m *launchd) path() string { return filepath.Join(m.dir, PlistName) }

// domain returns the launchd domain of the service: "system" for a service of the
// machine, otherwise the user's graphical session, or the user's own domain if there is
// no such session, as over ssh.
func (m *launchd) domain(ctx context.Context) string {
	if m.system {
		return "system"
	}
	gui := "gui/" + strconv.Itoa(m.uid)
	if _, err := m.run(ctx, "launchctl", "print", gui); err == nil {
		return gui
	}
	return "user/" + strconv.Itoa(m.uid)
}

// loaded returns launchd's description of the service and its service target (domain and
// label). ok is false if it is not loaded.
func (m *launchd) loaded(ctx context.Context) (said, target string, ok bool) {
	target = m.domain(ctx) + "/" + Label
	said, err := m.run(ctx, "launchctl", "print", target)
	return said, target, err == nil
}

// Install implements Manager.
func (m *launchd) Install(ctx context.Context, s Service) (Change, error) {
	old, was, found, err := installed(m.path())
	if err == nil {
		err = m.conflict(s, was, found)
	}
	if err != nil {
		return Unchanged, err
	}
	list := LaunchdPlist(s, m.log(s))
	if found && list == old {
		return Unchanged, m.Start(ctx)
	}
	leave := context.WithoutCancel(ctx)
	if !found {
		err := write(m.path(), list)
		if err == nil {
			err = m.Start(ctx)
		}
		if err != nil {
			return Unchanged, undo(err, func() error { return m.Uninstall(leave) })
		}
		return Installed, nil
	}
	if err := m.valid(ctx, s); err != nil {
		return Unchanged, err
	}
	if err := write(m.path(), list); err != nil {
		return Unchanged, err
	}
	if err = m.bootout(ctx); err == nil {
		err = m.Start(ctx)
	}
	if err != nil {
		return Unchanged, undo(err, func() error { return write(m.path(), old) }, func() error { return m.Start(leave) })
	}
	return Updated, nil
}

// conflict finds a service that would serve the same user.
func (m *launchd) conflict(s, was Service, found bool) error {
	if !m.system {
		_, other, ok, err := installed(filepath.Join(m.daemon, PlistName))
		if err == nil && ok && other.User == s.User {
			return &Problem{Text: "tether runs for " + s.User + " already, as a service of the machine", Next: "keep that service, or remove it first: sudo tether service uninstall --system"}
		}
		return nil
	}
	if found && was.User != s.User {
		return &Problem{Text: "the service of the machine runs as " + was.User + ", and there is only one",
			Next: s.User + " can install a service without --system; or remove the other first: tether service uninstall --system"}
	}
	if path := filepath.Join(s.UserHome, "Library/LaunchAgents", PlistName); exists(path) {
		return &Problem{Text: "tether is a service of " + s.User + "'s own already: " + path,
			Next: "keep that service, or let " + s.User + " remove it first: tether service uninstall"}
	}
	return nil
}

// bootout makes launchd unload the service and waits until it has done so.
func (m *launchd) bootout(ctx context.Context) error {
	_, target, ok := m.loaded(ctx)
	if !ok {
		return nil
	}
	_, err := m.run(ctx, "launchctl", "bootout", target)
	for end := time.Now().Add(bootPatience); time.Now().Before(end); {
		if _, _, ok := m.loaded(ctx); !ok {
			return nil
		}
		if !retry.Wait(ctx, bootPause) {
			return ctx.Err()
		}
	}
	return errors.Join(errors.New("launchd did not remove the service"), err)
}

// Uninstall implements Manager.
func (m *launchd) Uninstall(ctx context.Context) error {
	_, _, found, err := installed(m.path())
	if err != nil || !found {
		return err
	}
	if err := m.bootout(ctx); err != nil {
		return err
	}
	return remove(m.path(), m.dir) // m.dir belongs to the system
}

// Start implements Manager.
func (m *launchd) Start(ctx context.Context) error {
	if !exists(m.path()) {
		return errNotInstalled(m.system)
	}
	_, target, ok := m.loaded(ctx)
	if ok {
		_, err := m.run(ctx, "launchctl", "kickstart", target)
		return err
	}
	// A service that was disabled cannot be loaded, and the error would only be a number.
	// So it is enabled first.
	if _, err := m.run(ctx, "launchctl", "enable", target); err != nil {
		return err
	}
	_, err := m.run(ctx, "launchctl", "bootstrap", strings.TrimSuffix(target, "/"+Label), m.path())
	if err != nil {
		return &Problem{Text: "launchd refused the service", Err: err, Next: "see whether System Settings, Login Items, lets it run in the background"}
	}
	return nil
}

// Stop implements Manager. launchd restarts only failed services, and ending at SIGTERM
// is no failure.
func (m *launchd) Stop(ctx context.Context) error {
	if !exists(m.path()) {
		return errNotInstalled(m.system)
	}
	said, target, ok := m.loaded(ctx)
	if !ok || !isRunning(said) {
		return nil
	}
	if _, err := m.run(ctx, "launchctl", "kill", "SIGTERM", target); err != nil {
		return err
	}
	for end := time.Now().Add(bootPatience); time.Now().Before(end); {
		if said, _, ok := m.loaded(ctx); !ok || !isRunning(said) {
			return nil
		}
		if !retry.Wait(ctx, bootPause) {
			return ctx.Err()
		}
	}
	return errors.New("the daemon does not end")
}

// Restart implements Manager.
func (m *launchd) Restart(ctx context.Context) error {
	_, s, _, _ := installed(m.path()) // ignores the error, because a list of another program is accepted, too
	if err := m.valid(ctx, s); err != nil {
		return err
	}
	if err := m.Stop(ctx); err != nil {
		return err
	}
	return m.Start(ctx)
}

func (m *launchd) valid(ctx context.Context, s Service) error {
	return s.valid(ctx, m.run, "sudo", "-u", s.User)
}

// isRunning reads the state line of launchctl print. The service's own line is indented
// once; lines with more indent describe other things.
func isRunning(said string) bool { return launchState(said) == "running" }

func launchState(said string) string {
	for line := range strings.Lines(said) {
		if state, ok := strings.CutPrefix(line, "\tstate = "); ok {
			return strings.TrimSpace(state)
		}
	}
	return ""
}

// Status implements Manager.
func (m *launchd) Status(ctx context.Context) (Status, error) {
	_, s, found, err := installed(m.path())
	if _, ok := errors.AsType[*Problem](err); ok {
		found, err = true, nil // a property list of another program
	}
	if err != nil || !found {
		return Status{State: "not installed"}, err
	}
	said, _, ok := m.loaded(ctx)
	st := Status{Installed: true, Service: s, Path: m.path(), Enabled: true, Running: isRunning(said), State: launchState(said)}
	if !ok {
		st.State = "not loaded"
		st.Advice = append(st.Advice, "launchd does not know it: tether service start")
	}
	return st, nil
}

// Printed implements Manager.
func (m *launchd) Printed(lines int, follow bool) []string {
	_, s, _, _ := installed(m.path())
	argv := []string{"tail", "-n", strconv.Itoa(lines)}
	if follow {
		argv = append(argv, "-F")
	}
	return append(argv, m.log(s))
}
