package testkit

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/proc"
)

func TestTreeLeavesNothing(t *testing.T) {
	Unix(t, Programs)
	Leaks(t)
	for _, c := range []struct {
		name, script string
		wait         bool // for the end of the program itself
	}{
		{"children", "sleep 1000 & echo $!; echo; wait", false},
		{"orphans", "(sleep 1000 & echo $!); echo; read never", false},
		{"orphans of one that has ended", "trap '' HUP; sleep 1000 >/dev/null & echo $!; echo", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := proc.Tagged(proc.Tag("nobody")); c.wait && err != nil {
				t.Skipf("only an environment would lead to them: %v", err)
			}
			r := &recorder{TB: t}
			cmd := exec.Command("sh", "-c", c.script)
			in := must.Get(cmd.StdinPipe())(t) // so that read never ends
			defer in.Close()
			out := must.Get(cmd.StdoutPipe())(t)
			kill := StartTree(r, cmd)
			defer kill()
			var pids []int
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != ""; {
				pid := must.Get(strconv.Atoi(strings.TrimSpace(lines.Text())))(t)
				pids = append(pids, pid)
			}
			if c.wait {
				must.Do(t, cmd.Wait())
			}
			if len(pids) == 0 {
				t.Fatal("it has started nothing")
			}
			for _, pid := range pids {
				if p, err := proc.Lookup(pid); err != nil || p.Zombie {
					t.Fatalf("process %d is not there before: %+v, %v", pid, p, err)
				}
			}
			r.end()
			for _, pid := range pids {
				if p, err := proc.Lookup(pid); err == nil && !p.Zombie {
					t.Errorf("process %d is still there", pid)
				}
			}
			if len(r.errors) > 0 {
				t.Errorf("complained: %q", r.errors)
			}
		})
	}
}
