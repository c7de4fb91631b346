//go:build unix

package runs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agent/history"
	"tether/agent/redact"
	"tether/agent/runs"
	"tether/agent/term"
	"tether/agent/verdict"
	"tether/internal/checkout"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// project is a repository whose build is broken and mended.
type project struct {
	name  string
	needs []string          // programs
	files map[string]string // of the first commit
	build string            // a script of sh
	file  string            // that is changed by each commit
	steps []step
}

// step is a commit: what file has then, what the build finds first, and what the
// comparison with the last good run may show besides; "" for a good one.
type step struct{ text, wrong string }

// steps are ten commits: good ones, two breaks, and one that is mended.
func steps(good, bad, worse func(n int) string, wrong, wronger string) []step {
	return []step{
		{good(0), ""}, {good(1), ""}, {bad(2), wrong}, {bad(3), wrong}, {good(4), ""},
		{good(5), ""}, {good(6), ""}, {worse(7), wronger}, {worse(8), wronger}, {good(9), ""},
	}
}

// noise is what each build prints, and what tells nothing.
const noise = "echo \"started at $(date '+%H:%M:%S'), pid $$\"; t=$(mktemp); echo \"log in $t\"; rm $t; echo \"at $(git rev-parse HEAD)\"\n"

func projects(t *testing.T) []project {
	modules, _ := filepath.Abs("../../bin/tools/watchers/node_modules")
	f := fmt.Sprintf
	return []project{
		{"c", []string{"cc"}, map[string]string{"main.c": "int f(void);\nint main(void) { return f(); }\n"},
			noise + "cc -Wall -c main.c -o /dev/null && cc -Wall -c f.c -o /dev/null", "f.c",
			steps(func(n int) string {
				return f("%sint f(void) { int unused; return %d; }\n", strings.Repeat("\n", n), n)
			},
				func(n int) string {
					return f("%sint f(void) { int unused; return %d }\n", strings.Repeat("\n", n), n)
				},
				func(n int) string {
					return f("%sint f(void) { int unused; return gone + %d; }\n", strings.Repeat("\n", n), n)
				},
				"expected ';'", "‘gone’ undeclared|'gone' undeclared|undeclared identifier 'gone'")},
		{"go", []string{"go"}, map[string]string{"go.mod": "module example.test/app\n\ngo 1.21\n", "main.go": "package main\n\nfunc main() { println(f()) }\n"},
			noise + "GOFLAGS=-mod=mod GOWORK=off go build -o /dev/null . && echo built in 1.2s", "f.go",
			steps(func(n int) string { return f("package main\n\nfunc f() int { return %d }\n", n) },
				func(n int) string { return f("package main\n\nfunc f() int { return x + %d }\n", n) },
				func(n int) string { return f("package main\n\nfunc f() string { return %d }\n", n) },
				"undefined: x", "cannot use")},
		{"vite", []string{"node", modules + "/.bin/vite"}, map[string]string{".gitignore": "dist\n", "index.html": `<script type="module" src="/main.js"></script>`, "main.js": "import { f } from './f.js'\nconsole.log(f())\n"},
			noise + modules + "/.bin/vite build --outDir dist", "f.js",
			steps(func(n int) string { return f("export function f() { return %d }\n", n) },
				func(n int) string { return f("import './missing.js'\nexport function f() { return %d }\n", n) },
				func(n int) string { return f("export function g() { return %d }\n", n) },
				"missing.js", "is not exported")},
	}
}

// Real builds, each commit of which is run: the verdict names the commit that broke it,
// and the comparison shows the new problem without what differs in every run.
func TestVerdictOfBuilds(t *testing.T) {
	for _, p := range projects(t) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, need := range append(p.needs, "git") {
				if _, err := exec.LookPath(need); err != nil {
					t.Skipf("%s is missing", need)
				}
			}
			newBench(t, p).all()
		})
	}
}

// bench builds a project in real terminals that are recorded.
type bench struct {
	t    *testing.T
	p    project
	dir  string
	pool *term.Pool
	runs *runs.Runs
}

func newBench(t *testing.T, p project) *bench {
	b := &bench{t: t, p: p, dir: must.Get(filepath.EvalSymlinks(t.TempDir()))(t)}
	b.pool = term.NewPool(term.Options{Outward: must.Get(redact.Compile(redact.Options{Tokens: true}))(t)})
	h := must.Get(history.Open(history.Options{Dir: filepath.Join(t.TempDir(), "history"), Keep: time.Hour, MaxBytes: 256 << 20}))(t)
	b.runs = runs.Open(runs.Options{History: h, Access: b.pool.As(term.User), Checkouts: &checkout.Finder{}})
	stop := b.runs.Record(context.Background())
	t.Cleanup(func() {
		stop(time.Minute)
		check.OK(t, b.pool.Close(context.Background()))
	})
	b.git("init", "-q", "-b", "main")
	for name, text := range p.files {
		b.write(name, text)
	}
	return b
}

