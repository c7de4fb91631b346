//go:build windows

package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/windows/registry"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/shell"
)

func TestLine(t *testing.T) {
	argv := shell.Line(`echo one& exit 3`)
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if exit, _ := err.(*exec.ExitError); string(out) != "one\r\n" || exit == nil || exit.ExitCode() != 3 {
		t.Errorf("%q printed %q, %v", argv, out, err)
	}
}

// The environment comes from the user's permanent settings, not from this process.
func TestEnvironmentIsThatOfTheAccount(t *testing.T) {
	key := must.Get(registry.OpenKey(registry.CURRENT_USER, "Environment", registry.SET_VALUE))(t)
	defer key.Close()
	const name = "TEST_OF_THE_ACCOUNT"
	must.Do(t, key.SetStringValue(name, "für immer"))
	defer key.DeleteValue(name)
	t.Setenv("ONLY_THE_DAEMONS", "x")
	t.Setenv("TETHER_SECRET", "x")
	c := shell.Cache{Path: shell.Login(), Self: os.Args[0], Limit: testkit.Patience}
	env := must.Get(c.Get(t.Context()))(t)
	if !slices.Contains(env, name+"=für immer") {
		t.Errorf("the account's variable is missing in %q", env)
	}
	has := map[string]bool{}
	for _, e := range env {
		n, _, _ := strings.Cut(strings.ToUpper(e), "=")
		has[n] = true
		if n == "ONLY_THE_DAEMONS" || strings.HasPrefix(n, "TETHER_") {
			t.Errorf("%q does not belong there", e)
		}
	}
	for _, n := range []string{"PATH", "SYSTEMROOT", "USERPROFILE", "TEMP", "LOCALAPPDATA"} {
		if !has[n] {
			t.Errorf("%s is missing in %q", n, env)
		}
	}
}

func TestLoginUsesTheShellVariable(t *testing.T) {
	cmd := filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe")
	for value, want := range map[string]string{cmd: cmd, "/usr/bin/bash": "", `C:\no\such.exe`: "", "cmd.exe": "", "": ""} {
		t.Setenv("SHELL", value)
		got := shell.Login()
		if want != "" && got != want || want == "" && (got == value || !filepath.IsAbs(got)) {
			t.Errorf("with SHELL=%q: %q", value, got)
		}
	}
}

func TestFind(t *testing.T) {
	t.Setenv("ComSpec", "")
	dir := t.TempDir()
	for _, name := range []string{`git\cmd\git.exe`, `git\bin\bash.exe`, `ps\pwsh.exe`} {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, nil, 0o700))
	}
	for _, name := range []string{"ProgramFiles", "ProgramW6432", "LOCALAPPDATA"} {
		t.Setenv(name, dir)
	}
	t.Setenv("PATH", filepath.Join(dir, `git\cmd`)+";"+filepath.Join(dir, "ps"))
	for name, want := range map[string]string{
		"bash": filepath.Join(dir, `git\bin\bash.exe`), "pwsh.exe": filepath.Join(dir, `ps\pwsh.exe`),
		"cmd": filepath.Join(os.Getenv("SystemRoot"), `System32\cmd.exe`), "nosuch": "nosuch", `.\bash`: `.\bash`,
	} {
		got := shell.Find(name)
		if name == "bash" && strings.Contains(got, "Git") {
			continue // a real one is installed
		}
		if !strings.EqualFold(got, want) {
			t.Errorf("Find(%q) = %q, want %q", name, got, want)
		}
	}
}
