package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// printsLimits is a line that prints the umask, the limit of open files and of file
// sizes.
const printsLimits = "echo limits $(umask) $(ulimit -Sn) $(ulimit -f)."

// limitsOf waits for what printsLimits prints in a terminal.
func (m *mortal) limitsOf(ref string) (printed string) {
	m.t.Helper()
	line := regexp.MustCompile(`limits 0*(\d+ \S+ \S+)\.`)
	testkit.Eventually(m.t, patience, ref+" has printed its limits", func() bool {
		out, err := exec.Command("tether", "read", "--raw", ref).Output()
		found := line.FindSubmatch(out)
		if err != nil || found == nil {
			return false
		}
		printed = string(found[1])
		return true
	})
	return printed
}

// A declared terminal has the limits of the shell of tether up, and keeps them when it is
// started again, also by the next daemon.
func TestLimitsOverDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	config := filepath.Join(m.home, "config", "config.toml")
	must.Do(t, os.MkdirAll(filepath.Dir(config), 0o700))
	must.Do(t, os.WriteFile(config, []byte("[[terminal]]\nname = \"web\"\nrestart = \"always\"\nline = '''"+printsLimits+"; exec sleep 1000'''\n"), 0o600))
	tether := func(line string) string {
		t.Helper()
		out, err := exec.Command("/bin/sh", "-c", line).CombinedOutput()
		id := regexp.MustCompile(`pty-\w+`).Find(out)
		if err != nil || id == nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		return string(id)
	}
	expect := func(what, id, want string) {
		t.Helper()
		if got := m.limitsOf(id); got != want {
			t.Errorf("%s: umask, open files and file sizes are %s, want %s", what, got, want)
		}
	}
	const want = "27 99 5"
	expect("after up", tether("umask 027; ulimit -Sn 99; ulimit -Sf 5; tether up web"), want)
	id := tether("umask 0; tether restart web")
	expect("after a restart", id, want)
	child := must.Get(os.FindProcess(m.find(id).Pid))(t)
	m.kill()
	must.Do(t, child.Kill())
	m.start("daemon")
	next := id
	testkit.Eventually(t, patience, "the next daemon has started it again", func() bool {
		all, err := m.door.List(t.Context())
		if err == nil && len(all.Declared) == 1 {
			next = all.Declared[0].ID
		}
		return next != id
	})
	expect("by the next daemon", next, want)
	expect("after another up", tether("umask 022; tether down web >/dev/null; tether up web"), "22 "+filesOf(proc.OwnLimits())+" unlimited")
}

// Requests without limits, such as those of an older program, have the umask 022, and an
// agent's have none that are looser.
func TestLimitsOfRequests(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	files := filesOf(proc.OwnLimits())
	for _, c := range []struct {
		name   string
		limits *proc.Limits
		want   string
	}{
		{"old", nil, "22 " + files},
		{"none", &proc.Limits{}, "22 " + files},
		{"loose", &proc.Limits{Umask: new(0), Soft: map[string]int64{"nofile": 90}}, "0 90"},
	} {
		h := m.spawn(localapi.SpawnRequest{Command: []string{"/bin/sh", "-c", printsLimits}, Name: c.name, Limits: c.limits})
		if got := m.limitsOf(h.ID); got != c.want+" unlimited" || h.Notice != "" {
			t.Errorf("%s: %s, %q; want %s", c.name, got, h.Notice, c.want)
		}
	}
	for _, c := range []struct {
		name   string
		limits *proc.Limits
		mode   os.FileMode
		notice string
	}{
		{"old", nil, 0o755, ""},
		{"loose", &proc.Limits{Umask: new(0), Soft: map[string]int64{"nofile": proc.NoLimit}}, 0o755, "an agent cannot loosen limits: umask=000 nofile=-1 is not set"},
		{"strict", &proc.Limits{Umask: new(0o077)}, 0o700, ""},
	} {
		dir := t.TempDir()
		h := must.Get(m.door.As("agent:bob").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"mkdir", "new"}, Cwd: dir, Limits: c.limits}))(t)
		testkit.Eventually(t, patience, "it has exited", func() bool { return m.find(h.ID).Exit != nil })
		made, err := os.Stat(filepath.Join(dir, "new"))
		if err != nil || made.Mode().Perm() != c.mode || h.Notice != c.notice {
			t.Errorf("an agent's, %s: %v, %v, %q; want %o, %q", c.name, made, err, h.Notice, c.mode, c.notice)
		}
	}
	var refused *localapi.Error
	for _, wrong := range []proc.Limits{{Umask: new(0o1000)}, {Nice: new(20)}, {Soft: map[string]int64{"nosuch": 1}}, {Soft: map[string]int64{"nofile": -2}}} {
		_, err := m.door.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"true"}, Cwd: testkit.Abs("/"), Limits: &wrong})
		if !errors.As(err, &refused) || refused.Code != localapi.CodeBadRequest {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func filesOf(l proc.Limits) string { return strconv.FormatInt(l.Soft["nofile"], 10) }
