package limits

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// The agent's job has the latest bounds; the command is unchanged.
func TestJoinOnWindows(t *testing.T) {
	name := fmt.Sprintf("test %d", os.Getpid())
	for _, g := range []Group{{name, 4096, 0}, {name, 4096, 0}, {name, 10, 1 << 30}} {
		argv, env, err := Join(g, []string{"cmd", "/c", "x"}, []string{"A=1"})
		if err != nil || !slices.Equal(argv, []string{"cmd", "/c", "x"}) || !slices.Equal(env, []string{"A=1"}) {
			t.Fatalf("%q, %q, %v", argv, env, err)
		}
		job := must.Get(proc.AgentJob(name))(t)
		defer job.Close()
		testkit.NotOnWine(t, "takes bounds of jobs, and neither keeps nor enforces them")
		var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
		must.Do(t, windows.QueryInformationJobObject(job.Handle(), windows.JobObjectExtendedLimitInformation,
			uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil))
		if got := (Group{name, int(info.BasicLimitInformation.ActiveProcessLimit), int64(info.JobMemoryLimit)}); got != g {
			t.Errorf("bounds %+v, want %+v", got, g)
		}
	}
}
