package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/shell"
)

// variables are those of lines NAME=value, except for those that differ between any two
// shells.
func variables(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		own := []string{"_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "GORACE"}
		if ok && !strings.HasPrefix(name, "TETHER_") && !slices.Contains(own, name) {
			all[name] = value
		}
	}
	return all
}

// A terminal with a login's environment has the same variables as a login shell, and none
// of the daemon's own, which a service manager has started with next to nothing.
func TestLoginEnvironmentOfATerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	bare := []string{"PATH=/usr/bin:/bin", "HOME=" + os.Getenv("HOME"), "USER=" + os.Getenv("USER"), "LOGNAME=" + os.Getenv("LOGNAME"), "LANG=" + os.Getenv("LANG")}
	login := exec.Command(shell.Login(), "-l", "-i", "-c", "echo from here on; env")
	login.Env = append(slices.Clone(bare), "SHELL="+shell.Login())
	said, err := login.Output()
	_, text, _ := strings.Cut(string(said), "from here on\n") // before it is the output of start-up files
	if err != nil || !strings.Contains(text, "PATH=") {
		t.Skipf("the login shell of this account cannot be asked: %v", err)
	}
	program := must.Get(exec.LookPath("tether"))(t)
	daemon := exec.Command(program, "daemon", "--background")
	daemon.Env = append(slices.Clone(bare), "TETHER_HOME="+home, allowRootVar+"=1", "ONLY_THE_DAEMONS=x")
	if out, err := daemon.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("ONLY_THE_CALLERS", "x")
	out, status := command(t, "run", "--login-env", "--", "env")
	want, got := variables(text), variables(out)
	if status != 0 || len(got) < 3 {
		t.Fatalf("status %d: %s", status, out)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, in a login shell %q", name, got[name], value)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "ONLY_THE_") {
			t.Errorf("%s is there", name)
		}
	}
	if out, _ = command(t, "run", "--", "env"); variables(out)["ONLY_THE_CALLERS"] != "x" {
		t.Error("without the flag it is not the caller's environment")
	}
}

// Start-up files that are slower than terminals.login_timeout delay one start. The caller
// and status are told, and later starts get the login's environment once the files have
// ended in the background.
func TestSlowStartUpFiles(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	account := newHome(t)
	t.Setenv("HOME", account)
	end := filepath.Join(account, "end")
	script := "while ! [ -e " + end + " ]; do sleep 0.05; done; export FROM_START_UP=1\n"
	for _, name := range []string{".profile", ".bash_profile", ".zprofile", ".bashrc"} {
		must.Do(t, os.WriteFile(filepath.Join(account, name), []byte(script), 0o600))
	}
	configure(t, "terminals.login_timeout", "1s")
	for range 2 {
		if out, status := given(t, "", "run", "--private", "--login-env", "--", "true"); status != 0 || !strings.Contains(out, "the environment is the daemon's") {
			t.Fatalf("status %d: %s", status, out)
		}
	}
	if out, _ := command(t, "status"); !strings.Contains(out, "login environment") {
		t.Errorf("status says nothing:\n%s", out)
	}
	must.Do(t, os.WriteFile(end, nil, 0o600))
	testkit.Eventually(t, patience, "the login's environment is known", func() bool {
		out, _ := command(t, "run", "--private", "--login-env", "--", "env")
		return variables(out)["FROM_START_UP"] == "1"
	})
	if out, _ := command(t, "status"); strings.Contains(out, "login environment") {
		t.Errorf("status still says:\n%s", out)
	}
}
