package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/local"
	"tether/agent/term"
	"tether/platform/sandbox"
)

// confine puts what an agent runs into the sandbox that is configured for it.
// Where there can be none, nothing is run.
func (a *Agent) confine(actor term.Actor, spec *term.Spec) error {
	kind, writable := a.policy.Sandbox(actor)
	if kind == "" {
		return nil
	}
	cannot := func(format string, args ...any) error {
		return &local.Error{Code: local.CodeCannotStart, Message: fmt.Sprintf("%s runs in a sandbox, and ", actor) + fmt.Sprintf(format, args...)}
	}
	cwd, err := filepath.EvalSymlinks(spec.Cwd)
	if err != nil {
		return cannot("its directory is not there: %v", err)
	}
	for _, kept := range a.keptFromAgents() {
		if within(kept, cwd) {
			return cannot("%s would be open to changes from %s: choose a directory further down", kept, cwd)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return cannot("this program is not found: %v", err)
	}
	argv := spec.Argv
	if argv == nil {
		argv = spec.Command
	}
	p := sandbox.Profile{Writable: slices.Concat([]string{cwd}, sandbox.Temporary(), writable),
		Hidden: []string{a.cfg.Dirs.Runtime, a.cfg.Dirs.State}}
	if spec.Argv, err = sandbox.Wrap(sandbox.Kind(kind), p, self, argv); err != nil {
		return cannot("%v", err)
	}
	return nil
}

// keptFromAgents are directories that a sandbox must not leave open, or the
// agent could choose its own rules.
func (a *Agent) keptFromAgents() []string {
	all := []string{a.cfg.Dirs.Config, a.cfg.Dirs.State, a.cfg.Dirs.Runtime}
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
