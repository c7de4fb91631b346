package integrate_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/agent/integrate"
	"tether/agent/term"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// A known shell gets scripts and a nonce; every other command stays unchanged.
func TestShell(t *testing.T) {
	for name, tt := range map[string]struct {
		command []string
		known   bool
	}{
		"bash":         {[]string{"/bin/bash"}, true},
		"a command":    {[]string{"/bin/bash", "-c", "true"}, false},
		"dash":         {[]string{"/bin/dash"}, false},
		"another":      {[]string{"/usr/bin/vi"}, false},
		"bash at work": {[]string{"/bin/bash", "script.sh"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sh")
			spec := term.Spec{Command: tt.command, Env: []string{"HOME=/home/me", "A=1"}}
			must.Do(t, integrate.Shell(&spec, dir, false))
			if (spec.Nonce != "") != tt.known || !slices.Contains(spec.Env, "A=1") {
				t.Errorf("planned %+v, want it to report: %v", spec, tt.known)
			}
			own := filepath.Join(dir, string(spec.ID))
			if _, err := os.Stat(own); (err == nil) != tt.known {
				t.Errorf("its folder: %v", err)
			}
			if !tt.known {
				return
			}
			spec.Ended()
			if _, err := os.Stat(own); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its folder after the end: %v", err)
			}
		})
	}
}

// If the scripts cannot be written, the shell can be started without them.
func TestScriptsThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, secret.WriteFile(file, nil))
	spec := term.Spec{Command: []string{"/bin/bash"}, Env: []string{"A=1"}}
	err := integrate.Shell(&spec, file, false)
	if !errors.Is(err, integrate.ErrScripts) || spec.Argv != nil || spec.Nonce != "" || spec.Ended != nil {
		t.Errorf("%v, planned %+v", err, spec)
	}
}

func TestEnviron(t *testing.T) {
	env := []string{"A=1", "B=2", "C=3", "AB=4"}
	got := integrate.Environ(env, map[string]string{"Z": "26", "B": "two"}, []string{"A"})
	if diff := cmp.Diff([]string{"C=3", "AB=4", "B=two", "Z=26"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if env[0] != "A=1" || len(env) != 4 {
		t.Errorf("it has changed what it was given: %v", env)
	}
}
