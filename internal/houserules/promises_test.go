package houserules

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// promisePages maps each page that names tests to the smallest number of tests that it
// must name.
var promisePages = map[string]int{"docs/RELIABILITY.md": 50, "docs/SECURITY.md": 30}

// promiseDirs maps the short names of packages in those pages to their directories.
var promiseDirs = map[string]string{"uplink": "agent/uplink", "term": "agent/term", "tether": "cmd/tether", "tether-host": "cmd/tether-host",
	"houserules": "internal/houserules", "display": "cmd/tether/internal/display", "view": "cmd/tether/internal/view", "doctor": "cmd/tether/internal/doctor"}

// A promiseTest is a test that a page names, without the "Test" of its name.
type promiseTest struct{ dir, name string }

var (
	aside    = regexp.MustCompile(`\([^)]*\)`)
	testWord = regexp.MustCompile("`[^`]+`|[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
)

// promised returns the tests in tables whose last column is called "tests". There, the
// name of a package in backquotes precedes its tests, and text in parentheses is ignored.
func promised(page string) (tests []promiseTest) {
	columns := 0 // of the table that the line is in; 0 if it names no tests
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		last := cells[len(cells)-1]
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = 0
			continue
		case strings.TrimSpace(last) == "tests":
			columns = len(cells)
			continue
		case len(cells) != columns:
			continue
		}
		dir := ""
		for _, word := range testWord.FindAllString(aside.ReplaceAllString(last, ""), -1) {
			if name, ok := strings.CutPrefix(word, "`"); ok {
				dir = strings.TrimSuffix(name, "`")
				if long, ok := promiseDirs[dir]; ok {
					dir = long
				}
				continue
			}
			tests = append(tests, promiseTest{dir, word})
		}
	}
	return tests
}

// The tests that the pages name exist.
func TestPromisesHaveTheirTests(t *testing.T) {
	t.Chdir(root)
	there := map[promiseTest]bool{}
	for _, f := range parseTree(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.isTest() {
				there[promiseTest{f.dir(), strings.TrimPrefix(fn.Name.Name, "Test")}] = true
			}
		}
	}
	for path, least := range promisePages {
		page := must.Get(os.ReadFile(path))(t)
		tests := promised(string(page))
		if len(tests) < least {
			t.Errorf("%s: only %d tests are named: %v", path, len(tests), tests)
		}
		for _, p := range tests {
			if !there[p] {
				t.Errorf("%s names Test%s in %q, which is not there", path, p.name, p.dir)
			}
		}
	}
}

func TestPromised(t *testing.T) {
	t.Chdir(root)
	const page = "| promise | tests |\n|---|---|\n| Nothing `is` Lost. | `uplink` OneThing (Not This), TwoThings; `agent/holder` Three; all of them |\n\nNot | This\n" +
		"| promise | level | tests |\n|---|---|---|\n| Nobody | NotThis | `term` Four |\n\n| what | where |\n|---|---|\n| a | NotThis |\n"
	want := []promiseTest{{"agent/uplink", "OneThing"}, {"agent/uplink", "TwoThings"}, {"agent/holder", "Three"}, {"agent/term", "Four"}}
	got := promised(page)
	if len(got) != len(want) {
		t.Fatalf("found %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("found %v, want %v", got[i], want[i])
		}
	}
}
