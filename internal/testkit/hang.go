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

// Hang never returns. A program of a test that is to be killed calls it: should nobody kill it, it exits soon after the tests have ended.
// Otherwise it would keep their output open, which go test, under Wine in particular, waits for and takes for a failure.
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
	os.Exit(1)
}

// AwaitFile waits until the file is there, for a program of a test that has not the environment of the tests. It exits when the file's
// directory is gone, as a test's temporary one is in the end.
func AwaitFile(name string) {
	for {
		if _, err := os.Stat(name); err == nil {
			return
		}
		if _, err := os.Stat(filepath.Dir(name)); err != nil {
			os.Exit(1)
		}
		<-time.After(lastLook)
	}
}
