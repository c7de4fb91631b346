package problems_test

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/problems"
)

// Minimum shares over the recordings of tools whose files were broken and repaired.
const (
	minFound    = 0.95 // of the printed errors
	minExact    = 0.98 // of what is found is one of them
	minCleared  = 0.95 // of the errors that were repaired
	minWatched  = 24   // recordings that the matchers were made with
	minRecorded = 32   // recordings of make record-problems
)

// watched is the recording of a terminal in which files were broken and repaired.
type watched struct {
	name, dir, command string
	output             []byte
	faults             []fault
	marks              []mark
}

// fault is an error that a reader sees.
type fault struct {
	file         string
	line, column int // column is 0 if the truth has none
	message      string
	broken       int // the offset at which it is certainly there, 0 if unknown
	repaired     int // the offset after which it is gone, or never
	found        bool
}

const never = -1

// mark is an offset of the output: "run", where the command line runs again; "clean",
// until which nothing is wrong; "broken", where all errors since the last repair are
// there; "repaired", where all errors before are gone; or "silent", where they are gone
// and the tool has not said anything.
type mark struct {
	kind string
	at   int
}

var faultForm = regexp.MustCompile(`^(stays: )?(\S+?):(\d+)(?::(\d+))?(?: (.*))?$`)

// watches reads a directory of recordings. The truth about NAME.out is in NAME.want: a
// line "DIR $ COMMAND", a line "FILE:LINE[:COLUMN] BEGINNING OF THE MESSAGE" for each
// error that a reader sees, which begins with "stays: " if it is not repaired, and "KIND
// OFFSET" for a mark. "repaired" without an offset is the end; "stays" says that nothing
// is repaired.
func watches(t *testing.T, dir string) (all []watched) {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.out")
	must.Do(t, err)
	for _, name := range names {
		w := watched{name: strings.TrimSuffix(filepath.Base(name), ".out")}
		if w.output, err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		truth := must.Get(os.ReadFile(strings.TrimSuffix(name, ".out") + ".want"))(t)
		lines := strings.Split(strings.TrimSpace(string(truth)), "\n")
		w.dir, w.command, _ = strings.Cut(lines[0], " $ ")
		for _, line := range lines[1:] {
			w.believe(t, line)
		}
		all = append(all, w)
	}
	return all
}

// believe takes one line of the truth.
func (w *watched) believe(t *testing.T, line string) {
	t.Helper()
	kind, offset, _ := strings.Cut(line, " ")
	at, err := strconv.Atoi(offset)
	switch {
	case line == "stays":
	case line == "repaired":
		at, err = len(w.output), nil
		fallthrough
	case err == nil && (kind == "run" || kind == "clean" || kind == "broken" || kind == "repaired" || kind == "silent"):
		w.marks = append(w.marks, mark{kind, at})
		for i := range w.faults {
			switch f := &w.faults[i]; {
			case f.repaired != 0:
			case kind == "broken":
				f.broken = at
			case kind == "repaired":
				f.repaired = at
			case kind == "silent":
				f.repaired = never
			}
		}
	default:
		m := faultForm.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%s: %q is no truth", w.name, line)
		}
		f := fault{file: m[2], message: m[5]}
		f.line, _ = strconv.Atoi(m[3])
		f.column, _ = strconv.Atoi(m[4])
		if m[1] != "" {
			f.repaired = never
		}
		w.faults = append(w.faults, f)
	}
}

// is reports whether a problem is the error. Of a test of Go, the file's directory is
// known only once its package has ended.
func (f *fault) is(dir string, p problems.Problem) bool {
	known := strings.TrimPrefix(p.File, dir+"/") == f.file || p.Tool == "go test" && p.File == path.Base(f.file)
	return known && p.Line == f.line && (f.column == 0 || p.Column == f.column) &&
		strings.HasPrefix(p.Message, f.message)
}

// counts are the sums over recordings.
type counts struct{ printed, found, reported, right, repaired, cleared, early int }

func (c *counts) add(d counts) {
	c.printed, c.found, c.reported, c.right = c.printed+d.printed, c.found+d.found, c.reported+d.reported, c.right+d.right
	c.repaired, c.cleared, c.early = c.repaired+d.repaired, c.cleared+d.cleared, c.early+d.early
}

// count feeds a recording line by line, as somebody sees it who always asks.
func (w *watched) count(t *testing.T) (c counts) {
	tr := problems.NewTracker(problems.Builtin(), 0)
	tr.Begin(w.command, w.dir)
	known := map[string]bool{}
	clean := len(w.marks) > 0 && w.marks[0].kind == "clean"
	look := func() {
		for _, p := range tr.Problems(0) {
			text := fmt.Sprintf("%s:%d:%d %s [%s]", p.File, p.Line, p.Column, p.Message, p.Tool)
			if known[text] {
				continue
			}
			known[text] = true
			c.reported++
			right := false
			for i := range w.faults {
				if f := &w.faults[i]; f.is(w.dir, p) {
					right, f.found = true, true
				}
			}
			if right {
				c.right++
			} else {
				t.Logf("%s: not an error of its own: %s", w.name, text)
			}
			if clean {
				c.early++
			}
		}
	}
	at := 0
	marks := append(w.marks, mark{"run", len(w.output)})
	for i, m := range marks {
		for line := range bytes.Lines(w.output[at:m.at]) {
			tr.Write(int64(at), line)
			at += len(line)
			look()
		}
		if m.kind == "run" || marks[i+1] == (mark{"run", m.at}) {
			tr.End() // the command has ended
			look()
		}
		switch m.kind {
		case "clean":
			clean = false
		case "run":
			if i < len(marks)-1 {
				tr.Begin(w.command, w.dir)
			}
		case "broken":
			w.stillThere(t, m.at, tr.Problems(0))
		case "repaired":
			w.countCleared(t, &c, m.at, tr.Problems(0))
		}
	}
	for _, f := range w.faults {
		if c.printed++; f.found {
			c.found++
		} else {
			t.Logf("%s: not found: %s:%d:%d %s", w.name, f.file, f.line, f.column, f.message)
		}
	}
	return c
}

