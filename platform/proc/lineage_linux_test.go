package proc_test

import (
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// Long arguments are read to their end, and marks of agents' makers with their values,
// unless these are empty.
func TestLongArgumentsAndMarks(t *testing.T) {
	long := strings.Repeat("/a/library.jar:", 5000)
	cmd := exec.Command("sh", "-c", "echo; read x", long, "com.intellij.idea.Main")
	cmd.Env = []string{"CLAUDECODE=1", "GEMINI_CLI=", "GOOSE_TERMINAL=x_1", proc.DevServerMark, "PATH=/bin:/usr/bin"}
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	must.Get(io.ReadFull(out, make([]byte, 1)))(t)
	line := proc.Lineage(cmd.Process.Pid)
	in.Close()
	_ = cmd.Wait() // read has found the end
	if len(line) == 0 || !slices.Equal(line[0].Argv[3:], []string{long, "com.intellij.idea.Main"}) {
		t.Fatalf("%.400v", line)
	}
	if !slices.Equal(line[0].Vendors, []string{"CLAUDECODE=1", "GOOSE_TERMINAL=x_1"}) {
		t.Errorf("the marks are %q", line[0].Vendors)
	}
}
