package proc_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// Programs of the system and of package managers are where they are installed. Those in
// temporary and in projects' directories are not, nor is a directory whose name only
// begins like such a place.
func TestInstalled(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	home := t.TempDir()
	t.Setenv("HOME", home)
	for path, want := range map[string]bool{
		"/usr/bin/make": true, "/bin/sh": true, "/opt/homebrew/bin/just": true, "/nix/store/x-git/bin/git": true, home + "/.local/bin/uv": true, home + "/.cargo/bin/just": true,
		home + "/.nvm/versions/node/v24/lib/node_modules/npm/bin/npm-cli.js": true, home + "/bin/vim": true, "/tmp/.mount_nvimX1/usr/bin/nvim": true,
		"": false, "make": false, "/tmp/make": false, home + "/make": false, home + "/src/x/bin/make": false, "/usrbin/make": false, home + "/.localx/bin/uv": false, "/app/make": false,
	} {
		if got := proc.Installed(path); got != want {
			t.Errorf("Installed(%q) = %t", path, got)
		}
	}
	file := filepath.Join(home, "program")
	must.Do(t, os.WriteFile(file, nil, 0o700))
	if proc.Installed(file) {
		t.Errorf("%s was written by us", file)
	}
}

// A process's own lineage begins with the file that it runs, and finds what is beside it.
func TestExeAndBeside(t *testing.T) {
	line := proc.Lineage(os.Getpid())
	self, err := os.Executable()
	if err != nil || len(line) == 0 {
		t.Fatal(line, err)
	}
	if runtime.GOOS == "linux" && line[0].Exe != self || filepath.Base(line[0].Exe) != filepath.Base(self) {
		t.Errorf("the file is %q, want %q", line[0].Exe, self)
	}
	if n := len(line[0].Argv); n != len(os.Args) && (runtime.GOOS != "windows" || n != 1) { // Wine tells no arguments
		t.Errorf("the arguments are %q, want %q", line[0].Argv, os.Args)
	}
	if !proc.Beside(line[0], filepath.Base(self)) || !proc.Beside(line[0], "../"+filepath.Base(filepath.Dir(self))) || proc.Beside(line[0], "resources/app") || proc.Beside(proc.Ancestor{}, "x") {
		t.Error("it does not find what is beside the program")
	}
}

// Marks of agents' makers are dropped with the others, and nothing else is.
func TestWithoutMarks(t *testing.T) {
	env := []string{"CLAUDECODE=1", "HOME=/x", proc.Tag("pty-a"), "AI_AGENT=", "CLAUDECODEX=1", proc.AgentTag("bob"), "AI_AGENT", "PATH=/bin", proc.DevServerMark}
	if got := proc.WithoutTag(env); len(got) != 4 || got[0] != "HOME=/x" || got[1] != "CLAUDECODEX=1" || got[2] != "PATH=/bin" || got[3] != proc.DevServerMark {
		t.Errorf("%q", got)
	}
	if got := proc.WithoutVendorMarks(env); len(got) != 6 {
		t.Errorf("%q", got)
	}
	if len(env) != 9 || env[0] != "CLAUDECODE=1" {
		t.Error("it has changed its argument")
	}
}