// stillThere takes back that errors were found that are not reported any more before
// their repair.
func (w *watched) stillThere(t *testing.T, at int, now []problems.Problem) {
	for i := range w.faults {
		f := &w.faults[i]
		if f.broken == at && f.found && !slices.ContainsFunc(now, func(p problems.Problem) bool { return f.is(w.dir, p) }) {
			t.Logf("%s: cleared before its repair: %s:%d %s", w.name, f.file, f.line, f.message)
			f.found = false
		}
	}
}

// countCleared counts the errors that were repaired before an offset, given those that
// are still reported there.
func (w *watched) countCleared(t *testing.T, c *counts, at int, left []problems.Problem) {
	for _, f := range w.faults {
		if f.repaired != at {
			continue
		}
		c.repaired++
		if slices.ContainsFunc(left, func(p problems.Problem) bool { return f.is(w.dir, p) }) {
			t.Logf("%s: not cleared: %s:%d %s", w.name, f.file, f.line, f.message)
		} else {
			c.cleared++
		}
	}
}

// The errors of tools are found, with their messages, nothing else is, and they are gone
// after the repair: in the recordings that the matchers were made with, and in those that
// make record-problems makes.
func TestWatchedRuns(t *testing.T) {
	var sum counts
	for _, part := range []struct {
		dir   string
		least int
	}{{"testdata/watched", minWatched}, {"testdata/recorded", minRecorded}} {
		var c counts
		all := watches(t, part.dir)
		for _, w := range all {
			d := w.count(t)
			t.Logf("| %s | %d | %d | %d | %d of %d |", w.name, d.printed, d.found, d.reported-d.right, d.cleared, d.repaired)
			c.add(d)
		}
		if len(all) < part.least {
			t.Errorf("%s: %d recordings, want %d", part.dir, len(all), part.least)
		}
		t.Logf("%s: %d recordings, %+v", part.dir, len(all), c)
		sum.add(c)
	}
	share := func(name string, n, of int, least float64) {
		if got := float64(n) / float64(of); got < least {
			t.Errorf("%s: %d of %d, %.3f, want %.2f", name, n, of, got, least)
		}
	}
	share("found", sum.found, sum.printed, minFound)
	share("right", sum.right, sum.reported, minExact)
	share("cleared", sum.cleared, sum.repaired, minCleared)
	if sum.early > 0 {
		t.Errorf("%d problems in clean starts", sum.early)
	}
}

// A tool that says that it found no errors is believed until it begins again; other lines
// that look like errors are quoted.
func TestSucceeded(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		succeeded    bool
		unrecognised []string
	}{
		{"nothing", "listening on 3000\n", false, nil},
		{"a test run", "ok  \ttether/problems\t1.2s\n", true, nil},
		{"a repaired one", "src/a.ts(1,7): error TS2322: bad\n10:00:00 AM - Found 0 errors. Watching for file changes.\n", true, nil},
		{"a new round", "10:00:00 AM - Found 0 errors. Watching for file changes.\n[10:00:01 AM] File change detected. Starting incremental compilation...\n", false, nil},
		{"an unknown format", "GET / 200 in 3ms\n GET / 500 in 103ms\nfatal: something failed\n", false, []string{"GET / 500 in 103ms", "fatal: something failed"}},
		{"many", "error 1\nerror 2\nerror 3\nerror 4\nerror 5\nerror 6\nerror 6\n", false, []string{"error 2", "error 3", "error 4", "error 5", "error 6"}},
		{"words that are fine", "0 errors, 1 warning\ncopying src/error.ts\nwithout errors\nfailed: 0\n--fail-fast\nterror\n", false, nil},
		{"a known format", "a.c:1:2: error: bad\n", false, nil},
		{"a success before an error", "  VITE v8.3.8  ready in 20 ms\na.c:1:2: error: bad\n", false, nil},
		{"a package among several", "--- FAIL: TestA (0.00s)\n    a_test.go:7: bad\nFAIL\nFAIL\tx/a\t0.1s\nok  \tx/b\t0.1s\n", false, nil},
		{"a sum of known errors", "a.c:1:2: error: bad\ntest x ... FAILED\nbuild failed with 1 error\nlinking failed: odd\n", false, []string{"linking failed: odd"}},
		{"a sum alone", "build failed with 1 error\n", false, []string{"build failed with 1 error"}},
		{"frames of a stack", "a.c:1:2: error: bad\n    at Context.error (file:///v/config.js:31103:14)\n  File \"/p/a.py\", line 3, in raise_error\n\tat x.Errors.fail(Errors.java:12)\n", false, nil},
		{"an unknown one before a success", "error: odd\n[INFO] BUILD SUCCESS\n", true, nil},
	} {
		tr := problems.NewTracker(problems.Builtin(), 0)
		tr.Begin("x", "/p")
		tr.Write(0, []byte(c.text))
		tr.End()
		if got := tr.Unrecognised(); tr.Succeeded() != c.succeeded || !slices.Equal(got, c.unrecognised) {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, tr.Succeeded(), got, c.succeeded, c.unrecognised)
		}
		tr.Begin("y", "/p")
		if tr.Succeeded() || tr.Unrecognised() != nil {
			t.Errorf("%s: the next command has %v, %q", c.name, tr.Succeeded(), tr.Unrecognised())
		}
	}
}
