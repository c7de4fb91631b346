// Command testrun is go test for people and CI: it prints one line per package and all output of what failed, and in the end names
// every test that was skipped, below its reason, so that a test that could not run does not look like one that passed.
//
//	go run ./internal/tools/testrun -race ./...
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fatal(err)
	}
	report := newReport(os.Stdout)
	if err := report.read(out); err != nil {
		fatal(err)
	}
	err = cmd.Wait()
	report.printSkipped()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(max(exit.ExitCode(), 1))
	}
	if err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "testrun:", err)
	os.Exit(1)
}
