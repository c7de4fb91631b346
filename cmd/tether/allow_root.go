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
	"tether/agent/local"
	"tether/platform/dirs"
	"tether/platform/proc"
	"tether/platform/secret"
	"tether/platform/tty"
)

// Every terminal of a daemon that runs as root is root's, so somebody has to allow that: by answering the question of the first command,
// by --allow-root, or by working in a container, where root is who there is. It is remembered in the state directory, and from then on the
// daemon also lends as anybody's does, unless lend.as_root is configured.

// allowRootVar allows it for one environment, as in CI: nothing is remembered, and lend.as_root decides what is lent.
const allowRootVar = "TETHER_ALLOW_ROOT"

// container says in which container this is, "" in none. Tests replace it.
var container = proc.Container

func allowRootFile(d dirs.Dirs) string { return filepath.Join(d.State, "allow-root") }

// rootRemembered reports whether somebody has allowed a daemon of root for these directories.
func rootRemembered(d dirs.Dirs) bool {
	_, err := secret.ReadFile(allowRootFile(d))
	return err == nil
}

// rememberRoot keeps that it was allowed, and how. Where nothing can be written it holds for this time only.
func (a *app) rememberRoot(d dirs.Dirs, how string) {
	err := secret.Dir(d.State)
	if err == nil {
		err = secret.WriteFile(allowRootFile(d), []byte(how+" "+time.Now().Format(time.RFC3339)+"\n"))
	}
	if err != nil {
		a.notice("allowed this time; it cannot be remembered: %v", err)
	}
}

// mayBeRoot returns nil if a daemon that is about to start may run as whoever runs this command. It asks where there is somebody to ask.
// flag is --allow-root.
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
		a.notice("container (%s): the daemon runs as root; hosts that you pair with see its terminals", name)
		return nil
	}
	if !tty.Is(a.stdin) || !tty.Is(a.stderr) {
		return rootError()
	}
	yes, err := a.ask(ctx, "You are root: the daemon and all its terminals would run as root, and hosts that you pair with see\nwhat these print. Allow that from now on?", false)
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
	return &hinted{&local.Error{Code: local.CodeDenied, Message: agent.ErrRoot.Error() + " unless you allow it"},
		"run it as yourself, or allow it once: tether daemon --background --allow-root"}
}

// lendRoot lets a daemon of root that was allowed lend as anybody's does, where lend.as_root is not configured. It reports whether it did.
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
