package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tether/platform/proc"
)

// testsVar has the number of the process of the tests, for programs that these start.
const testsVar = "TEST_PROCESS"

// lookForTests is the time between two looks whether the tests run.
const lookForTests = 200 * time.Millisecond

// ForHang is the entry, as NAME=value, that a program which calls Hang needs in its environment. A program that has it passes on the same.
func ForHang() string {
	if given := os.Getenv(testsVar); given != "" {
		return testsVar + "=" + given
	}
	return fmt.Sprintf("%s=%d", testsVar, os.Getpid())
}

// Hang blocks at the end of a test's program that must be killed. If nobody kills it, Hang returns soon after the tests have ended, so that
// the program ends: otherwise it would keep their output open, which go test, under Wine in particular, takes for a failure.
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

// AwaitFile waits until the file is there, for a program of a test that has not the environment of the tests. It returns also when the
// file's directory is gone, as a test's temporary one is in the end.
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
