// Command testrun is go test for people and CI: it prints one line per package and all output of what failed, and in the end names
// every test that was skipped, below its reason, so that a test that could not run does not look like one that passed.
//
//	go run ./internal/tools/testrun -race ./...
//
// With -again before the arguments of go test, a few tests that failed are run once more, alone. Those that then pass are named as
// unsteady, and do not fail the run: thousands of tests with real processes share a machine that stands still at times. Races,
// panics and packages that took too long or did not compile are never forgiven.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// againMost is how many failed tests are run again; more are no accident.
const againMost = 5

func main() {
	args := os.Args[1:]
	again := len(args) > 0 && args[0] == "-again"
	if again {
		args = args[1:]
	}
	report := newReport(os.Stdout)
	status := goTest(report, args)
	if failed, ok := report.forgivable(); status != 0 && again && ok && len(failed) <= againMost {
		status = runAgain(failed, args)
	}
	report.printSkipped()
	os.Exit(status)
}

// goTest runs go test and returns its exit status.
func goTest(report *report, args []string) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fatal(err)
	}
	if err := report.read(out); err != nil {
		fatal(err)
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fatal(err)
	}
	return 0
}

// runAgain runs failed tests once more, each alone, and names them. The first that fails again decides the status.
func runAgain(failed []key, args []string) int {
	fmt.Printf("once more, alone: %d that failed\n", len(failed))
	for _, k := range failed {
		if status := goTest(newReport(os.Stdout), alone(k, args)); status != 0 {
			return status
		}
	}
	fmt.Printf("unsteady: %d failed, and passed when run again alone\n", len(failed))
	for _, k := range failed {
		fmt.Printf("  %s %s\n", k.pkg, k.test)
	}
	return 0
}

// alone are the arguments that run one test as it ran among the others.
func alone(k key, args []string) []string {
	var one []string
	for _, a := range args {
		if !strings.HasPrefix(a, "./") {
			one = append(one, a)
		}
	}
	return append(one, "-count=1", "-run=^"+k.test+"$", k.pkg)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "testrun:", err)
	os.Exit(1)
}