func (b *bench) write(name, text string) {
	must.Do(b.t, os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600))
}

func (b *bench) git(args ...string) string {
	b.t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "commit.gpgsign=false"}, args...)...)
	c.Dir = b.dir
	out, err := c.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits a step, and returns the commit as a verdict names it.
func (b *bench) commit(s step) string {
	b.write(b.p.file, s.text)
	b.git("add", ".")
	b.git("commit", "-qm", "next")
	return b.git("rev-parse", "HEAD")[:12]
}

// run builds once.
func (b *bench) run() history.Run {
	b.t.Helper()
	h := must.Get(b.pool.As(term.User).Spawn(term.Spec{Name: "build", Command: []string{"sh", "-c", b.p.build}, Cwd: b.dir, Env: append(os.Environ(), "LC_ALL=C", "NO_COLOR=1")}))(b.t)
	var r history.Run
	testkit.Eventually(b.t, testkit.Patience, "the build is recorded", func() bool {
		r, _ = b.person().Run(string(h.ID()))
		return r.Exit != nil && r.Checkout != nil
	})
	return r
}

func (b *bench) person() runs.View { return b.runs.As(runs.Asker{Actor: term.User}) }

func (b *bench) verdict() verdict.Verdict {
	b.t.Helper()
	all := must.Get(b.person().Verdict(b.t.Context(), "", []string{"build"}))(b.t)
	if len(all) != 1 {
		b.t.Fatalf("%d series", len(all))
	}
	return all[0]
}

// all commits and builds each step.
func (b *bench) all() {
	lastGood, firstFailing := "", ""
	var commits []string
	for n, s := range b.p.steps {
		commit := b.commit(s)
		commits = append(commits, commit)
		b.run()
		v := b.verdict()
		if s.wrong == "" {
			lastGood, firstFailing = commit, ""
			if v.State != verdict.StateGood || v.Good == nil || v.Good.Commit != commit {
				b.t.Errorf("commit %d is good at %s: %s", n, commit, v.Text(time.Now()))
			}
			continue
		}
		if firstFailing == "" {
			firstFailing = commit
		}
		if v.State != verdict.StateFailing || v.Good == nil || v.Good.Commit != lastGood || v.Failing.Commit != firstFailing || v.Untried == nil || *v.Untried != 0 {
			b.t.Errorf("commit %d: %s\nwant good %s, failing %s", n, v.Text(time.Now()), lastGood, firstFailing)
		}
		b.shows(s.wrong, v)
	}
	b.git("checkout", "-q", commits[6])
	b.run()
	b.git("checkout", "-q", commits[8])
	b.run()
	v := b.verdict() // commit 7 was run before
	if v.State != verdict.StateFailing || v.Good.Commit != commits[6] || v.Failing.Commit != commits[7] || v.Untried == nil || *v.Untried != 0 {
		b.t.Errorf("old commits, run again: %s", v.Text(time.Now()))
	}
}

// shows checks that a verdict and a comparison with the last good run show what is wrong,
// and no noise.
func (b *bench) shows(wrong string, v verdict.Verdict) {
	b.t.Helper()
	has := func(text string) bool {
		for one := range strings.SplitSeq(wrong, "|") {
			if strings.Contains(text, one) {
				return true
			}
		}
		return false
	}
	if v.New == nil || v.New.Errors == 0 || !has(fmt.Sprint(v.New.First)) || strings.Contains(fmt.Sprint(v.New.First), "unused") {
		b.t.Errorf("new problems: %+v, want %q", v.New, wrong)
	}
	c := must.Get(b.person().Compare(b.t.Context(), "", "build", ""))(b.t)
	found := false
	for _, p := range c.New {
		found = found || has(p.Message)
	}
	if !found || len(c.Gone) > 0 {
		b.t.Errorf("new %+v, gone %+v, want %q", c.New, c.Gone, wrong)
	}
	shown := texts(c.Added) + texts(c.Removed)
	for _, no := range []string{"started at", "log in", "at " + v.Newest.Commit, "unused variable"} {
		if strings.Contains(shown, no) {
			b.t.Errorf("the comparison shows %q:\n%s", no, shown)
		}
	}
	if !has(texts(c.Added)) || c.With.Commit != v.Good.Commit {
		b.t.Errorf("with %+v, added lines:\n%s", c.With, texts(c.Added))
	}
}

func texts(lines []verdict.Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}
