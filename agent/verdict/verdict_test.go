package verdict_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/agent/verdict"
	"tether/internal/testkit/must"
	"tether/problems"
	"tether/vocab"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// history is a graph of commits: each with its parents. Times count up in the order of
// names.
type history map[string][]string

func (h history) Commit(id string) ([]string, int64, bool) {
	parents, ok := h[id]
	at := int64(0)
	for _, c := range id {
		at = at*10 + int64(c-'0')
	}
	return parents, at, ok
}

// line is a history without branches: 10, 11 and so on.
func line(n int) history {
	h := history{"10": nil}
	for i := 11; i < 10+n; i++ {
		h[fmt.Sprint(i)] = []string{fmt.Sprint(i - 1)}
	}
	return h
}

// runs reads runs, oldest first: COMMIT[+] and how it ended: an exit status, a signal,
// "killed", "lost", "^C", or "runs".
func runs(t *testing.T, text string) []verdict.Run {
	t.Helper()
	var all []verdict.Run
	for i, one := range strings.Split(text, ",") {
		f := strings.Fields(one)
		if len(f) != 2 {
			continue
		}
		r := verdict.Run{ID: fmt.Sprintf("pty-%d", i+1), Started: noon.Add(time.Duration(i) * time.Minute), Exit: &vocab.Exit{Reason: vocab.ExitItself}}
		commit, changes := strings.CutSuffix(f[0], "+")
		if r.Checkout = (&vocab.Checkout{Commit: commit, Changes: vocab.ChangesNo}); changes {
			r.Checkout.Changes = vocab.ChangesYes
		}
		if commit == "-" {
			r.Checkout = nil
		}
		r.Ended = r.Started.Add(time.Second)
		switch how := f[1]; {
		case how == "runs":
			r.Runs, r.Exit, r.Ended = true, nil, time.Time{}
		case how == "lost":
			r.Exit.Code, r.Exit.Reason = -1, vocab.ExitLost
		case how == "killed":
			r.Exit.Code, r.Exit.Signal, r.Exit.Reason = 137, "SIGKILL", vocab.ExitKilled
		case how == "timeout":
			r.Exit.Reason = vocab.ExitIdle
		case how == "unknown":
			r.Exit = nil
		case how == "^C":
			r.Exit.Code, r.Stopped = 1, true
		case strings.HasPrefix(how, "SIG"):
			r.Exit.Code, r.Exit.Signal = 128, how
		default:
			_ = must.Get(fmt.Sscan(how, &r.Exit.Code))(t)
		}
		all = append(all, r)
	}
	return all
}

func judge(runs []verdict.Run, g verdict.Graph) verdict.Verdict {
	runs = slices.Clone(runs)
	slices.Reverse(runs)
	return verdict.Judge(slices.Values(runs), g)
}

func TestOutcome(t *testing.T) {
	for how, want := range map[string]string{
		"0": "good: exit status 0", "1": "failing: exit status 1", "127": "failing: exit status 127",
		"SIGSEGV": "failing: crashed with SIGSEGV", "SIGABRT": "failing: crashed with SIGABRT", "139": "failing: crashed with SIGSEGV", "134": "failing: crashed with SIGABRT",
		"SIGINT": "uncounted: ended by SIGINT", "SIGTERM": "uncounted: ended by SIGTERM", "SIGKILL": "uncounted: ended by SIGKILL", "SIGHUP": "uncounted: ended by SIGHUP",
		"130": "uncounted: ended by SIGINT", "143": "uncounted: ended by SIGTERM", "137": "uncounted: ended by SIGKILL", "3221225786": "uncounted: ended by ^C", "-1073741510": "uncounted: ended by ^C",
		"^C": "uncounted: ended by ^C", "killed": "uncounted: killed", "timeout": "uncounted: ended by its time limit", "lost": "uncounted: its end is not known",
		"unknown": "uncounted: its exit status is not known", "runs": "running: running", "255": "failing: exit status 255",
	} {
		outcome, why := runs(t, "10 "+how)[0].Outcome()
		if got := fmt.Sprintf("%s: %s", outcome, why); got != want {
			t.Errorf("%s is %q, want %q", how, got, want)
		}
	}
}

// show is a verdict in short: the state, since which run, the last good and the first
// failing commit, and how many were not run.
func show(v verdict.Verdict) string {
	s := string(v.State)
	if !v.Since.IsZero() {
		s += fmt.Sprintf(" since %d", int(v.Since.Sub(noon).Minutes())+1)
	}
	if v.Good != nil {
		s += ", good " + v.Good.Commit
	}
	if v.Failing != nil {
		s += ", failing " + v.Failing.Commit
	}
	if v.Untried != nil {
		s += fmt.Sprintf(", %d not run", *v.Untried)
	}
	if v.Running != nil {
		s += ", running " + v.Running.Commit
	}
	if v.Uncounted > 0 {
		s += fmt.Sprintf(", %d not counted", v.Uncounted)
	}
	if len(v.Notes) > 0 {
		s += "; " + strings.Join(v.Notes, "; ")
	}
	return s
}

