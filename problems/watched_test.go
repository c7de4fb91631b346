package problems_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/problems"
)

// Minimum shares over the recordings of tools that watch files.
const (
	minFound   = 0.95 // of the printed errors
	minExact   = 0.98 // of what is found is one of them
	minCleared = 0.95 // of the errors that were repaired
	minWatched = 24   // recordings
)

// watched is the recording of a terminal in which files were broken and repaired.
type watched struct {
	name, dir, command string
	output             []byte
	want               []string // "FILE:LINE BEGINNING OF THE MESSAGE"
	repaired           []string // those of want that are gone at the end
}

// watches reads testdata/watched. The truth about NAME.out is in NAME.want: a line "DIR $ COMMAND", a line for each error
// that a reader sees, which begins with "stays: " if it is not repaired, and "repaired" or "stays".
func watches(t *testing.T) (all []watched) {
	t.Helper()
	names, err := filepath.Glob("testdata/watched/*.out")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		w := watched{name: strings.TrimSuffix(filepath.Base(name), ".out")}
		if w.output, err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		truth, err := os.ReadFile(strings.TrimSuffix(name, ".out") + ".want")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(truth)), "\n")
		w.dir, w.command, _ = strings.Cut(lines[0], " $ ")
		for _, line := range lines[1 : len(lines)-1] {
			want, stays := strings.CutPrefix(line, "stays: ")
			w.want = append(w.want, want)
			if !stays && lines[len(lines)-1] == "repaired" {
				w.repaired = append(w.repaired, want)
			}
		}
		all = append(all, w)
	}
	return all
}

// seen feeds a recording line by line, as somebody sees it who always asks, and returns what was reported at any time, and
// at the end.
func (w watched) seen() (ever, left []string) {
	tr := problems.NewTracker(problems.Builtin(), 0)
	tr.Begin(w.command, w.dir)
	known := map[string]bool{}
	at := int64(0)
	look := func() (now []string) {
		for _, p := range tr.Problems(0) {
			text := fmt.Sprintf("%s:%d %s", strings.TrimPrefix(p.File, w.dir+"/"), p.Line, p.Message)
			if now = append(now, text); !known[text] {
				known[text] = true
				ever = append(ever, text)
			}
		}
		return now
	}
	for line := range bytes.Lines(w.output) {
		tr.Write(at, line)
		at += int64(len(line))
		look()
	}
	tr.End()
	return ever, look()
}

// The errors of tools that watch files are found, with their messages, nothing else is, and they are gone after the repair.
func TestWatchedRuns(t *testing.T) {
	all := watches(t)
	wanted, found, reported, right, repaired, cleared := 0, 0, 0, 0, 0, 0
	for _, w := range all {
		ever, left := w.seen()
		matches := func(want string, list []string) bool {
			for _, got := range list {
				if strings.HasPrefix(got, want) {
					return true
				}
			}
			return false
		}
		for _, want := range w.want {
			wanted++
			if matches(want, ever) {
				found++
			} else {
				t.Logf("%s: not found: %s", w.name, want)
			}
			if slices.Contains(w.repaired, want) {
				repaired++
				if !matches(want, left) {
					cleared++
				} else {
					t.Logf("%s: not cleared: %s", w.name, want)
				}
			}
		}
		for _, got := range ever {
			reported++
			if i := strings.IndexByte(got, ' '); i > 0 && w.has(got) {
				right++
			} else {
				t.Logf("%s: not an error of its own: %s", w.name, got)
			}
		}
	}
	share := func(name string, n, of int, least float64) {
		if got := float64(n) / float64(of); got < least {
			t.Errorf("%s: %d of %d, %.3f, want %.2f", name, n, of, got, least)
		} else {
			t.Logf("%s: %d of %d", name, n, of)
		}
	}
	share("found", found, wanted, minFound)
	share("right", right, reported, minExact)
	share("cleared", cleared, repaired, minCleared)
	if len(all) < minWatched {
		t.Errorf("%d recordings, want %d", len(all), minWatched)
	}
}

// has reports whether a problem is one of the errors.
func (w watched) has(got string) bool {
	for _, want := range w.want {
		if strings.HasPrefix(got, want) {
			return true
		}
	}
	return false
}

// A tool that says that it found no errors is believed until it begins again; other lines that look like errors are quoted.
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
