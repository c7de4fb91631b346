// Package integrate changes how shells are started, so that they report their commands.
// It carries out the plans of package shellint.
//
//	err := integrate.Shell(&spec, dir, false)
//
// Package term reads the reports.
package integrate

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/term"
	"tether/platform/secret"
	"tether/shellint"
)

// ErrScripts is returned by Shell, wrapped, if the shell's scripts could not be written.
// The terminal can still be started.
var ErrScripts = errors.New("the scripts of a shell could not be written")

// Shell changes how the interactive shell of spec is started, so that the shell reports
// its commands; it then sets spec.Nonce. Programs that are not shells, and shells with
// unusual arguments, stay unchanged. dir holds one folder per terminal with the files
// that the shell reads at its start; spec.Ended removes the folder. Errors: ErrScripts,
// wrapped, or an error of package shellint.
func Shell(spec *term.Spec, dir string, login bool) error {
	spec.ID = cmp.Or(spec.ID, term.NewID()) // it names the folder, which a later daemon must be able to remove
	own, nonce := filepath.Join(dir, string(spec.ID)), rand.Text()
	plan, err := shellint.Inject(spec.Command, shellint.InjectOptions{
		Nonce: nonce, Dir: own, Login: login, Getenv: Getenv(spec.Env),
	})
	if err != nil {
		return fmt.Errorf("shell integration: %w", err)
	}
	if len(plan.Files) > 0 {
		remove := func() { _ = os.RemoveAll(own) } // if it fails, the next start of the daemon removes the folder
		if err := write(own, plan.Files); err != nil {
			remove()
			return fmt.Errorf("%w: %w", ErrScripts, err)
		}
		spec.Ended = remove
	}
	spec.Argv, spec.Env = plan.Argv, Environ(spec.Env, plan.Env, plan.Unset)
	if plan.Detect {
		spec.Nonce = nonce
	}
	return nil
}

// write writes the files into the folder dir, which only this user may read.
func write(dir string, files []shellint.File) error {
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

// Getenv returns a function that does for env, a list of NAME=value, what os.Getenv does
// for this process. The last entry of a name counts.
func Getenv(env []string) func(name string) string {
	return func(name string) string { return lookup(env, name) }
}

// lookup returns the value of name in env, a list of NAME=value, or "". The last entry
// counts.
func lookup(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if n, value, _ := strings.Cut(e, "="); n == name {
			return value
		}
	}
	return ""
}

// Environ returns a copy of env, a list of NAME=value, with the variables in set added or
// replaced and those in unset removed.
func Environ(env []string, set map[string]string, unset []string) []string {
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