func TestVerdict(t *testing.T) {
	merged := line(10)
	merged["30"] = []string{"14"} // a side branch of 14
	merged["31"] = []string{"30"}
	merged["40"] = []string{"19", "31"}
	rebased := line(10)
	rebased["23"], rebased["24"] = []string{"12"}, []string{"23"}
	shallow := line(10)
	delete(shallow, "13")
	for _, c := range []struct {
		name, runs string
		graph      verdict.Graph
		want       string
	}{
		{"none", "", line(10), "unknown; there is no run"},
		{"always good", "10 0, 11 0", line(10), "good since 1, good 11"},
		{"broke", "10 0, 11 0, 12 1, 13 2", line(10), "failing since 3, good 11, failing 12, 0 not run"},
		{"commits between were not run", "10 0, 15 1", line(10), "failing since 2, good 10, failing 15, 4 not run"},
		{"without a graph", "10 0, 15 1", nil, "failing since 2, good 10, failing 15"},
		{"without commits", "- 0, - 1", nil, "failing since 2, good , failing "},
		{"mended", "10 0, 11 1, 12 0", line(10), "good since 3, good 12"},
		{"broke again", "10 0, 11 1, 12 0, 13 1, 14 1", line(10), "failing since 4, good 12, failing 13, 0 not run"},
		{"the first run failed", "10 1", line(10), "failing since 1, failing 10; it was never good in the runs that are kept"},
		{"never good", "10 1, 11 2", line(10), "failing since 1, failing 10; it was never good in the runs that are kept"},
		{"changes broke it", "10 0, 10+ 1", line(10), "failing since 2, good 10, failing 10+changes, 0 not run"},
		{"changes broke it and were committed", "10 0, 10+ 1, 11 1", line(10), "failing since 2, good 10, failing 10+changes, 0 not run"},
		{"good with changes, and committed without them", "10 0, 10+ 0, 11 1", line(10), "failing since 3, good 10+changes, failing 11, 0 not run"},
		{"not counted in between", "10 0, 11 ^C, 12 killed, 13 lost", line(10), "good since 1, good 10, 3 not counted"},
		{"not counted at the edge", "10 0, 11 SIGINT, 12 1", line(10), "failing since 3, good 10, failing 12, 1 not run"},
		{"only runs that do not count", "10 killed, 11 ^C", line(10), "unknown, 2 not counted; no run counts; the newest was ended by ^C"},
		{"only one that runs", "10 runs", line(10), "unknown, running 10; no run has ended yet"},
		{"failing while the next one runs", "10 0, 11 1, 12 runs", line(10), "failing since 2, good 10, failing 11, 0 not run, running 12"},
		{"out of order", "10 0, 18 1, 14 1", line(10), "failing since 2, good 10, failing 14, 3 not run"},
		{"bisected by hand, now failing", "10 0, 18 1, 14 0, 16 1", line(10), "failing since 4, good 14, failing 16, 1 not run"},
		{"bisected by hand, now good", "10 0, 18 1, 14 0", line(10), "good since 3, good 14, failing 18, 3 not run; it is good at an older commit than the one that fails"},
		{"bisected to the end", "10 0, 18 1, 14 0, 16 1, 15 0", line(10), "good since 5, good 15, failing 16, 0 not run; it is good at an older commit than the one that fails"},
		{"back to an old commit that fails", "15 0, 12 1", line(10), "failing since 2, good 15, failing 12; the last good commit is newer than the one that fails"},
		{"flaky", "10 0, 11 1, 11 0, 11 1", line(10),
			"failing since 4, good 11, failing 11, 0 not run; flaky, or not decided by the commit alone: 11 was good once and failing 2 times"},
		{"rebased", "14 0, 24 1", rebased, "failing since 2, good 14, failing 24; the last good commit is no known ancestor of the one that fails: the branch was changed or rebased"},
		{"rebased, with an older good one", "11 0, 14 0, 24 1", rebased, "failing since 3, good 11, failing 24, 2 not run"},
		{"merged", "19 0, 40 1", merged, "failing since 2, good 19, failing 40, 2 not run"},
		{"a shallow clone", "11 0, 15 1", shallow, "failing since 2, good 11, failing 15; the last good commit is no known ancestor of the one that fails: the branch was changed or rebased"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(judge(runs(t, c.runs), c.graph)); got != c.want {
				t.Errorf("%s:\n%s, want\n%s", c.runs, got, c.want)
			}
		})
	}
}

