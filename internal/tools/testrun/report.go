package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json, see go doc test2json and go help buildjson.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds, if it has ended
}

// report turns events into text for people. It keeps the output of a test until it knows
// how the test ended.
type report struct {
	to      io.Writer
	output  map[key]*strings.Builder // of tests that have not ended, and of packages
	skipped []skip
	failed  []key           // tests that no other belongs to, and packages whose output was held
	slow    []slow          // the same, that took slowTest or longer
	broken  map[string]bool // packages that failed otherwise than by tests
}

type key struct{ pkg, test string }

type skip struct {
	key
	reason string
}

type slow struct {
	key
	seconds float64
}

// slowTest is how many seconds make a test worth naming: a few of them decide how long
// everything takes.
const slowTest = 20

func newReport(to io.Writer) *report {
	return &report{to: to, output: map[key]*strings.Builder{}, broken: map[string]bool{}}
}

// read handles events until the end. An error means an invalid event.
func (r *report) read(events io.Reader) error {
	d := json.NewDecoder(events)
	for {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("output of go test: %w", err)
		}
		r.handle(e)
	}
}

func (r *report) handle(e event) {
	k := key{e.Package, e.Test}
	if e.Test != "" && !strings.Contains(e.Test, "/") && e.Elapsed >= slowTest {
		r.slow = append(r.slow, slow{k, e.Elapsed})
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.to, e.Output)
	case "output":
		if r.output[k] == nil {
			r.output[k] = &strings.Builder{}
		}
		r.output[k].WriteString(e.Output)
	case "pass":
		r.end(k, e.Test == "")
	case "fail":
		r.fail(k)
		r.end(k, true)
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, skip{k, reason(r.text(k))})
		}
		r.end(k, false) // a package is skipped when it has no tests
	}
}

// heldOutput is what go test says of a package whose tests have passed, when a process
// that they left behind still holds its output: under Wine, services do at times.
const heldOutput = "Test I/O incomplete"

// fail records a failure.
func (r *report) fail(k key) {
	if text := r.text(k); strings.Contains(text, "DATA RACE") || strings.HasPrefix(text, "panic: ") || strings.Contains(text, "\npanic: ") {
		r.broken[k.pkg] = true
	}
	if k.test != "" {
		if !strings.Contains(k.test, "/") {
			r.failed = append(r.failed, k)
		}
		return
	}
	switch {
	case r.printUnended(k.pkg):
		r.broken[k.pkg] = true
	case slices.ContainsFunc(r.failed, func(f key) bool { return f.pkg == k.pkg }):
	case strings.Contains(r.text(k), heldOutput):
		r.failed = append(r.failed, k)
	default:
		r.broken[k.pkg] = true
	}
}

// forgivable returns the tests and packages that failed; false if anything failed that a
// second run cannot excuse.
func (r *report) forgivable() ([]key, bool) {
	return r.failed, len(r.broken) == 0
}

func (r *report) text(k key) string {
	if b := r.output[k]; b != nil {
		return b.String()
	}
	return ""
}

// end forgets a test or package, after printing its output if show.
func (r *report) end(k key, show bool) {
	if show {
		for line := range strings.Lines(r.text(k)) {
			if k.test != "" || line != "PASS\n" && line != "FAIL\n" {
				fmt.Fprint(r.to, line)
			}
		}
	}
	delete(r.output, k)
}

// printUnended prints the output of tests that were running when their package failed, if
// there are any: one of them has panicked or taken too long.
func (r *report) printUnended(pkg string) (any bool) {
	keys := slices.Collect(maps.Keys(r.output))
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.test, b.test) })
	for _, k := range keys {
		if k.pkg == pkg && k.test != "" {
			r.end(k, true)
			any = true
		}
	}
	return any
}

// reason takes the text of t.Skip out of a test's output: the line that starts with the
// place it was called from.
func reason(output string) string {
	var text []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if place, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(place, ".go:") {
			line = rest
		}
		text = append(text, line)
	}
	if len(text) == 0 {
		return "no reason given"
	}
	return strings.Join(text, " ")
}

// printSkipped names each skipped test below its reason, those of one package on one
// line.
func (r *report) printSkipped() {
	if len(r.skipped) == 0 {
		fmt.Fprintln(r.to, "no test was skipped")
		return
	}
	reasons := map[string]map[string][]string{} // to packages, to tests
	for _, s := range r.skipped {
		if reasons[s.reason] == nil {
			reasons[s.reason] = map[string][]string{}
		}
		reasons[s.reason][s.pkg] = append(reasons[s.reason][s.pkg], s.test)
	}
	fmt.Fprintf(r.to, "skipped: %d\n", len(r.skipped))
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(r.to, "  %s\n", reason)
		for _, pkg := range slices.Sorted(maps.Keys(reasons[reason])) {
			tests := reasons[reason][pkg]
			slices.Sort(tests)
			fmt.Fprintf(r.to, "    %s %s\n", pkg, strings.Join(tests, " "))
		}
	}
}

// printSlow names the slow tests, the slowest first.
func (r *report) printSlow() {
	if len(r.slow) == 0 {
		return
	}
	slices.SortFunc(r.slow, func(a, b slow) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintf(r.to, "slow: %d took %d s or longer\n", len(r.slow), slowTest)
	for _, s := range r.slow {
		fmt.Fprintf(r.to, "  %4.0f s %s %s\n", s.seconds, s.pkg, s.test)
	}
}
