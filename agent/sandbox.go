package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/local"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/dirs"
	"tether/platform/sandbox"
	"tether/platform/secret"
)

// confine puts what an agent runs into the sandbox that is configured for it,
// and gives it its limits. Where there can be no sandbox, nothing is run.
func (a *Agent) confine(actor term.Actor, spec *term.Spec) error {
	if err := a.sandboxed(actor, spec); err != nil {
		return err
	}
	return a.bound(actor, spec)
}

func (a *Agent) sandboxed(actor term.Actor, spec *term.Spec) error {
	rule := a.policy.Sandbox(actor)
	if rule.Kind == "" {
		return nil
	}
	argv := spec.Argv
	if argv == nil {
		argv = spec.Command
	}
	argv, err := a.behind(actor, rule, spec.Cwd, argv)
	if err != nil {
		return err
	}
	spec.Argv = argv
	return nil
}

// sandboxFor returns the argv that runs an agent's own program in its sandbox. Only the configuration can say what that is: else
// what the agent has tether start would be out of it.
func (a *Agent) sandboxFor(actor term.Actor, req local.SandboxRequest) ([]string, error) {
	rule := a.policy.Sandbox(actor)
	if rule.Kind == "" {
		return nil, lacks(actor, "sandbox: commands that tether starts for this agent would be unconfined")
	}
	return a.behind(actor, rule, req.Cwd, req.Command)
}

// lacks is the error of an agent that cannot be confined by its configuration.
func lacks(actor term.Actor, what string) error {
	return &local.Error{Code: local.CodeCannotStart, Message: fmt.Sprintf("the configuration of %s has no %s", actor, what),
		Hint: fmt.Sprintf("tether config edit: [[policy.principals]] with name = \"agent:%s\", sandbox = \"auto\", roots = [\"~/src\"]", actor.Name)}
}

// behind returns the argv that runs argv in the sandbox that the rule describes. The directory is granted to it, so it must be in one that
// the configuration grants: the agent chooses it.
func (a *Agent) behind(actor term.Actor, rule policy.Sandbox, dir string, argv []string) ([]string, error) {
	cannot := func(format string, args ...any) error {
		return &local.Error{Code: local.CodeCannotStart, Message: fmt.Sprintf("%s runs in a sandbox, and ", actor) + fmt.Sprintf(format, args...)}
	}
	if len(rule.Roots)+len(rule.Writable) == 0 {
		return nil, lacks(actor, "roots: the agent could start a command in any directory, and change it")
	}
	cwd, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, cannot("the directory does not exist: %v", err)
	}
	var writable []string
	for _, path := range rule.Writable {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			writable = append(writable, real)
		}
	}
	// The policy has looked at the roots before; the directory may have become a link since.
	granted := rule.Roots
	if len(granted) == 0 {
		granted = writable
	}
	if !slices.ContainsFunc(granted, func(root string) bool { return within(cwd, root) }) {
		return nil, cannot("%s is not in its roots", cwd)
	}
	for _, kept := range a.keptFromAgents() {
		if within(kept, cwd) {
			return nil, cannot("%s would be writable from %s; use a directory below", kept, cwd)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, cannot("cannot find the tether program: %v", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, cannot("there is no home directory: %v", err)
	}
	sum := sha256.Sum256([]byte(actor.Name)) // a name may hold anything
	p := sandbox.Profile{
		Writable: append([]string{cwd}, writable...), Readable: rule.Readable, NoNetwork: rule.NoNetwork, Temporary: sandbox.Temporary(), Home: home,
		Hidden:  a.ownDirs(),
		Sockets: append(slices.Clone(rule.Sockets), SocketPath(a.cfg.Dirs)), // who connects from there is known by its ancestors
		Private: filepath.Join(a.cfg.Dirs.State, "sandbox", hex.EncodeToString(sum[:6])),
	}
	if a.door != "" {
		p.Door = sandbox.Door{From: a.door, At: a.cfg.Dirs.Runtime}
	}
	if argv, err = sandbox.Wrap(sandbox.Kind(rule.Kind), p, self, argv); err != nil {
		return nil, cannot("%v", err)
	}
	return argv, nil
}

// doorName is the directory below the runtime directory that a wall shows in its place.
const doorName = "sandbox"

// shareSocket puts the daemon's socket into a directory of its own, where it takes the place of the last daemon's: what runs behind a
// wall that shows the directory reaches the new daemon. "" where sockets have no names, or a file no second one; then it does not.
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

// sandboxStatus is what status says of sandboxes: nil if no principal has one.
func (a *Agent) sandboxStatus() *local.SandboxStatus {
	if !a.policy.Sandboxed() {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return &local.SandboxStatus{Error: err.Error()}
	}
	best, err := sandbox.Best(self)
	if err != nil {
		return &local.SandboxStatus{Error: err.Error()}
	}
	return &local.SandboxStatus{Kind: string(best), Wall: best == sandbox.Wall, Abstract: !sandbox.ClosesAbstractSockets()}
}

// ownDirs are tether's directories, which no sandbox shows.
func (a *Agent) ownDirs() []string {
	d := a.cfg.Dirs
	return []string{d.Config, d.State, d.Runtime, d.Cache}
}

// keptFromAgents are directories that a sandbox must not leave open, or the
// agent could choose its own rules.
func (a *Agent) keptFromAgents() []string {
	all := a.ownDirs()
	if home, err := os.UserHomeDir(); err == nil {
		all = append(all, home)
	}
	for i, dir := range all {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			all[i] = real
		}
	}
	return all
}

// within reports whether dir is root or below it.
func within(dir, root string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
