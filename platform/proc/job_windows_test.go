package proc

import (
	"math"
	"testing"

	"golang.org/x/sys/windows"
)

// The bounds set in Windows: 0 bounds nothing, and the number of processes stays within
// Windows' range.
func TestLimitInfo(t *testing.T) {
	const active, memory, kill = windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS, windows.JOB_OBJECT_LIMIT_JOB_MEMORY, windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	for _, c := range []struct {
		flags, wantFlags uint32
		processes        int
		memory           int64
		wantProcesses    uint32
	}{
		{},
		{kill, kill, 0, 0, 0},
		{0, active, 4096, 0, 4096},
		{0, memory, 0, 1 << 30, 0},
		{0, active | memory, 1, 3 << 32, 1},
		{0, active, math.MaxInt, 0, math.MaxInt32},
	} {
		got := limitInfo(c.flags, c.processes, c.memory)
		basic := got.BasicLimitInformation
		if basic.LimitFlags != c.wantFlags || basic.ActiveProcessLimit != c.wantProcesses || got.JobMemoryLimit != uintptr(c.memory) {
			t.Errorf("%d processes and %d bytes: %+v", c.processes, c.memory, got)
		}
	}
}
