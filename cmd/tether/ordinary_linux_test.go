package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// ordinary is a usual way to run tether, and whether a command that runs so shows a sign
// of a person. start runs a line of sh so, and does not wait for it; it skips programs
// that are not installed.
type ordinary struct {
	name  string
	sign  bool
	start func(t *testing.T, line string)
}

var ordinaryWays = []ordinary{
	{"a script without a terminal", false, func(t *testing.T, line string) { begin(t, "sh", "-c", line) }},
	// A user unit is started so by systemd --user; scripts/test-systemd-inside.sh has a
	// real one.
	{"a unit", false, func(t *testing.T, line string) {
		begin(t, "setsid", "-f", "env", "-i", "PATH=/bin:/usr/bin", "sh", "-c", line)
	}},
	{"cron", false, byCron},
	{"a command at a terminal", true, func(t *testing.T, line string) { atTerminal(t, line) }},
	{"a pipeline at a terminal", true, func(t *testing.T, line string) { atTerminal(t, "true | { "+line+"; } | cat") }},
	{"a job in the background", false, func(t *testing.T, line string) { atTerminal(t, "set -m; { "+line+"; } </dev/null & wait") }},
	{"make run </dev/null", true, func(t *testing.T, line string) {
		needs(t, "make")
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, "Makefile"), []byte("run:\n\t"+line+"\n"), 0o600))
		atTerminal(t, "make -C "+dir+" run </dev/null")
	}},
	{"an alias of git", true, func(t *testing.T, line string) {
		needs(t, "git")
		atTerminal(t, "git -c alias.x='!"+line+"' x")
	}},
	{"a command in vim", true, func(t *testing.T, line string) {
		needs(t, "vim")
		atTerminal(t, "vim -u NONE -es -c '!"+line+"' -c qa!")
	}},
	{"npm run", true, func(t *testing.T, line string) {
		needs(t, "npm")
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"scripts": {"x": "`+line+`"}}`), 0o600))
		atTerminal(t, "npm --offline --prefix "+dir+" run x")
	}},
	{"a program of the person's that nobody knows", false, func(t *testing.T, line string) { atTerminal(t, copyOfShell(t, "newtool")+" -c '"+line+"; true'") }},
	{"script at a terminal", true, func(t *testing.T, line string) {
		needs(t, "script")
		atTerminal(t, "script -qec '"+line+"' /dev/null")
	}},
	{"script without a terminal", false, func(t *testing.T, line string) {
		needs(t, "script")
		begin(t, "script", "-qec", line, "/dev/null")
	}},
	{"tmux", true, func(t *testing.T, line string) {
		needs(t, "tmux")
		socket := filepath.Join(shortDir(t), "tmux")
		t.Cleanup(func() { _ = exec.Command("tmux", "-S", socket, "kill-server").Run() }) // it ends with its last pane, too
		begin(t, "tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", line)
	}},
	{"screen", true, func(t *testing.T, line string) {
		needs(t, "screen")
		dir := shortDir(t)
		must.Do(t, os.Chmod(dir, 0o700))
		begin(t, "env", "SCREENDIR="+dir, "screen", "-dmS", "tether", "sh", "-c", line)
	}},
	{"ssh with a terminal", true, func(t *testing.T, line string) { bySSH(t, "-tt", line) }},
	{"ssh without a terminal", false, func(t *testing.T, line string) { bySSH(t, "-T", line) }},
	// No editor is installed for tests: this imitates VS Code's processes as other
	// programs see them, with a file of that name.
	{"an editor's terminal", true, func(t *testing.T, line string) {
		needs(t, "script")
		script := must.Get(exec.LookPath("script"))(t)
		program := must.Get(os.ReadFile(script))(t)
		editor := filepath.Join(t.TempDir(), "code")
		must.Do(t, os.WriteFile(editor, program, 0o700))
		begin(t, editor, "-qec", line, "/dev/null")
	}},
	{"an editor's task", false, func(t *testing.T, line string) {
		needs(t, "bash")
		begin(t, "bash", "-c", `exec -a code bash -c "$0; true"`, line)
	}},
	{"root in a container", true, func(t *testing.T, line string) {
		if out, err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
			t.Skipf("no namespaces here: %v, %s", err, out)
		}
		atTerminal(t, "unshare --pid --fork --mount-proc sh -c 'export TETHER_HOME="+shortDir(t)+"; tether acp --as bob -- true </dev/null; "+line+"'")
	}},
}

// shortDir is a directory for sockets, whose paths must be short.
func shortDir(t *testing.T) string {
	t.Helper()
	dir := must.Get(testkit.MakeHome())(t)
	t.Cleanup(func() {
		check.OK(t, testkit.RemoveHome(dir))
	})
	return dir
}

// needs skips the test where a program is missing.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("no %s: scripts/test-tools.sh installs it", p)
		}
	}
}

// begin starts a program in a session of its own that has ended when the test ends.
func begin(t *testing.T, argv ...string) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var said bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &said, &said, patience
	must.Do(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed, or has ended
		if t.Failed() {
			t.Logf("%q said %s", argv, said.String())
		}
	})
}

// atTerminal runs a line at a new terminal.
func atTerminal(t *testing.T, line string) {
	t.Helper()
	p := sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-c", line}, Env: append(os.Environ(), "TERM=xterm")})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen has %s", p.shown())
		}
	})
}

// byCron has the real cron run a line as it does when the machine starts, with tables of
// its own, which takes no minute.
func byCron(t *testing.T, line string) {
	needs(t, "cron", "unshare")
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("cron has only the machine's own tables here: %v, %s", err, out)
	}
	table := filepath.Join(t.TempDir(), "table")
	must.Do(t, os.WriteFile(table, []byte("@reboot "+line+"\n"), 0o600))
	begin(t, "unshare", "--mount", "sh", "-ec", `mount -t tmpfs none /run; mount -t tmpfs none /var/spool/cron; mkdir /var/spool/cron/crontabs
cp "$0" /var/spool/cron/crontabs/root; for dir in /etc/cron.d; do mount -t tmpfs none $dir; done; mount --bind /dev/null /etc/crontab; exec cron -f`, table)
}

// sshConfig returns the file of a configuration of ssh in which far.example is a real
// sshd of this test's, which lets in one key; every other host fails.
func sshConfig(t *testing.T) string {
	t.Helper()
	needs(t, "sshd", "ssh", "ssh-keygen")
	sshd, _ := exec.LookPath("sshd") // it starts itself again, by its path
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"host", "key"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file(name)).CombinedOutput(); err != nil {
			t.Fatalf("%v, %s", err, out)
		}
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Skipf("sshd needs /run/sshd: %v", err)
		}
	}
	// sshd -i serves the connection that its standard streams are.
	for name, text := range map[string]string{
		"sshd_config": fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nPermitRootLogin yes\nPidFile none\n", file("host"), file("key.pub")),
		"ssh_config": fmt.Sprintf("Host far.example\n ProxyCommand %s -i -f %s\nHost *\n IdentityFile %s\n IdentitiesOnly yes\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n BatchMode yes\n ProxyCommand false\n",
			sshd, file("sshd_config"), file("key")),
	} {
		must.Do(t, os.WriteFile(file(name), []byte(text), 0o600))
	}
	return file("ssh_config")
}

// bySSH runs a line through a real sshd.
func bySSH(t *testing.T, terminal, line string) {
	begin(t, "ssh", terminal, "-F", sshConfig(t), "far.example", line)
}

// Ordinary use does not notice that callers are distinguished: it counts as the person,
// operations without a sign work, and powers are available where a person sits.
func TestOrdinaryUse(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel() // it waits most of the time
	home := acpHome(t)
	path := os.Getenv("PATH")
	if out, status := everything(home, "acp", "--as", "bob", "--", "true"); status != 0 {
		t.Fatalf("%d, %s", status, out)
	}
	const ask = `tether whoami
tether run --name "a$1" -- true; echo "run=$?"
tether run --detach --name "b$1" -- cat; echo "start=$?"
tether ls; echo "ls=$?"
tether unlend "b$1"; echo "unlend=$?"
tether kill "b$1"; echo "kill=$?"
tether token create "t$1" >/dev/null; echo "power=$?"
`
	for i, w := range ordinaryWays {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			out, script := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "ask")
			text := fmt.Sprintf("exec >%s.new 2>&1\nexport PATH='%s' TETHER_HOME=${TETHER_HOME:-%s} %s=1 HOME='%s'\nunset %s\n%smv %[1]s.new %[1]s\n", out, path, home, allowRootVar, os.Getenv("HOME"), tokenVar, ask)
			must.Do(t, os.WriteFile(script, []byte(text), 0o600))
			w.start(t, fmt.Sprintf("sh %s %d", script, i))
			var got []byte
			testkit.Eventually(t, patience, "the end of "+script, func() bool {
				var err error
				got, err = os.ReadFile(out)
				return !errors.Is(err, os.ErrNotExist)
			})
			power, sign := "power=6", "no sign of a person: "
			if w.sign {
				power, sign = "power=0", "sign of a person: process "
			}
			for _, want := range []string{"user: no agent has started process ", "\n" + sign, "\nrun=0\n", "\nstart=0\n", "\nls=0\n", "\nunlend=0\n", "\nkill=0\n", "\n" + power + "\n"} {
				if !strings.Contains(string(got), want) {
					t.Errorf("without %q:\n%s", want, got)
				}
			}
		})
	}
}
