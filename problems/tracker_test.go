package problems_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tether/internal/literal"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/problems"
)

// found runs the known matchers over an output in /src.
func found(output string) []problems.Problem {
	return recorded{dir: "/src", command: "make", output: []byte(output)}.track(whole).Problems(0)
}

func finds(t *testing.T, output string, want ...string) {
	t.Helper()
	got := []string{}
	for _, p := range found(output) {
		got = append(got, brief(p)+" "+p.Message)
	}
	check.Equal(t, fmt.Sprintf("%q", output), append([]string{}, want...), got)
}

// Tools that are not recorded, as their documents and tests show them.
func TestOtherTools(t *testing.T) {
	for _, c := range []struct{ output, want string }{
		{"Program.cs(3,5): error CS1002: ; expected [/src/app.csproj]\n", "/src/Program.cs:3 error ; expected"},
		{"  /src/A.cs(7,9): warning CS0168: The variable 'e' is declared but never used [/src/app.csproj::TargetFramework=net8.0]\n",
			"/src/A.cs:7 warning The variable 'e' is declared but never used"},
		{"/src/Sources/App/main.swift:4:7: error: cannot find 'x' in scope\n", "/src/Sources/App/main.swift:4 error cannot find 'x' in scope"},
		{"/src/Tests/T.swift:9: error: T.testA : XCTAssertEqual failed: (\"1\") is not equal to (\"2\")\n",
			`/src/Tests/T.swift:9 error T.testA : XCTAssertEqual failed: ("1") is not equal to ("2")`},
		{"a.py:1:8: F401 [*] `os` imported but unused\n", "/src/a.py:1 error `os` imported but unused"},
		{"F401 [*] `os` imported but unused\n --> a.py:1:8\n  |\n1 | import os\n", "/src/a.py:1 error `os` imported but unused"},
		{"e: file:///src/App.kt:3:5 Unresolved reference: x\n", "/src/App.kt:3 error Unresolved reference: x"},
		{"w: /src/App.kt: (3, 5): Variable 'x' is never used\n", "/src/App.kt:3 warning Variable 'x' is never used"},
		{"[ERROR] /src/main/java/A.java:[5,17] incompatible types\n", "/src/main/java/A.java:5 error incompatible types"},
		{"Dockerfile:3\n--------------------\n   1 |     FROM scratch\n   3 | >>> RUN false\n--------------------\n" +
			"ERROR: failed to solve: process \"/bin/sh -c false\" did not complete successfully: exit code: 1\n",
			`/src/Dockerfile:3 error process "/bin/sh -c false" did not complete successfully: exit code: 1`},
		{"app.rb:4:3: W: [Correctable] Lint/UselessAssignment: Useless assignment to variable - `a`.\n",
			"/src/app.rb:4 warning Useless assignment to variable - `a`."},
		{`C:\src\a.ts(3,1): error TS1005: ';' expected.` + "\n", `C:/src/a.ts:3 error ';' expected.`},
		{"lib/x.unknown:12:3: warning: strange thing\n", "/src/lib/x.unknown:12 warning strange thing"},
	} {
		want := filepath.ToSlash(strings.ReplaceAll(c.want, "C:/src/", `C:\src\`)) // as check shows it on each system
		finds(t, c.output, want)
	}
}

// Go names files of a package without its directory in tests, and by the import path in a
// program that was built with -trimpath. Such a file is found, or the problem has no
// wrong one.
func TestGoPackages(t *testing.T) {
	const test = "--- FAIL: TestHalf (0.00s)\n    half_test.go:7: no\nFAIL\nFAIL\texample.com/shop/half\t0.012s\n"
	const panics = "panic: no\n\ngoroutine 1 [running]:\nnet/http.(*Server).Serve()\n\tnet/http/server.go:1 +0x9\nmain.main()\n\texample.com/shop/half/main.go:8 +0x52\n"
	for _, c := range []struct{ dir, command, output, want string }{
		{"/src", "go test ./half", test, "/src/half/half_test.go:7"},
		{"/src", "go test -run=A/B ./half/", test, "/src/half/half_test.go:7"},
		{"/src/other", "go test ../half", test, "/src/half/half_test.go:7"},
		{"/src/half", "go test -v -run TestHalf", test, "/src/half/half_test.go:7"},
		{"/src/x", "go test .", test, "/src/x/half_test.go:7"},
		{"/src/shop", "go test ./...", test, "/src/shop/half/half_test.go:7"},
		{"/src/shop/half", "go test ../...", test, "/src/shop/half/half_test.go:7"},
		{"/src/shop", "make test", test, "/src/shop/half/half_test.go:7"},
		{`C:\src\shop`, "go test ./...", test, `C:\src\shop\half\half_test.go:7`},
		{"/src", "go test ./...", test, "half_test.go:7"},
		{"/src/x", "make test", test, "half_test.go:7"},
		{"/src/x", "go test ./half ./other", test, "half_test.go:7"},
		{"/src/x", "cd half; go test .", test, "half_test.go:7"},
		{"", "go test", test, "half_test.go:7"},
		{"/", "go test ./...", test, "half_test.go:7"},
		{"/src/half", "make test", strings.ReplaceAll(test, "/half\t", "/half/half\t"), "half_test.go:7"},
		{"/src/shop", "make test", strings.ReplaceAll(test, "/half\t", "/../../x\t"), "half_test.go:7"},
		{"/src/shop", "go run ./half", panics, "/src/shop/half/main.go:8"},
		{"/src/x", "go run ./half", panics, ""},
		{"/src/x", "go test", panics, ""},
		{"/src/x", "./shop", strings.ReplaceAll(panics, "example.com", "/build"), "/build/shop/half/main.go:8"},
		{"/src/x", "./shop", strings.ReplaceAll(panics, "\tnet/http", "\t/usr/local/go/src/slices"), ""},
	} {
		got := ""
		for _, p := range (recorded{dir: c.dir, command: c.command, output: []byte(c.output)}).track(whole).Problems(0) {
			got += fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		if got != c.want {
			t.Errorf("%s, in %q: found %q, want %q", c.command, c.dir, got, c.want)
		}
	}
}

// A problem whose package is not known yet is told again when it is.
func TestGoPackageIsToldLater(t *testing.T) {
	tr := problems.NewTracker(problems.Builtin(), 0)
	tr.Begin("go test ./...", "/src/shop")
	begins := "--- FAIL: TestHalf (0.00s)\n    half_test.go:7: no\n"
	tr.Write(0, []byte(begins))
	cursor := tr.Cursor()
	if got := tr.Problems(0); len(got) != 1 || got[0].File != "half_test.go" {
		t.Errorf("at first %+v", got)
	}
	tr.Write(cursor, []byte("FAIL\texample.com/shop/half\t0.012s\n"))
	if got := tr.Problems(cursor); len(got) != 1 || got[0].File != "/src/shop/half/half_test.go" || got[0].Count != 1 {
		t.Errorf("then %+v", got)
	}
	tr.Write(tr.Cursor(), []byte(begins+"FAIL\texample.com/shop/half\t0.012s\n"))
	if got := tr.Problems(0); len(got) != 1 || got[0].Count != 2 {
		t.Errorf("again %+v", got)
	}
	tr.Begin("go test ./half", "")
	tr.Write(tr.Cursor(), []byte(begins+"FAIL\texample.com/shop/half\t0.012s\n"))
	tr.Begin("go test ./half", "")
	if got := tr.Problems(0); len(got) != 0 {
		t.Errorf("when the last command that had it is run again %+v", got)
	}
	tr.Begin("go test ./half", "") // is interrupted before its package is named
	tr.Write(tr.Cursor(), []byte(begins))
	tr.Begin("go test ./other", "")
	tr.Write(tr.Cursor(), []byte("FAIL\texample.com/shop/other\t0.012s\n"))
	if got := tr.Problems(0); len(got) != 1 || got[0].File != "half_test.go" {
		t.Errorf("of the package of another command %+v", got)
	}
}

// Text that nearly looks like a problem is ignored.
func TestNoProblem(t *testing.T) {
	for _, line := range []string{
		"2024/05/01 10:00:00 main.go:12: listening on :8080",
		"12:30:11 error: connection reset",
		"http://localhost:3000: error: none",
		"gcc -Wall -Werror -c error.c warning.c",
		"error: nothing more is known",
		"Downloading warning-1.2.3.tgz: 12:30 left",
		"user@host:22: warning: permanently added the key",
		"main.go:3: [GET] /index.html 200",
		"ok  	example.com/app/error	0.01s",
		"PASS: test_error.py:3",
		"    at the end of the day (see notes.txt:3:4)",
		"Traceback (most recent call last):\nnothing follows",
	} {
		finds(t, line+"\n")
	}
}

// Sequences, progress and moves of the cursor are no part of a problem.
func TestLooksAtText(t *testing.T) {
	want := "/src/a.c:3 error no such thing"
	for _, output := range []string{
		"\x1b[1ma.c:3:1:\x1b[m \x1b[31merror: \x1b[mno such thing\r\n",
		"[1/2] compiling\r[2/2] compiling\r\x1b[Ka.c:3:1: error: no such thing\n",
		"a.c:3:1:\x1b[1Cerror:\x1b[1Cno\x1b[1Csuch\x1b[1Cthing\n",
		"\x1b]8;;file:///src/a.c\x1b\\a.c\x1b]8;;\x1b\\:3:1: error: no such thing\n",
		"progress\x1b[1A\x1b[2Ka.c:3:1: error: no such thing\n",
		"a.c:3:1: error: no such thing", // at the end
	} {
		finds(t, output, want)
	}
	finds(t, "a.c:3:1: error: overwritten\rall is well\n")
}

// The same again is counted.
func TestCounts(t *testing.T) {
	line := "a.c:3:1: error: no\n"
	got := found(line + "b.c:1: warning: x\n" + line + line)
	if len(got) != 2 || got[0].Count != 3 || got[0].First != 0 || got[0].Last != int64(3*len(line)+len("b.c:1: warning: x\n")) || got[1].Count != 1 {
		t.Errorf("got %+v", got)
	}
}

// Problems of a command are cleared when it runs again, those of others are not; a tool
// that watches files clears its own.
func TestClears(t *testing.T) {
	tr := problems.NewTracker(problems.Builtin(), 0)
	at := int64(0)
	write := func(s string) {
		tr.Write(at, []byte(s))
		at += int64(len(s))
	}
	files := func() (all []string) {
		for _, p := range tr.Problems(0) {
			all = append(all, p.File)
		}
		return all
	}
	tr.Begin("make a", "/src")
	write("a.c:1: error: x\n")
	tr.Begin("make b", "/src")
	write("b.c:1: error: x\na.ts(1,2): error TS1: x\n")
	if got := files(); !slices.Equal(got, []string{"/src/a.c", "/src/b.c", "/src/a.ts"}) {
		t.Fatalf("after two commands: %q", got)
	}
	write("10:00:00 AM - File change detected. Starting incremental compilation...\n")
	if got := files(); !slices.Equal(got, []string{"/src/a.c", "/src/b.c"}) {
		t.Errorf("after tsc began anew: %q", got)
	}
	if tr.Cleared() != at {
		t.Errorf("cleared at %d, want %d", tr.Cleared(), at)
	}
	tr.Begin("make a", "/src")
	if got := files(); !slices.Equal(got, []string{"/src/b.c"}) {
		t.Errorf("after the first command ran again: %q", got)
	}
}

// A cursor gets new problems, and those printed again.
// A tracker tells the rounds of watchers, and when one has ended, if lines say that.
func TestRounds(t *testing.T) {
	tr := problems.NewTracker(problems.Builtin(), 0)
	at, was := int64(0), 0
	for _, c := range []struct {
		line string
		want string
	}{
		{"$ tsc -w", "0 false"},
		{"[10:00:01 AM] Starting compilation in watch mode...", "1 true"},
		{"a.ts(1,2): error TS1005: ';' expected.", "1 true"},
		{"[10:00:03 AM] Found 1 error. Watching for file changes.", "1 false"},
		{"[10:00:05 AM] File change detected. Starting incremental compilation...", "2 true"},
		{"[10:00:06 AM] Found 0 errors. Watching for file changes.", "2 false"},
		{"10:00:07 AM [vite] (client) hmr update /src/a.ts", "3 false"},
		{"\x1b[2J\x1b[3J", "4 false"},
	} {
		p := []byte(c.line + "\r\n")
		tr.Write(at, p)
		at += int64(len(p))
		n, began, open := tr.Rounds()
		if got := fmt.Sprint(n, open); got != c.want || n > was && (began > at || began < at-10) {
			t.Errorf("after %q: %s, begun at %d, want %s at %d", c.line, got, began, c.want, at)
		}
		was = n
	}
	tr.Begin("make", "")
	if n, _, open := tr.Rounds(); n != 0 || open {
		t.Errorf("after a new command: %d, %t", n, open)
	}
}

func TestSince(t *testing.T) {
	tr := problems.NewTracker(problems.Builtin(), 100)
	first := "a.c:1: error: x\n"
	tr.Write(100, []byte(first+"b.c:1: err"))
	cursor := tr.Cursor()
	if want := int64(100 + len(first)); cursor != want {
		t.Errorf("cursor %d, want %d: the line has not ended", cursor, want)
	}
	tr.Write(cursor+10, []byte("or: y\n"))
	got := tr.Problems(cursor)
	if len(got) != 1 || got[0].File != "b.c" {
		t.Errorf("since the cursor: %+v", got)
	}
	if all := tr.Problems(0); len(all) != 2 {
		t.Errorf("in all: %+v", all)
	}
}

// A loss ends attempts.
func TestLost(t *testing.T) {
	tr := problems.NewTracker(problems.Builtin(), 0)
	head := "error[E0308]: mismatched types\n --> "
	tr.Write(0, []byte(head))
	tr.Lost(50)
	tr.Write(int64(len(head)+50), []byte("src/main.rs:3:4\n"))
	tr.End()
	if got := tr.Problems(0); len(got) != 0 {
		t.Errorf("over a gap: %+v", got)
	}
	if from, to, lost := tr.Looked(); from != 0 || lost != 50 || to != int64(len(head)+50+16) {
		t.Errorf("looked at %d to %d without %d", from, to, lost)
	}
}

// However much is wrong, no more than MaxProblems are kept: the first and the newest.
func TestBounds(t *testing.T) {
	var b bytes.Buffer
	for i := range problems.MaxProblems + 200 {
		fmt.Fprintf(&b, "f%d.c:1: error: %s\n", i, strings.Repeat("x", 1200))
	}
	r := recorded{dir: "/src", output: b.Bytes()}
	tr := r.track(whole)
	got := tr.Problems(0)
	if len(got) != problems.MaxProblems || tr.Dropped() != 200 || got[0].File != "/src/f0.c" || got[len(got)-1].File != "/src/f1199.c" {
		t.Errorf("%d problems, %d dropped, from %s to %s", len(got), tr.Dropped(), got[0].File, got[len(got)-1].File)
	}
	for _, p := range got {
		if len(p.Message) > 1000 {
			t.Fatalf("a message of %d bytes", len(p.Message))
		}
	}
	finds(t, strings.Repeat("y", 1<<17)+"\na.c:1: error: x\n", "/src/a.c:1 error x")
	finds(t, "a.c:99999999999999999999: error: x\n", "/src/a.c:0 error x")
}

func TestResolve(t *testing.T) {
	for _, c := range [][3]string{
		{"/src", "a.c", "/src/a.c"}, {"/src", "./b/../a.c", "/src/a.c"}, {"/src", "/x/a.c", "/x/a.c"}, {"", "a.c", "a.c"},
		{"/src", "file:///x/a.c", "/x/a.c"}, {`C:\src`, `a\b.c`, `C:\src\a\b.c`}, {`C:\src`, "a/b.c", `C:\src\a\b.c`},
		{"/src", "file:///C:/x/a.c", "C:/x/a.c"}, {`C:\src`, `D:\x.c`, `D:\x.c`}, {`\\box\share`, "a.c", `\\box\share\a.c`}, {"/src", "", ""},
	} {
		if got := problems.Resolve(c[0], c[1]); got != c[2] {
			t.Errorf("%q seen from %q is %q, want %q", c[1], c[0], got, c[2])
		}
	}
}

// Any division of the stream gives the same.
func TestDivision(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range runs(t) {
		want := r.track(whole)
		for range testkit.Load(3, 1) {
			got := r.track(func([]byte) int { return 1 + random.IntN(1+random.IntN(200)) })
			same(t, r.name, want, got)
		}
	}
}

func same(t *testing.T, name string, want, got *problems.Tracker) {
	t.Helper()
	if diff := cmp.Diff(want.Problems(0), got.Problems(0), cmpopts.IgnoreUnexported(problems.Problem{})); diff != "" {
		t.Errorf("%s, divided (-whole +divided):\n%s", name, diff)
	}
	if want.Cleared() != got.Cleared() || want.Cursor() != got.Cursor() || want.Dropped() != got.Dropped() {
		t.Errorf("%s, divided: cleared %d, cursor %d, dropped %d; want %d, %d, %d", name,
			got.Cleared(), got.Cursor(), got.Dropped(), want.Cleared(), want.Cursor(), want.Dropped())
	}
}

// FuzzTracker holds that any division gives the same, and that fields are bounded and
// stand in the output.
func FuzzTracker(f *testing.F) {
	for _, r := range runs(f) {
		if len(r.output) < 3000 {
			f.Add(r.output, uint64(len(r.output)))
		}
	}
	f.Add([]byte("a.c:1: error: x\r\n\x1b[31mb\b.c:1: error\r: x"), uint64(7))
	f.Fuzz(func(t *testing.T, output []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := recorded{command: "x", output: output}
		want := r.track(whole)
		same(t, fmt.Sprintf("%q", output), want, r.track(func([]byte) int { return 1 + random.IntN(9) }))
		for _, p := range want.Problems(0) {
			if p.First < 0 || p.First >= p.Last || p.Last > int64(len(output)) || p.Line < 0 || p.Count < 1 || len(p.File) > 1000 || len(p.Message) > 1000 {
				t.Errorf("%q: %+v", output, p)
			}
		}
	})
}

// No line that a matcher's first pattern matches is passed over by the search for
// literals.
func TestLiteralsMissNothing(t *testing.T) {
	set := problems.Builtin()
	patterns := set.FirstPatterns()
	n, every := 0, testkit.Load(1, 12)
	for _, r := range runs(t) {
		for line := range bytes.Lines(r.output) {
			if n++; n%every > 0 {
				continue
			}
			line = bytes.TrimRight(line, "\r\n")
			candidates := set.Candidates(line)
			for i, re := range patterns {
				if re.Match(line) && !slices.Contains(candidates, uint16(i)) {
					t.Errorf("%q matches %s but is no candidate", line, re)
				}
			}
		}
	}
}

// Every matcher of a known tool demands some literal, so that plain lines cost little.
func TestKnownMatchersHaveLiterals(t *testing.T) {
	for _, m := range problems.Known() {
		first := m.Succeeds
		if m.Background != nil {
			first = m.Background.Begins // of a matcher without patterns
		}
		if len(m.Patterns) > 0 {
			first = m.Patterns[0].Regexp
		}
		if literal.Required(first, false) == nil {
			t.Errorf("%s: %s demands no literal", m.Name, first)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	ok := problems.Pattern{Regexp: `^(.+):(\d+): (.+)$`, File: 1, Line: 2, Message: 3}
	with := func(change func(*problems.Pattern)) problems.Matcher {
		p := ok
		change(&p)
		return problems.Matcher{Owner: "x", Patterns: []problems.Pattern{p}}
	}
	for want, m := range map[string]problems.Matcher{
		"owner is missing":                {Patterns: []problems.Pattern{ok}},
		"pattern is missing":              {Owner: "x"},
		"severity \"bad\" must be":        {Owner: "x", Severity: "bad", Patterns: []problems.Pattern{ok}},
		"the syntax is RE2's":             with(func(p *problems.Pattern) { p.Regexp = "(?=x)" }),
		"file is group 4, but":            with(func(p *problems.Pattern) { p.File = 4 }),
		"no pattern has a file":           with(func(p *problems.Pattern) { p.File = 0 }),
		"no pattern has a message":        with(func(p *problems.Pattern) { p.Message = 0 }),
		"no pattern has a line":           with(func(p *problems.Pattern) { p.Line = 0 }),
		"skip 201 is out of range":        with(func(p *problems.Pattern) { p.Skip = 201 }),
		"regexp has 2001 bytes":           with(func(p *problems.Pattern) { p.Regexp = strings.Repeat("x", 2001) }),
		"kind \"odd\" must be":            with(func(p *problems.Pattern) { p.Kind = "odd" }),
		"21 patterns, at most 20":         {Owner: "x", Patterns: slices.Repeat([]problems.Pattern{ok}, 21)},
		"package has no group":            {Owner: "x", Patterns: []problems.Pattern{ok}, Package: "x"},
		"beginsPattern: error parsing re": {Owner: "x", Patterns: []problems.Pattern{ok}, Background: &problems.Background{Begins: "("}},
	} {
		if _, err := problems.Compile(m); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "problem matcher 1") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The person's own matchers win.
func TestWith(t *testing.T) {
	set := must.Get(problems.With([]problems.Matcher{{Owner: "mine", Severity: "info",
		Patterns: []problems.Pattern{{Regexp: `^(\S+\.c):(\d+): error: (.+)$`, File: 1, Line: 2, Message: 3}}}}))(t)
	tr := problems.NewTracker(set, 0)
	tr.Write(0, []byte("a.c:1: error: x\nb.h:1: error: x\n"))
	got := tr.Problems(0)
	if len(got) != 2 || got[0].Tool != "mine" || got[0].Severity != problems.Info || got[1].Tool != "gcc" {
		t.Errorf("got %+v", got)
	}
}

// Bars read as they do at each other interface. Tabs stay, because expressions tell them
// from blanks.
func TestBars(t *testing.T) {
	set := must.Get(problems.Compile(problems.Matcher{Owner: "x", Patterns: []problems.Pattern{{Regexp: `^(.*\S.*)$`, Kind: "file", File: 1, Message: 1}}}))(t)
	for _, b := range testkit.Bars {
		tr := problems.NewTracker(set, 0)
		want, found := map[string]bool{}, map[string]bool{}
		for line := range strings.SplitSeq(b.Text, "\n") {
			want[strings.Join(strings.Fields(line), " ")] = true
		}
		delete(want, "")
		look := func() { // as somebody who always asks: what a screen had that is cleared is none later
			for _, p := range tr.Problems(0) {
				found[strings.Join(strings.Fields(p.Message), " ")] = true
			}
		}
		for i := range len(b.Output) {
			tr.Write(int64(i), []byte{b.Output[i]})
			look()
		}
		tr.End()
		look()
		for line := range found {
			if !want[line] && line != "Determining test suites to run..." {
				t.Errorf("%s: %q is not in %q", b.Name, line, b.Text)
			}
			delete(want, line)
		}
		if len(want) > 0 {
			t.Errorf("%s: without %v", b.Name, want)
		}
	}
}

// Each daemon has a tracker for each terminal, and most output is plain.
func TestPlainOutputCompilesNothing(t *testing.T) {
	var used []string
	tr := problems.NewTracker(problems.Noting(func(owner string) { used = append(used, owner) }), 0)
	tr.Begin("sh", "/w")
	text := "$ ls\r\nREADME  src  package-lock\r\nline 1\r\nline 2\r\n12:00:01 GET /index 200 3 ms\r\nhello, world\r\n"
	tr.Write(0, []byte(text))
	tr.End()
	if len(used) > 0 {
		t.Errorf("compiled the matchers of %v", used)
	}
	tr.Write(int64(len(text)), []byte("src/a.ts(1,2): error TS2304: Cannot find name 'x'.\n"))
	if got := tr.Problems(0); len(got) != 1 || !slices.Contains(used, "tsc") || len(used) > 12 {
		t.Errorf("problems %v with the matchers of %v, want one by few", got, used)
	}
}

func TestKnownMatchersCompile(t *testing.T) {
	if _, err := problems.Compile(problems.Known()...); err != nil {
		t.Error(err)
	}
}
