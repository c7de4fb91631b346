package problems_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/problems"
)

// Minimum precision and recall over the recorded runs.
const (
	minPrecision = 0.98
	minRecall    = 0.9
	minRuns      = 120
	minClean     = 40 // runs without any problem
)

// recorded is one run of a tool: its output, and the problems that a person found in it.
type recorded struct {
	name, dir, command string
	output             []byte
	want               []string // "file:line severity"
}

// runs reads testdata/runs. The expectations of a run are in NAME.want, or in
// NAME.pipe.want and NAME.pty.want where they differ: a line "DIR $ COMMAND", then one
// line "FILE:LINE SEVERITY" for each problem. A line that begins with # is a remark; a
// tool's own test data is named so there.
func runs(t testing.TB) []recorded {
	t.Helper()
	names := must.Get(filepath.Glob("testdata/runs/*.out"))(t)
	var all []recorded
	for _, name := range names {
		output := must.Get(os.ReadFile(name))(t)
		base := strings.TrimSuffix(name, ".out")
		wanted, err := os.ReadFile(base + ".want")
		if err != nil {
			wanted, err = os.ReadFile(strings.TrimSuffix(base, filepath.Ext(base)) + ".want")
		}
		if err != nil {
			t.Fatalf("%s has no expectations: %v", name, err)
		}
		r := recorded{name: filepath.Base(base), output: output}
		for line := range strings.Lines(string(wanted)) {
			line = strings.TrimSpace(line)
			dir, command, first := strings.Cut(line, " $ ")
			switch {
			case line == "" || line[0] == '#':
			case first && r.dir == "":
				r.dir, r.command = dir, command
			default:
				if !strings.HasPrefix(line, "/") && line[0] != '-' {
					line = filepath.ToSlash(filepath.Join(r.dir, line))
				}
				r.want = append(r.want, line)
			}
		}
		if r.dir == "" {
			t.Fatalf("%s: the expectations name no directory", name)
		}
		all = append(all, r)
	}
	return all
}

// track runs the matchers over pieces of an output.
func (r recorded) track(pieces func([]byte) int) *problems.Tracker {
	tr := problems.NewTracker(problems.Builtin(), 0)
	tr.Begin(r.command, r.dir)
	for at := 0; at < len(r.output); {
		n := min(pieces(r.output[at:]), len(r.output)-at)
		tr.Write(int64(at), r.output[at:at+n])
		at += n
	}
	tr.End()
	return tr
}

func whole(p []byte) int { return len(p) }

func brief(p problems.Problem) string {
	file := p.File
	if file == "" {
		file = "-"
	}
	return fmt.Sprintf("%s:%d %s", filepath.ToSlash(file), p.Line, p.Severity)
}

// A problem is right when its file, its line and its severity are.
func TestRecordedRuns(t *testing.T) {
	all := runs(t)
	found, right, wanted, clean := 0, 0, 0, 0
	for _, r := range all {
		missing := slices.Clone(r.want)
		var wrong []string
		for _, p := range r.track(whole).Problems(0) {
			found++
			if i := slices.Index(missing, brief(p)); i >= 0 {
				right++
				missing = slices.Delete(missing, i, i+1)
				continue
			}
			wrong = append(wrong, fmt.Sprintf("%s [%s] %s", brief(p), p.Tool, p.Message))
		}
		wanted += len(r.want)
		if len(r.want) == 0 {
			clean++
		}
		if len(wrong)+len(missing) > 0 {
			t.Logf("%s: found but not there %q; there but not found %q", r.name, wrong, missing)
		}
	}
	precision, recall := float64(right)/float64(found), float64(right)/float64(wanted)
	t.Logf("%d runs, %d of them without a problem; %d problems found, %d of them right, %d there: precision %.3f, recall %.3f",
		len(all), clean, found, right, wanted, precision, recall)
	if precision < minPrecision || recall < minRecall {
		t.Errorf("precision %.3f, at least %.2f is wanted; recall %.3f, at least %.2f is wanted", precision, minPrecision, recall, minRecall)
	}
	if len(all) < minRuns || clean < minClean {
		t.Errorf("%d runs, %d of them without a problem; at least %d and %d are wanted", len(all), clean, minRuns, minClean)
	}
}
