package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/agent/ports"
	"tether/agent/start"
	"tether/internal/change"
	"tether/internal/retry"
	"tether/platform/dirs"
	"tether/platform/sandbox"
	"tether/platform/secret"
	"tether/platform/shell"
)

// openConfiner makes the Confiner of agents' commands, and the socket that they reach
// from there.
func (a *Agent) openConfiner() {
	a.confiner = &start.Confiner{Policy: a.policy, Dirs: a.cfg.Dirs, Socket: SocketPath(a.cfg.Dirs), SocketDir: shareSocket(a.cfg.Dirs), Report: a.degraded.report}
}

// openStarter makes the Starter for all doors. The pool must exist.
func (a *Agent) openStarter() {
	specs := &start.Specs{
		Environment: a.Environment, Umask: a.loginUmask, Own: a.own, HideEnv: a.settings.Policy.HideEnv, LendTo: a.lendTo, Scripts: scriptsDir(a.cfg.Dirs), Report: a.degraded.report, Logger: &a.log,
	}
	given := ports.New(ports.Options{Checkouts: &a.checkouts, Keep: filepath.Join(a.cfg.Dirs.State, "ports.json"), Report: func(trouble string) { a.degraded.report("ports", trouble) }})
	a.starter = start.New(start.Options{
		Access: a.pool.As, Policy: a.policy, Spec: specs.Spec, Environment: a.Environment, Confine: a.confiner.Confine, Ports: given, Reader: a.reader(), AgentIdle: time.Duration(a.settings.MCP.IdleTimeout),
	})
}

// scriptsDir holds, per terminal, the files that its shell reads at its start.
func scriptsDir(d dirs.Dirs) string { return filepath.Join(d.Runtime, "sh") }

// loginCause is the cause in status of terminals that do not get the login environment.
const loginCause = "login environment"

// Environment returns the environment of an interactive login of the person, asking the
// login shell the first time and, if refresh, again. After a failure the daemon goes on
// asking in the background.
func (a *Agent) Environment(ctx context.Context, refresh bool) ([]string, error) {
	ask := a.login().Get
	if refresh {
		ask = a.refreshLogin
	}
	env, err := ask(ctx)
	if err != nil && ctx.Err() == nil {
		a.degraded.report(loginCause, fmt.Sprintf("terminals that the daemon starts itself get its own environment: %v; tether doctor shows more", err))
		change.Wake(a.again)
	}
	return env, err
}

// loginUmask returns the umask of an interactive login of the person, 0 if it is not
// known.
func (a *Agent) loginUmask(ctx context.Context) int {
	_, _ = a.Environment(ctx, false) // has reported why it is not known
	return a.login().Umask()
}

// refreshLogin asks the login shell, for longer than a start waits.
func (a *Agent) refreshLogin(ctx context.Context) ([]string, error) {
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, max(patience, time.Duration(a.settings.Terminals.LoginTimeout)))
	defer cancel()
	env, err := a.login().Refresh(ctx)
	if err == nil {
		a.degraded.report(loginCause, "")
	}
	return env, err
}

// askLoginAgain asks the login shell in the background after a failure, until it answers,
// at most every minute. The returned function waits until it does so no more.
func (a *Agent) askLoginAgain(ctx context.Context) (wait func()) {
	const pause = time.Minute
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.again:
			}
			for {
				_, err := a.refreshLogin(ctx)
				if err == nil || errors.Is(err, shell.ErrUnsupported) {
					break
				}
				a.log.Warn().Err(err).Msg("login environment still unknown")
				if !retry.Wait(ctx, pause) {
					return
				}
			}
		}
	})
	return func() { cancel(); asking.Wait() }
}

// loginCache finds the login shell, which may take a moment.
func loginCache(limit time.Duration) *shell.Cache {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0] // the shell then finds it, or says that it does not
	}
	return &shell.Cache{Path: shell.Login(), Self: self, Limit: limit}
}

// doorName is the name of a directory within the runtime directory; a wall shows it
// instead of the runtime directory.
const doorName = "sandbox"

// shareSocket links the daemon's socket into a separate directory, replacing the last
// daemon's: a program behind a wall that shows the directory reaches the new daemon. It
// returns "" where sockets have no names, or where a file cannot have a second name;
// there such a program does not reach the new daemon.
func shareSocket(d dirs.Dirs) (door string) {
	socket := SocketPath(d)
	if _, err := os.Lstat(socket); err != nil {
		return ""
	}
	door = filepath.Join(d.Runtime, doorName)
	at := filepath.Join(door, filepath.Base(socket))
	next := at + ".next"
	if secret.Dir(door) != nil {
		return ""
	}
	_ = os.Remove(next) // of a daemon that was killed
	if os.Link(socket, next) != nil || os.Rename(next, at) != nil {
		return ""
	}
	return door
}

// sandboxStatus is the sandboxes' part of status: nil if no principal has one.
func (a *Agent) sandboxStatus() *localapi.SandboxStatus {
	if !a.policy.Sandboxed() {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return &localapi.SandboxStatus{Error: err.Error()}
	}
	best, err := sandbox.Best(self)
	if err != nil {
		return &localapi.SandboxStatus{Error: err.Error()}
	}
	return &localapi.SandboxStatus{Kind: string(best), Wall: best == sandbox.Wall, Abstract: !sandbox.ClosesAbstractSockets()}
}
