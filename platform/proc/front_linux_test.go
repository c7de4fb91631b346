package proc_test

import (
	"os"
	"slices"
	"testing"

	"tether/platform/proc"
)

// A process without a terminal has nothing in its foreground, and none that is not there.
func TestFrontWithoutATerminal(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 30} {
		if f, ok := proc.Front(pid); ok {
			t.Errorf("process %d: %+v", pid, f)
		}
	}
	if f, ok := proc.Front(os.Getpid()); ok && f.Pid <= 0 || !ok && !slices.Equal(f.Argv, nil) {
		t.Errorf("%+v, %t", f, ok)
	}
}
