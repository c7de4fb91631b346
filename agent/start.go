package agent

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"tether/agent/localapi"
	"tether/agent/start"
	"tether/platform/dirs"
	"tether/platform/sandbox"
	"tether/platform/secret"
	"tether/platform/shell"
)

// openConfiner makes the Confiner of agents' commands, and the socket that they reach from there.
func (a *Agent) openConfiner() {
	a.confiner = &start.Confiner{Policy: a.policy, Dirs: a.cfg.Dirs, Socket: SocketPath(a.cfg.Dirs), SocketDir: shareSocket(a.cfg.Dirs), Report: a.degraded.report}
}

// openStarter makes the Starter for all doors. The pool must exist.
func (a *Agent) openStarter() {
	specs := &start.Specs{
		Environment: a.Environment, HideEnv: a.settings.Policy.HideEnv, LendTo: a.lendTo, Scripts: scriptsDir(a.cfg.Dirs), Report: a.degraded.report, Logger: &a.log,
	}
	a.starter = start.New(start.Options{
		Access: a.pool.As, Policy: a.policy, Spec: specs.Spec, Environment: a.Environment, Confine: a.confiner.Confine, AgentIdle: time.Duration(a.settings.MCP.IdleTimeout),
	})
}

// scriptsDir holds, per terminal, the files that its shell reads at its start.
func scriptsDir(d dirs.Dirs) string { return filepath.Join(d.Runtime, "sh") }

// Environment returns the environment of an interactive login of the person, asking the login shell the first time and, if refresh, again.
func (a *Agent) Environment(ctx context.Context, refresh bool) ([]string, error) {
	if refresh {
		return a.login().Refresh(ctx)
	}
	return a.login().Get(ctx)
}

// loginCache finds the login shell, which may take a moment.
func loginCache() *shell.Cache {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0] // the shell then finds it, or says that it does not
	}
	return &shell.Cache{Path: shell.Login(), Self: self}
}

// doorName is the name of a directory within the runtime directory; a wall shows it instead of the runtime directory.
const doorName = "sandbox"

// shareSocket links the daemon's socket into a separate directory, replacing the last daemon's: a program behind a wall that shows the
// directory reaches the new daemon. It returns "" where sockets have no names, or where a file cannot have a second name; there such a
// program does not reach the new daemon.
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
