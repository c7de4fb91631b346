package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/platform/dirs"
	"tether/platform/proc"
	"tether/platform/secret"
	"tether/platform/tty"
)

// The terminals of a daemon that runs as root run as root, so the user must allow it: by
// answering the question of the first command, with --allow-root, or by working in a
// container, where root is the usual user. The permission is saved in the state
// directory. From then on the daemon also shares terminals by default, unless
// lend.as_root is configured.

// allowRootVar is an environment variable that allows root where it is set, as in CI.
// Nothing is saved then, and lend.as_root decides whether terminals are shared by
// default.
const allowRootVar = "TETHER_ALLOW_ROOT"

// container returns the kind of container that this process runs in, "" for none. Tests
// replace it.
var container = proc.Container

func allowRootFile(d dirs.Dirs) string { return filepath.Join(d.State, "allow-root") }

// rootRemembered reports whether the user has allowed a daemon that runs as root with
// these directories.
func rootRemembered(d dirs.Dirs) bool {
	_, err := secret.ReadFile(allowRootFile(d))
	return err == nil
}

// rememberRoot saves that root was allowed, and how. If that fails, the permission is
// only for this time.
func (a *app) rememberRoot(d dirs.Dirs, how string) {
	err := secret.Dir(d.State)
	if err == nil {
		err = secret.WriteFile(allowRootFile(d), []byte(how+" "+time.Now().Format(time.RFC3339)+"\n"))
	}
	if err != nil {
		a.notice("allowed this time only; the answer cannot be saved: %v", err)
	}
}

// mayBeRoot returns nil if a daemon may run as the current user. If that is root and
// nothing allows it, it asks, in an interactive terminal. flag is --allow-root.
func (a *app) mayBeRoot(ctx context.Context, d dirs.Dirs, flag bool) error {
	switch {
	case !proc.Root():
		return nil
	case flag:
		if !rootRemembered(d) {
			a.rememberRoot(d, "--allow-root")
		}
		return nil
	case os.Getenv(allowRootVar) == "1" || rootRemembered(d):
		return nil
	}
	if name := container(); name != "" {
		a.rememberRoot(d, name)
		a.notice("container (%s): the daemon runs as root; paired hosts see its terminals", name)
		return nil
	}
	if !tty.Is(a.stdin) || !tty.Is(a.stderr) {
		return rootError()
	}
	yes, err := a.ask(ctx, "You are root: the daemon and its terminals would run as root, and paired hosts would see their output.\nAllow this from now on?", false)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !yes {
		return rootError()
	}
	a.rememberRoot(d, "answered")
	return nil
}

func rootError() error {
	return &hinted{&localapi.Error{Code: localapi.CodeDenied, Message: agent.ErrRoot.Error() + " unless you allow it"},
		"run it as yourself, or allow it once: tether daemon --background --allow-root"}
}

// lendRoot sets lend.as_root if root was allowed and the key is not configured. It
// reports whether it did.
func lendRoot(d dirs.Dirs, c *config.Config, over []config.Setting) (bool, error) {
	if !proc.Root() || !rootRemembered(d) {
		return false, nil
	}
	from, err := config.Origins(config.Path(d), over...)
	if _, set := from["lend.as_root"]; err != nil || set {
		return false, err
	}
	c.Lend.AsRoot = true
	return true, nil
}
