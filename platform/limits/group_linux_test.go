package limits

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// inGroup starts a shell in the group. All processes of the group end with the test.
func inGroup(t *testing.T, g Group, script string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	argv, env, err := Join(g, []string{"/bin/sh", "-c", script}, os.Environ())
	if !canGroup() {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("error %v", err)
		}
		t.Skip("there is no systemd of the user with cgroups of version 2 that have the controllers pids and memory: make test-systemd")
	}
	must.Do(t, err)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	out, w, err := os.Pipe()
	must.Do(t, err)
	defer w.Close()
	cmd.Stdout, cmd.Stderr = w, w
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		check.OK(t, run("systemctl", "--user", "stop", g.slice()))
		_ = cmd.Wait()
		out.Close()
	})
	return cmd, bufio.NewReader(out)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	text, err := r.ReadString('\n')
	if err != nil && text == "" {
		t.Fatal(err)
	}
	return strings.TrimSpace(text)
}

// If the user's systemd can bound groups, a command in a group has its bounds; otherwise
// Join returns ErrUnsupported.
func TestJoin(t *testing.T) {
	g := Group{Name: "tether test", Processes: 4096}
	if _, out := inGroup(t, g, "sed -n s/^0:://p /proc/self/cgroup"); !strings.Contains(line(t, out), "/"+g.slice()+"/") {
		t.Errorf("it does not run in %s", g.slice())
	}
}

// All commands of an agent share one bound of processes. Another agent has its own bound.
func TestJoinBoundsProcesses(t *testing.T) {
	const five = "for i in 1 2 3 4 5; do sleep 1000 & done; echo all run; wait"
	g := Group{Name: "tether test processes", Processes: 9}
	if _, out := inGroup(t, g, five); line(t, out) != "all run" {
		t.Fatal("the first five do not run")
	}
	if _, out := inGroup(t, g, five); !strings.Contains(line(t, out), "fork") {
		t.Error("12 processes run in a group of 9")
	}
	g.Name += " of another"
	if _, out := inGroup(t, g, five); line(t, out) != "all run" {
		t.Error("another group has the same bound")
	}
}

// A program that uses more memory than its group may have is killed, and one that uses
// less is not. systemd may end the other processes of its terminal, too.
func TestJoinBoundsMemory(t *testing.T) {
	const script = "head -c 200000000 /dev/zero | tail -n 1 | wc -c" // tail keeps the whole input, which is one line
	for memory, want := range map[int64]bool{64 << 20: false, 1 << 30: true} {
		_, out := inGroup(t, Group{Name: fmt.Sprint("tether test memory ", memory), Memory: memory}, script)
		said, err := io.ReadAll(out)
		if got := strings.Contains(string(said), "200000000"); got != want || err != nil {
			t.Errorf("with %d bytes it says %q, %v", memory, said, err)
		}
	}
}

// The commands for systemd set the bounds of the agent's slice, and run the command in a
// scope of that slice.
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
	argv := must.Get(CPUTime(1500*time.Millisecond, []string{"sh", "-c", "ulimit -t; echo $0 $1", "a b", "c"}))(t)
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil || string(out) != "2\na b c\n" {
		t.Errorf("%q, %v", out, err)
	}
}
