package agent

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/term"
	"tether/platform/dirs"
	"tether/platform/secret"
	"tether/shellint"
)

// scriptsDir holds, per terminal, what its shell reads at its start.
func scriptsDir(d dirs.Dirs) string { return filepath.Join(d.Runtime, "sh") }

// integrate changes how the interactive shell of spec is started, so that it
// reports its commands. Anything else is left as it is: what is no shell, or
// one that is started in an unusual way, runs without.
func (a *Agent) integrate(spec *term.Spec, login bool) error {
	spec.ID = cmp.Or(spec.ID, term.NewID()) // names what the next daemon is to remove
	dir, nonce := filepath.Join(scriptsDir(a.cfg.Dirs), string(spec.ID)), rand.Text()
	plan, err := shellint.Inject(spec.Command, shellint.InjectOptions{
		Nonce: nonce, Dir: dir, Login: login, Getenv: func(name string) string { return lookup(spec.Env, name) },
	})
	if err != nil {
		return fmt.Errorf("shell integration: %w", err)
	}
	if len(plan.Files) > 0 {
		spec.Ended = func() { _ = os.RemoveAll(dir) } // what it misses goes at the next start
		err := writeScripts(dir, plan.Files)
		a.reportScripts(err)
		if err != nil {
			spec.Ended()
			spec.Ended = nil
			return nil
		}
	}
	spec.Argv, spec.Env = plan.Argv, changed(spec.Env, plan.Env, plan.Unset)
	if plan.Detect {
		spec.Nonce = nonce
	}
	return nil
}

// scriptsCause is the cause in status when shells run without integration.
const scriptsCause = "shell integration"

// reportScripts tells status that a shell starts without what could not be
// written for it, or that all is well again.
func (a *Agent) reportScripts(err error) {
	if err == nil {
		a.degraded.report(scriptsCause, "")
		return
	}
	a.log.Warn().Err(err).Msg("a shell starts without integration")
	a.degraded.report(scriptsCause, fmt.Sprintf("the last shell was started without, its scripts could not be written: %v", err))
}

// writeScripts makes the folder, for this user alone, and fills it.
func writeScripts(dir string, files []shellint.File) error {
	if err := secret.Dir(filepath.Dir(dir)); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, os.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	return nil
}

// lookup returns the value that env, NAME=value, gives to name.
func lookup(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if n, value, _ := strings.Cut(e, "="); n == name {
			return value
		}
	}
	return ""
}

// changed is env with some variables set and others gone.
func changed(env []string, set map[string]string, unset []string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		_, replaced := set[name]
		return replaced || slices.Contains(unset, name)
	})
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, name+"="+set[name])
	}
	return out
}
