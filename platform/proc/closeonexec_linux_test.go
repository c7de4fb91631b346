package proc_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tether/platform/proc"
)

func TestCloseOnExec(t *testing.T) {
	for name, mark := range map[string]func() error{"in one call": proc.CloseOnExec, "one by one": proc.MarkEach} {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY, 0) // as inherited: not close-on-exec
		if err != nil {
			t.Fatal(err)
		}
		if err := mark(); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("ls", "/proc/self/fd").CombinedOutput()
		if got := strings.Fields(string(out)); err != nil || len(got) != 4 { // 0 to 2 and the directory itself
			t.Errorf("%s: a program started later has descriptors %q, %v", name, got, err)
		}
		unix.Close(fd)
	}
}
