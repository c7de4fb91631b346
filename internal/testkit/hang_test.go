package testkit

import (
	"io"
	"os"
	"os/exec"
	"testing"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// hangVar makes the test binary a program that hangs ("hang"), or tests that leave one
// behind ("leave").
const hangVar = "TESTKIT_TEST_HANG"

func init() {
	switch os.Getenv(hangVar) {
	case "hang":
		Hang()
		os.Exit(1)
	case "leave":
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), hangVar+"=hang", ForHang())
		c.Stdout = os.Stdout
		if c.Start() != nil {
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is to end
		os.Exit(0)
	}
}

// A program that hangs, and that nobody kills, ends with the tests that have started it,
// and not before.
func TestHangingProgramsEndWithTheTests(t *testing.T) {
	Leaks(t)
	tests := exec.Command(os.Args[0])
	tests.Env = append(os.Environ(), hangVar+"=leave")
	in := must.Get(tests.StdinPipe())(t)
	out, theirs, err := os.Pipe() // Wait waits for no pipe of this kind
	must.Do(t, err)
	defer out.Close()
	tests.Stdout = theirs
	err = tests.Start()
	theirs.Close()
	must.Do(t, err)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, out)
	}()
	in.Close()
	check.OK(t, tests.Wait())
	Eventually(t, Patience, "the program that hangs has ended", func() bool {
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
}
