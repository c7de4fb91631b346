package start

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/dirs"
	"tether/platform/sandbox"
)

// Confiner puts agents' commands into their sandboxes and limits. Its fields are set
// once.
type Confiner struct {
	Policy *policy.Engine
	Dirs   dirs.Dirs
	Socket string // the daemon's, which stays in reach: who connects from a sandbox is known by its ancestors
	// SocketDir is the directory that walls show in place of the runtime directory, ""
	// for none.
	SocketDir string
	// Report says that a limit is not enforced.
	Report func(cause, text string)
}

// Confine puts an agent's command into the configured sandbox, and applies its limits. If
// the sandbox is not available, nothing is run.
func (c *Confiner) Confine(actor term.Actor, spec *term.Spec) error {
	if err := c.sandboxed(actor, spec); err != nil {
		return err
	}
	return c.bound(actor, spec)
}

func (c *Confiner) sandboxed(actor term.Actor, spec *term.Spec) error {
	rule := c.Policy.Sandbox(actor)
	if rule.Kind == "" {
		return nil
	}
	argv := spec.Argv
	if argv == nil {
		argv = spec.Command
	}
	argv, err := c.behind(actor, rule, spec.Cwd, argv)
	if err != nil {
		return err
	}
	spec.Argv = argv
	return nil
}

// Command returns the argv that runs an agent's own program in its sandbox, in an
// absolute directory. Only the configuration can set the sandbox: otherwise commands that
// the agent has tether start would be outside it.
func (c *Confiner) Command(actor term.Actor, cwd string, argv []string) ([]string, error) {
	rule := c.Policy.Sandbox(actor)
	if rule.Kind == "" {
		return nil, lacks(actor, "sandbox: commands that tether starts for this agent would be unconfined")
	}
	return c.behind(actor, rule, cwd, argv)
}

// lacks is the error of an agent that cannot be confined by its configuration.
func lacks(actor term.Actor, what string) error {
	return &Error{Kind: Unconfined, Message: fmt.Sprintf("the configuration of %s has no %s", actor, what),
		Hint: fmt.Sprintf("tether config edit: [[policy.principals]] with name = \"agent:%s\", sandbox = \"auto\", roots = [\"~/src\"]", actor.Name)}
}

// behind returns the argv that runs argv in the sandbox that the rule describes. The
// directory is granted to it, so it must be in one that the configuration grants: the
// agent chooses it.
func (c *Confiner) behind(actor term.Actor, rule policy.Sandbox, dir string, argv []string) ([]string, error) {
	cannot := func(format string, args ...any) error {
		return &Error{Kind: Unconfined, Message: fmt.Sprintf("%s runs in a sandbox, and ", actor) + fmt.Sprintf(format, args...)}
	}
	if len(rule.Roots)+len(rule.Writable) == 0 {
		return nil, lacks(actor, "roots: the agent could start a command in any directory, and change it")
	}
	cwd, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, cannot("the directory does not exist: %v", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, cannot("there is no home directory: %v", err)
	}
	p := sandbox.Profile{Writable: append([]string{cwd}, rule.Writable...), Roots: c.Policy.Granted(), Home: home}
	var writable []string
	for _, path := range rule.Writable {
		real, err := p.Resolve(path)
		if errors.Is(err, sandbox.ErrAgentLink) {
			return nil, cannot("%s cannot be granted: %v; grant the directory to which it leads", path, err)
		}
		if err == nil { // otherwise it does not exist
			writable = append(writable, real)
		}
	}
	// The policy has looked at the roots before; the directory may have become a link
	// since.
	granted := rule.Roots
	if len(granted) == 0 {
		granted = writable
	}
	if !slices.ContainsFunc(granted, func(root string) bool { return within(cwd, root) }) {
		return nil, cannot("%s is not in its roots", cwd)
	}
	for _, kept := range c.keptFromAgents() {
		if within(kept, cwd) {
			return nil, cannot("%s would be writable from %s; use a directory below", kept, cwd)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, cannot("cannot find the tether program: %v", err)
	}
	sum := sha256.Sum256([]byte(actor.Name)) // a name may hold anything
	p = sandbox.Profile{
		Writable: append([]string{cwd}, writable...), Readable: rule.Readable, NoNetwork: rule.NoNetwork, Temporary: sandbox.Temporary(), Home: home,
		Roots:   p.Roots,
		Hidden:  c.ownDirs(),
		Sockets: append(slices.Clone(rule.Sockets), c.Socket),
		Private: filepath.Join(c.Dirs.State, "sandbox", hex.EncodeToString(sum[:6])),
	}
	if c.SocketDir != "" {
		p.Door = sandbox.Door{From: c.SocketDir, At: c.Dirs.Runtime}
	}
	if argv, err = sandbox.Wrap(sandbox.Kind(rule.Kind), p, self, argv); err != nil {
		return nil, cannot("%v", err)
	}
	return argv, nil
}

// ownDirs are tether's directories, which no sandbox shows.
func (c *Confiner) ownDirs() []string {
	d := c.Dirs
	return []string{d.Config, d.State, d.Runtime, d.Cache}
}

// keptFromAgents are directories that a sandbox must not leave open, or the agent could
// choose its own rules.
func (c *Confiner) keptFromAgents() []string {
	all := c.ownDirs()
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
