// Command testrun is go test for people and CI: it prints one line per package and the
// whole output of failed tests. In the end it names every skipped test, below its reason,
// so that a test that could not run does not look like one that passed, and the slowest
// tests.
//
//	go run ./internal/tools/testrun -race ./...
//
// The tests have a separate, empty home, so that no start-up files affect their shells.
//
// With -again before the arguments of go test, a few tests that failed, and packages
// whose output a process still holds, are run once more, alone. Those that then pass are
// named as unsteady, and do not fail the run: thousands of tests with real processes
// share a machine that stands still at times. Races, panics and packages that took too
// long or did not compile are never forgiven.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// againMost is how many failed tests are run again; more are no accident.
const againMost = 5

func main() {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // which go test hears, too: this waits for its end
	home, env, err := newHome()
	if err != nil {
		os.Exit(wrong(err))
	}
	status := run(env, os.Args[1:])
	if err := os.RemoveAll(home); err != nil {
		status = max(status, wrong(err))
	}
	os.Exit(status)
}

// run carries out the arguments and returns the exit status.
func run(env, args []string) int {
	again := len(args) > 0 && args[0] == "-again"
	if again {
		args = args[1:]
	}
	report := newReport(os.Stdout)
	status := goTest(report, env, args)
	if failed, ok := report.forgivable(); status != 0 && again && ok && len(failed) > 0 && len(failed) <= againMost {
		status = runAgain(failed, env, args)
	}
	report.printSkipped()
	report.printSlow()
	return status
}

// goTest runs go test and returns its exit status.
func goTest(report *report, env, args []string) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr, cmd.Env = os.Stderr, env
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return wrong(err)
	}
	read := report.read(out)
	out.Close() // otherwise go test would wait for a reader that is gone
	err = cmd.Wait()
	if read != nil {
		return wrong(read)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		return wrong(err)
	}
	return 0
}

// runAgain runs failed tests once more, each alone, and names those that then pass. It
// returns 0 if all do.
func runAgain(failed []key, env, args []string) (status int) {
	fmt.Printf("once more, alone: %d that failed\n", len(failed))
	var unsteady []key
	for _, k := range failed {
		if again := goTest(newReport(os.Stdout), env, alone(k, args)); again != 0 {
			status = again
		} else {
			unsteady = append(unsteady, k)
		}
	}
	fmt.Printf("unsteady: %d of %d passed when run again alone\n", len(unsteady), len(failed))
	for _, k := range unsteady {
		fmt.Printf("  %s %s\n", k.pkg, k.test)
	}
	return status
}

// alone are the arguments that run one test, or one package, as it ran among the others.
func alone(k key, args []string) []string {
	var one []string
	for _, a := range args {
		if !strings.HasPrefix(a, "./") {
			one = append(one, a)
		}
	}
	if one = append(one, "-count=1"); k.test != "" {
		one = append(one, "-run=^"+k.test+"$")
	}
	return append(one, k.pkg)
}

// wrong prints the error that stops this program, and returns the exit status for it.
func wrong(err error) int {
	fmt.Fprintln(os.Stderr, "testrun:", err)
	return 1
}
