package local_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agent/history"
	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/runs"
	"tether/agent/term"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// remembering serves a history with runs of the person, of agents, and a shell's command.
func remembering(t *testing.T) *world {
	t.Helper()
	h := must.Get(history.Open(history.Options{Dir: filepath.Join(t.TempDir(), "history"), Keep: 24 * time.Hour, MaxBytes: 1 << 30}))(t)
	t.Cleanup(func() { check.OK(t, h.Close()) })
	at := time.Now().Add(-2 * time.Hour).UTC()
	for _, r := range []struct {
		id, name, owner, text string
		code                  int
	}{
		{"pty-build", "build", "user", "compiling\r\n\x1b[31mer\x1b[0mror: no rule\r\nmain.c:3:5: error: bad\r\n", 2},
		{"pty-shell", "shell", "user", "$ make\r\nall is well\r\n$ exit\r\n", 0},
		{"pty-ann", "ann", "agent ann", "ann's error\r\n", 0},
		{"pty-bob", "bob", "agent bob", "bob's error\r\n", 0},
	} {
		at = at.Add(10 * time.Minute)
		run := history.Run{ID: r.id, Terminal: r.id, Name: r.name, Line: "run " + r.name, Dir: rooted("/src/%s", r.name), Owner: r.owner, Started: at, End: -1}
		w := must.Get(h.Terminal(run))(t)
		must.Do(t, w.Append([]byte(r.text), at.Add(time.Second)))
		run.Ended, run.End, run.Exit = at.Add(2*time.Second), w.End(), &vocab.Exit{Code: r.code}
		must.Do(t, w.Finish(run))
	}
	must.Do(t, h.Put(history.Run{ID: "pty-shell.1", Terminal: "pty-shell", Command: 1, Line: "make", Dir: rooted("/src/shell"), Owner: "user", Started: at, Ended: at, Start: 8, End: 21, Exit: &vocab.Exit{}}))
	must.Do(t, h.Sync(t.Context()))
	pool := term.NewPool(term.Options{})
	all := runs.Open(runs.Options{History: h, Access: pool.As(term.User)})
	end := all.Record(context.Background())
	t.Cleanup(func() { end(time.Minute) })
	return serve(t, local.Options{Runs: all}, term.Options{})
}

func listRuns(t *testing.T, c *localclient.Client, o localclient.RunOptions) (ids string, more bool) {
	t.Helper()
	var all []string
	more = must.Get(c.Runs(t.Context(), o, func(r *localapi.Run) { all = append(all, r.ID) }))(t)
	return strings.Join(all, " "), more
}

func TestRunsAreListed(t *testing.T) {
	w := remembering(t)
	for _, c := range []struct {
		as   string
		o    localclient.RunOptions
		want string
		more bool
	}{
		{o: localclient.RunOptions{}, want: "pty-shell.1 pty-bob pty-ann pty-shell pty-build"},
		{o: localclient.RunOptions{Max: 2}, want: "pty-shell.1 pty-bob", more: true},
		{o: localclient.RunOptions{Name: "build"}, want: "pty-build"},
		{o: localclient.RunOptions{Name: "make"}, want: "pty-shell.1"},
		{o: localclient.RunOptions{Name: "pty-shell"}, want: "pty-shell.1 pty-shell"},
		{o: localclient.RunOptions{Dir: rooted("/src/shell")}, want: "pty-shell.1 pty-shell"},
		{o: localclient.RunOptions{Since: time.Now().Add(-85 * time.Minute)}, want: "pty-shell.1 pty-bob"},
		{o: localclient.RunOptions{Name: "none"}},
		{as: "ann", want: "pty-shell.1 pty-ann pty-shell pty-build"},
	} {
		client := w.client
		if c.as != "" {
			client = client.As(c.as)
		}
		if got, more := listRuns(t, client, c.o); got != c.want || more != c.more {
			t.Errorf("%s %+v: got %q, more %v, want %q", c.as, c.o, got, more, c.want)
		}
	}
	must.Get(w.client.Runs(t.Context(), localclient.RunOptions{Name: "build"}, func(r *localapi.Run) {
		if r.Outcome != "failing" || r.Why != "exit status 2" || r.Line != "run build" || r.Cwd != rooted("/src/build") || r.Bytes == 0 {
			t.Errorf("the run is %+v", r)
		}
	}))(t)
}

