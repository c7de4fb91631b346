package proc_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tether/internal/testkit/must"
	"tether/platform/proc"
)

func TestCloseOnExec(t *testing.T) {
	for name, mark := range map[string]func() error{"in one call": proc.CloseOnExec, "one by one": proc.MarkEach} {
		fd := must.Get(unix.Open(os.DevNull, unix.O_RDONLY, 0))(t) // as inherited: not close-on-exec
		must.Do(t, mark())
		out, err := exec.Command("ls", "/proc/self/fd").CombinedOutput()
		if got := strings.Fields(string(out)); err != nil || len(got) != 4 { // 0 to 2 and the directory itself
			t.Errorf("%s: a program started later has descriptors %q, %v", name, got, err)
		}
		unix.Close(fd)
	}
}
