package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tether/platform/proc"
)

// testsVar has the process ID of the tests, for programs that the tests start.
const testsVar = "TEST_PROCESS"

// lookForTests is the interval at which Hang checks whether the tests run.
const lookForTests = 200 * time.Millisecond

// ForHang returns the environment variable, as NAME=value, that a program needs to call
// Hang. In a program that has the variable it returns the same one, for programs that
// this program starts.
func ForHang() string {
	if given := os.Getenv(testsVar); given != "" {
		return testsVar + "=" + given
	}
	return fmt.Sprintf("%s=%d", testsVar, os.Getpid())
}

// Hang blocks until the program is killed. If nobody kills it, Hang returns soon after
// the tests have ended, so that the program ends: a program that stays would keep the
// output of the tests open, which go test reports as a failure, under Wine in particular.
// Without the variable of ForHang, Hang returns at once.
func Hang() {
	pid, _ := strconv.Atoi(os.Getenv(testsVar))
	tests, err := proc.Lookup(pid)
	for err == nil && !tests.Zombie {
		<-time.After(lookForTests)
		var now proc.Info
		if now, err = proc.Lookup(pid); now.ID != tests.ID {
			break
		}
		tests = now
	}
}

// AwaitFile blocks until the file exists or its directory is gone, as a test's temporary
// directory is after the test. It is for programs that lack the environment of the tests.
func AwaitFile(name string) {
	for {
		if _, err := os.Stat(name); err == nil {
			return
		}
		if _, err := os.Stat(filepath.Dir(name)); err != nil {
			return
		}
		<-time.After(lastLook)
	}
}