// watcher is a run that goes on, with rounds that found so many errors at commits.
func watcher(rounds ...any) verdict.Run {
	r := verdict.Run{ID: "pty-9", Started: noon, Runs: true, Checkout: &vocab.Checkout{Commit: "10", Changes: vocab.ChangesNo}}
	for i := 0; i < len(rounds); i += 2 {
		commit, changes := strings.CutSuffix(rounds[i].(string), "+")
		at := &vocab.Checkout{Commit: commit, Changes: vocab.ChangesNo}
		if changes {
			at.Changes = vocab.ChangesYes
		}
		r.Rounds = append(r.Rounds, verdict.Round{At: noon.Add(time.Duration(i/2) * time.Minute), Checkout: at, Found: verdict.Found{Errors: rounds[i+1].(int)}})
	}
	return r
}

func TestWatcher(t *testing.T) {
	exit := func(r verdict.Run, code int, stopped bool) verdict.Run {
		r.Runs, r.Stopped, r.Ended = false, stopped, noon.Add(time.Hour)
		r.Exit = &vocab.Exit{Code: code, Reason: vocab.ExitItself}
		return r
	}
	ready := func(r verdict.Run, s vocab.ReadyState) verdict.Run { r.Ready = s; return r }
	broken := watcher("10", 0)
	broken.Rounds, broken.Errors = nil, 2
	for _, c := range []struct {
		name string
		run  verdict.Run
		want string
	}{
		{"good", watcher("10", 0, "10+", 0), "good since 1, good 10+changes, running 10"},
		{"broke", watcher("10", 0, "10+", 2, "11", 1), "failing since 2, good 10, failing 10+changes, 0 not run, running 10"},
		{"mended", watcher("10", 0, "10+", 2, "12", 0), "good since 3, good 12, running 10"},
		{"no round yet", watcher(), "unknown, running 10; no run has ended yet"},
		{"is to become ready", ready(watcher("10", 0), vocab.ReadyStarting), "unknown, running 10; no run has ended yet"},
		{"ready", ready(watcher(), vocab.ReadyYes), "good since 1, good 10, running 10"},
		{"ready, and printed errors", ready(broken, vocab.ReadyYes), "failing since 1, failing 10, running 10; it was never good in the runs that are kept"},
		{"not ready in time", ready(watcher(), vocab.ReadyFailed), "failing since 1, failing 10, running 10; it was never good in the runs that are kept"},
		{"ended by ^C", exit(watcher("10", 0, "12", 1), 0, true), "failing since 2, good 10, failing 12, 1 not run"},
		{"quit", exit(watcher("10", 0, "12", 1), 0, false), "failing since 2, good 10, failing 12, 1 not run"},
		{"crashed", exit(watcher("10", 0, "12", 0), 1, false), "failing since 61, good 12, failing 12, 0 not run"},
		{"a build with one round", exit(watcher("10", 3), 0, false), "good since 1, good 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(judge([]verdict.Run{c.run}, line(10))); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s, want\n%s", got, c.want)
			}
		})
	}
}

// Errors that are recognised beside exit status 0 are told.
func TestErrorsBesideSuccess(t *testing.T) {
	all := runs(t, "10 0")
	all[0].Errors = 2
	v := judge(all, nil)
	if v.State != verdict.StateGood || v.Newest.Errors != 2 || !strings.Contains(v.Text(noon), "good, 2 errors printed") {
		t.Errorf("%+v\n%s", v, v.Text(noon))
	}
}

// A verdict is short, whatever was printed.
func TestVerdictIsShort(t *testing.T) {
	all := runs(t, "10 0, 12 1, 13 runs")
	v := judge(all, line(10))
	v.Name, v.Line, v.Dir = strings.Repeat("n", 5000), strings.Repeat("l", 5000), strings.Repeat("d", 5000)
	v.New = &verdict.News{Errors: 5}
	for range 3 {
		v.New.First = append(v.New.First, problems.Problem{Tool: "gcc", File: strings.Repeat("f", 1000), Line: 12, Severity: problems.Error, Message: strings.Repeat("<", 1000), Href: strings.Repeat("h", 900)})
	}
	v.Fit()
	text := must.Get(json.Marshal(v))(t)
	if len(text) > verdict.MaxBytes || len(v.Text(noon)) > verdict.MaxBytes || len(v.New.First) == 0 {
		t.Errorf("it has %d bytes of JSON, and %d of text:\n%s", len(text), len(v.Text(noon)), text)
	}
}

func TestVerdictText(t *testing.T) {
	v := judge(runs(t, "10 0, 15+ 1, 16 runs"), line(10))
	v.Name, v.Dir = "web", "/home/me/app"
	v.New = &verdict.News{Errors: 4, First: []problems.Problem{{File: "/home/me/app/a.c", Line: 3, Severity: problems.Error, Message: "expected ';'"}}}
	want := `web in /home/me/app: failing since 2026-03-04 12:01:00 (exit status 1, run pty-2)
  last good: 10 at 2026-03-04 12:00:00, run pty-1
  first failing: 15+changes at 2026-03-04 12:01:00, run pty-2, exit status 1
  commits between them that were not run: 4
  new since then: 4 errors
    /home/me/app/a.c:3: error: expected ';'
    3 more
  running now: 16 since 2026-03-04 12:02:00, run pty-3
`
	if got := v.Text(noon); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
