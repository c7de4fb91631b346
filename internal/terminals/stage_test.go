package terminals

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// A stage is what windows share: a daemon and files.
type stage struct {
	tether  string
	files   string   // the person's home, too
	env     []string // of the windows' programs
	windows atomic.Int64
}

// profile is read by each shell. $R is the directory of its window.
const profile = `
PS1='$ '
unset HISTFILE
p() { "$PROBE" probe "$1" "$R/$2" "${@:3}"; }
r() { cat >"$R/$1.new" && mv "$R/$1.new" "$R/$1"; }
facts() {
	echo "flags $- $0 $SHLVL login: $(shopt login_shell)"
	shopt; set -o; umask; pwd; nice; ulimit -Sa; ulimit -Ha; stty -a; trap
	for fd in 0 1 2; do [ -t $fd ] && echo "$fd is a terminal"; done
	tty >/dev/null && echo hello >/dev/tty && echo "there is a controlling terminal"
	grep -E '^(SigBlk|SigIgn|Uid|Gid|NoNewPrivs|Seccomp):' /proc/$$/status
	cat /proc/$$/oom_score_adj
	[ "$(ps -o sid= -p $$)" -eq $$ ] && echo "leads its session"
	complete | sort; alias; declare -F | grep -v __tether
}
if [ -n "$KITTY_INSTALLATION_DIR" ]; then # kitty's integration, as its manual says for shells that kitty does not start itself
	export KITTY_SHELL_INTEGRATION=no-title
	. "$KITTY_INSTALLATION_DIR/shell-integration/bash/kitty.bash"
fi
echo $$ $TETHER_TERMINAL | r started
`

// stale is the environment of a daemon that was started in the window of another terminal
// program.
var stale = []string{"TERM=dumb", "COLORTERM=no", "TERM_PROGRAM=other", "TERM_PROGRAM_VERSION=1", "WINDOWID=7", "KITTY_WINDOW_ID=77", "KITTY_PID=1", "VTE_VERSION=1",
	"XTERM_VERSION=other", "TMUX=/nowhere,1,2", "STY=1.other", "COLUMNS=7", "LINES=7", "DISPLAY=:9999", "LANG=C", "SHLVL=7", "OLDPWD=/", "STALE=1"}

// newStage starts the daemon.
func newStage(t *testing.T) *stage {
	t.Helper()
	bin := t.TempDir()
	must.Do(t, testkit.Build(bin))
	home := must.Get(testkit.MakeHome())(t)
	t.Cleanup(func() { check.OK(t, testkit.RemoveHome(home)) })
	s := &stage{tether: filepath.Join(bin, "tether"), files: t.TempDir()}
	must.Do(t, os.WriteFile(filepath.Join(s.files, ".bashrc"), []byte(profile), 0o600))
	for name, text := range shown {
		must.Do(t, os.WriteFile(filepath.Join(s.files, name), []byte(text), 0o600))
	}
	self := must.Get(os.Executable())(t)
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.files, "TETHER_HOME=" + home, "LANG=C.UTF-8", "SHELL=/bin/bash", "PROBE=" + self,
		"NO_AT_BRIDGE=1", "LIBGL_ALWAYS_SOFTWARE=1", "EMPTY=", "ODD=two\nlines = \"x\"\t\x1b[1m é", "SHLVL=4"}
	daemon := exec.Command("sh", "-c", "umask 077; ulimit -S -n 777; ulimit -S -c 0; nice -n 3 "+s.tether+" daemon --background --allow-root")
	daemon.Env = append(slices.Clone(s.env[:3]), stale...)
	out, err := daemon.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		stop := exec.Command(s.tether, "stop")
		stop.Env = append(slices.Clone(s.env), "TETHER_ALLOW_ROOT=1")
		out, err := stop.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return s
}

// over waits until the window's shell has ended, and for tether's terminal, too.
func (w *window) over(t *testing.T) {
	t.Helper()
	pid, id, _ := strings.Cut(strings.TrimSpace(w.shell), " ")
	testkit.Eventually(t, testkit.Patience, "the shell has ended", func() bool {
		_, err := os.Stat(filepath.Join("/proc", pid))
		return err != nil
	})
	var out []byte
	testkit.Eventually(t, testkit.Patience, "the terminal has ended", func() bool {
		c := exec.Command(w.stage.tether, "ls")
		c.Env = append(slices.Clone(w.stage.env), "TETHER_ALLOW_ROOT=1")
		out, _ = c.CombinedOutput()
		return id == "" || regexp.MustCompile(id+" .* (exited|killed) ").Match(out)
	})
}
