//go:build linux || darwin

package proc_test

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/proc"
)

func TestLineage(t *testing.T) {
	for _, c := range []struct {
		name, line string
		parent     bool // the test is an ancestor
	}{
		{"a child", "echo $$; read x", true},
		{"a grandchild", `sh -c 'echo $$; read x'; true`, true},
		{"one without parents", `(sh -c 'echo $$; while :; do sleep 1; done' &)`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", c.line)
			cmd.Env = append(os.Environ(), proc.Tag("pty-lineage"))
			in := must.Get(cmd.StdinPipe())(t)
			out := must.Get(cmd.StdoutPipe())(t)
			must.Do(t, cmd.Start())
			defer func() {
				in.Close()
				if err := cmd.Wait(); err != nil && c.parent {
					t.Log(err) // read found the end
				}
			}()
			line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
			pid := must.Get(strconv.Atoi(strings.TrimSpace(line)))(t)
			t.Cleanup(func() {
				if p, err := os.FindProcess(pid); err == nil && !c.parent {
					_ = p.Kill()
				}
			})
			all := proc.Lineage(pid)
			if len(all) == 0 || all[0].Pid != pid {
				t.Fatalf("the lineage of %d is %+v", pid, all)
			}
			if runtime.GOOS == "linux" && !slices.Contains(all[0].Terminals, "pty-lineage") {
				t.Errorf("its terminals are %q", all[0].Terminals)
			}
			if has := slices.ContainsFunc(all, func(a proc.Ancestor) bool { return a.Pid == os.Getpid() }); c.parent && !has {
				t.Errorf("the test is not among %+v", all)
			}
		})
	}
}

func TestLineageOfNobody(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 30} {
		if all := proc.Lineage(pid); len(all) > 0 {
			t.Errorf("the lineage of %d is %+v", pid, all)
		}
	}
}
