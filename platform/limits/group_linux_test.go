package limits

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Where the user's systemd carries groups, a command in one has its bound; where it does not, that is said.
func TestJoin(t *testing.T) {
	g := Group{Name: "tethertest", Processes: 4096}
	argv, env, err := Join(g, []string{"/bin/cat", "/proc/self/cgroup"}, os.Environ())
	if !CanGroup() {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("error %v", err)
		}
		t.Skip("there is no systemd of the user with cgroups of version 2")
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), g.slice()) {
		t.Errorf("it runs in %s, %v", out, err)
	}
}

// What is said to systemd: a slice of the agent's own with its bounds, and a scope in it that becomes the command.
func TestGroupInWords(t *testing.T) {
	g := Group{Name: "bob's", Processes: 4096, Memory: 1 << 30}
	if got, want := strings.Join(g.properties(), " "), "--user set-property --runtime tether-agent_ee27442e4ca2.slice TasksMax=4096 MemoryMax=1073741824 MemorySwapMax=0"; got != want {
		t.Errorf("bounds: %s", got)
	}
	if got, want := strings.Join(g.wrap([]string{"a", "-b"}), " "), "systemd-run --user --scope --quiet --collect --description=tether --slice=tether-agent_ee27442e4ca2.slice -- a -b"; got != want {
		t.Errorf("command: %s", got)
	}
	if got := withRuntimeDir([]string{"A=1"}, "/run/user/1"); !slices.Equal(got, []string{"A=1", "XDG_RUNTIME_DIR=/run/user/1"}) {
		t.Errorf("environment: %q", got)
	}
	if got := withRuntimeDir([]string{"XDG_RUNTIME_DIR=/x"}, "/run/user/1"); len(got) != 1 {
		t.Errorf("environment: %q", got)
	}
}

func TestCPUTime(t *testing.T) {
	argv, err := CPUTime(1500*time.Millisecond, []string{"sh", "-c", "ulimit -t; echo $0 $1", "a b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil || string(out) != "2\na b c\n" {
		t.Errorf("%q, %v", out, err)
	}
}