func TestRunsAreSearched(t *testing.T) {
	w := remembering(t)
	find := func(c *localclient.Client, o localclient.SearchOptions) string {
		var all []string
		end := must.Get(c.Search(t.Context(), o, func(x *localapi.Hit) {
			all = append(all, fmt.Sprintf("%s@%d %q %q", x.Run, x.Offset, append(x.Before, x.Line), x.After))
		}))(t)
		if end.Hits != len(all) || end.Back.IsZero() == end.More {
			t.Errorf("%+v: %+v", o, end)
		}
		return strings.Join(all, "; ")
	}
	for _, c := range []struct {
		as   string
		o    localclient.SearchOptions
		want string
	}{
		{o: localclient.SearchOptions{Pattern: "^error", Context: 1}, want: `pty-build@11 ["compiling" "error: no rule"] ["main.c:3:5: error: bad"]`},
		{o: localclient.SearchOptions{Pattern: "WELL", IgnoreCase: true}, want: `pty-shell.1@0 ["all is well"] []`},
		{o: localclient.SearchOptions{Pattern: "3:5: e", Fixed: true, RunOptions: localclient.RunOptions{Name: "build"}}, want: `pty-build@36 ["main.c:3:5: error: bad"] []`},
		{o: localclient.SearchOptions{Pattern: "'s error"}, want: `pty-bob@0 ["bob's error"] []; pty-ann@0 ["ann's error"] []`},
		{o: localclient.SearchOptions{Pattern: "'s error", RunOptions: localclient.RunOptions{Max: 1}}, want: `pty-bob@0 ["bob's error"] []`},
		{as: "ann", o: localclient.SearchOptions{Pattern: "'s error"}, want: `pty-ann@0 ["ann's error"] []`},
	} {
		client := w.client
		if c.as != "" {
			client = client.As(c.as)
		}
		if got := find(client, c.o); got != c.want {
			t.Errorf("%s %+v: got %s, want %s", c.as, c.o, got, c.want)
		}
	}
}

func TestRunsAreRead(t *testing.T) {
	w := remembering(t)
	for _, c := range []struct {
		ref   string
		lines int
		want  string
	}{
		{"pty-shell.1", 0, "all is well\r\n"}, {"shell", 2, "all is well\r\n$ exit\r\n"}, {"make", 0, "all is well\r\n"}, {"pty-build", 1, "main.c:3:5: error: bad\r\n"},
	} {
		body := must.Get(w.client.RunText(t.Context(), c.ref, c.lines, 0))(t)
		if got := string(must.Get(io.ReadAll(body))(t)); got != c.want {
			t.Errorf("%s: %q, want %q", c.ref, got, c.want)
		}
		check.OK(t, body.Close())
	}
	if l := must.Get(w.client.RunProblems(t.Context(), "build", localclient.ProblemOptions{}))(t); l.Errors != 1 || l.Problems[0].Message != "bad" || !l.Exited {
		t.Errorf("problems: %+v", l)
	}
	if d := must.Get(w.client.RunDigest(t.Context(), "build"))(t); !strings.Contains(d.Text, "main.c:3:5: error: bad") || !strings.Contains(d.Text, "exited with 2") {
		t.Errorf("digest: %s", d.Text)
	}
	for _, ref := range []string{"none", "pty-bob"} {
		if _, err := w.client.As("ann").RunText(t.Context(), ref, 0, 0); !is(err, localapi.CodeNoTerminal) {
			t.Errorf("ann reads %s: %v", ref, err)
		}
	}
}

func is(err error, code localapi.Code) bool {
	e, ok := err.(*localapi.Error)
	return ok && e.Code == code
}

