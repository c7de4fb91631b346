package start

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/term"
	"tether/platform/limits"
)

// bound applies the configured limits to an agent's command: to all its commands together
// if the system can do that, and the processor's time to each process.
func (c *Confiner) bound(actor term.Actor, spec *term.Spec) error {
	r := c.Policy.Resources(actor)
	argv := spec.Argv
	if argv == nil {
		argv = spec.Command
	}
	program := argv[0]
	if r.CPUTime > 0 {
		bounded, err := limits.CPUTime(r.CPUTime, argv)
		switch {
		case err == nil:
			argv = bounded
		case errors.Is(err, limits.ErrUnsupported):
			c.Report("limits", "policy.limits.cpu_time is not enforced on this system")
		default:
			return err
		}
	}
	if r.Processes > 0 || r.Memory > 0 {
		bounded, env, err := limits.Join(limits.Group{Name: actor.Name, Processes: r.Processes, Memory: r.Memory}, argv, spec.Env)
		switch {
		case err == nil:
			argv, spec.Env = bounded, env
		case !errors.Is(err, limits.ErrUnsupported):
			return &Error{Kind: Unconfined, Message: fmt.Sprintf("cannot limit the commands of %s: %v", actor, err)}
		case r.Memory > 0:
			c.Report("limits", "policy.limits.memory is not enforced: the user has no systemd with cgroup v2")
		}
	}
	if argv[0] == program || present(program, spec) {
		spec.Argv = argv
	} // otherwise the start reports the fault; a wrapper would only exit
	return nil
}

// present reports whether the program can be found, as the start will look for it.
func present(name string, spec *term.Spec) bool {
	is := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	}
	if strings.ContainsRune(name, '/') || filepath.IsAbs(name) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(spec.Cwd, name)
		}
		return is(name)
	}
	for i := len(spec.Env) - 1; i >= 0; i-- {
		if path, ok := strings.CutPrefix(spec.Env[i], "PATH="); ok {
			return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool { return is(filepath.Join(dir, name)) })
		}
	}
	return false
}