func TestRunsAreForgotten(t *testing.T) {
	w := remembering(t)
	forget := func(r localapi.ForgetRequest) (int, error) {
		n, err := w.client.Forget(t.Context(), r)
		return n.Runs, err
	}
	if _, err := w.client.As("ann").Forget(t.Context(), localapi.ForgetRequest{All: true}); !is(err, localapi.CodeDenied) {
		t.Errorf("an agent forgets: %v", err)
	}
	for _, r := range []localapi.ForgetRequest{{}, {All: true, Runs: []string{"build"}}} {
		if _, err := forget(r); !is(err, localapi.CodeBadRequest) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := forget(localapi.ForgetRequest{Runs: []string{"build", "none"}}); !is(err, localapi.CodeNoTerminal) {
		t.Errorf("an unknown run: %v", err)
	}
	for _, c := range []struct {
		r    localapi.ForgetRequest
		n    int
		left string
	}{
		{localapi.ForgetRequest{Runs: []string{"pty-shell.1"}}, 1, "pty-bob pty-ann pty-shell pty-build"},
		{localapi.ForgetRequest{Before: time.Now().Add(-95 * time.Minute)}, 2, "pty-bob pty-ann"},
		{localapi.ForgetRequest{All: true}, 2, ""},
	} {
		n := must.Get(forget(c.r))(t)
		if left, _ := listRuns(t, w.client, localclient.RunOptions{}); n != c.n || left != c.left {
			t.Errorf("%+v: %d gone, left %q, want %d and %q", c.r, n, left, c.n, c.left)
		}
	}
}

// Whatever is wrong with a request, the answer says so.
func TestRunsAreCompared(t *testing.T) {
	w := remembering(t)
	got := must.Get(w.client.Compare(t.Context(), localclient.RunOptions{Name: "build"}, "pty-shell"))(t)
	if got.Run.Run != "pty-build" || got.With.Run != "pty-shell" || got.Problems.New != 1 || len(got.New) != 1 || got.Lines.Added != 3 || len(got.Removed) != got.Lines.Removed {
		t.Errorf("got %+v", got)
	}
	for _, c := range []struct {
		as, name, with string
		code           localapi.Code
	}{{"ann", "ann", "pty-bob", localapi.CodeNoTerminal}, {"ann", "pty-bob", "pty-shell", localapi.CodeNoTerminal}, {"", "build", "", localapi.CodeBadRequest}} {
		client := w.client
		if c.as != "" {
			client = client.As(c.as)
		}
		if got, err := client.Compare(t.Context(), localclient.RunOptions{Name: c.name}, c.with); !is(err, c.code) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

func TestRunsAreJudged(t *testing.T) {
	w := remembering(t)
	judged := func(client *localclient.Client, names []string, dir string) (all string) {
		for _, v := range must.Get(client.Verdicts(t.Context(), names, dir))(t).Verdicts {
			all += fmt.Sprintf("%s %s, ", v.Newest.Run, v.State)
		}
		return all
	}
	for _, c := range []struct {
		as, dir string
		names   []string
		want    string
	}{
		{names: []string{"pty-build"}, want: "pty-build failing, "},
		{names: []string{"make"}, want: "pty-shell.1 good, "},
		{dir: rooted("/src/bob"), want: "pty-bob good, "},
		{as: "ann", dir: rooted("/src/bob")},
	} {
		client := w.client
		if c.as != "" {
			client = client.As(c.as)
		}
		if got := judged(client, c.names, c.dir); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestRunsRefuse(t *testing.T) {
	w := remembering(t)
	for path, want := range map[string]string{
		"/v1/runs?max=x":                             "max",
		"/v1/runs?since=yesterday":                   "since",
		"/v1/runs?other=1":                           "other",
		"/v1/runs?name=" + strings.Repeat("x", 5000): "5000 bytes",
		"/v1/runs/compare":                           "name is missing",
		"/v1/runs/compare?name=build&other=1":        "other",
		"/v1/runs/compare?name=none":                 "no such run",
		"/v1/runs/compare?name=build&with=pty-none":  `no such run: \"pty-none\"`,
		"/v1/runs/verdict?other=1":                   "other",
		"/v1/runs/verdict?name=build&name=none":      `no such run: \"none\"`,
		"/v1/runs/search":                            "pattern is empty",
		"/v1/runs/search?pattern=a(":                 "missing closing )",
		"/v1/runs/search?pattern=a&context=21":       "context",
		"/v1/runs/search?pattern=a&max=1001":         "max",
		"/v1/runs/search?pattern=a&timeout_ms=-1":    "timeout_ms",
		"/v1/runs/build/output?command=7":            "no command 7",
		"/v1/runs/build/problems?raw=1":              "raw",
		"/v1/runs/..%2f..%2fetc/output":              "no such run",
	} {
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://tether"+path, nil))(t)
		resp := must.Get(w.client.HTTP().Do(r))(t)
		body := must.Get(io.ReadAll(resp.Body))(t)
		resp.Body.Close()
		if resp.StatusCode < 400 || !strings.Contains(string(body), want) {
			t.Errorf("%.60s: %d %s, want %s", path, resp.StatusCode, body, want)
		}
	}
}

// Without a history, the answer says how to turn it on.
func TestNoRunsAreKept(t *testing.T) {
	without := serve(t, local.Options{}, term.Options{})
	if _, err := without.client.Runs(context.Background(), localclient.RunOptions{}, nil); !is(err, localapi.CodeNotFound) || !strings.Contains(err.Error(), "history.keep") {
		t.Errorf("without a history: %v", err)
	}
}
