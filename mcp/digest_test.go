package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// build prints a failing build of 20 MB into a terminal whose log keeps the last
// megabyte, or, with the race detector, 1 MB into one that keeps a quarter of it.
func build(t *testing.T, x *fakeTerminal, errors int) {
	t.Helper()
	const size = 100
	lines := testkit.Load(200_000, 4_000)
	kept := int64(testkit.Load(1<<20, 1<<17))
	var b strings.Builder
	b.WriteString("the very first line\n")
	for n := range lines {
		if n%(lines/errors) == 7 {
			fmt.Fprintf(&b, "src/dir%d/file%d.c:%d:5: error: this is wrong number %d\n", n%3, n%4, n+1, n/(lines/errors))
		}
		fmt.Fprintf(&b, "%-*s\n", size-1, fmt.Sprintf("[%d/%d] cc -Wall -Werror -o obj/file%d.o", n, lines, n))
		if b.Len() > 200_000 || n == lines-1 {
			x.print(strings.ReplaceAll(b.String(), "\n", "\r\n"))
			b.Reset()
			synctest.Wait()
			x.drop(max(x.Info().End-kept, 0))
		}
	}
	x.print("building 10%\rbuilding 99%\rbuild failed\r\nretry\r\nretry\r\nretry\r\nthe very last line\r\n")
	synctest.Wait()
	x.exit(vocab.Exit{Code: 2, Reason: "exited"})
}

func digestOf(t *testing.T, tools *agenttools.Set) string {
	t.Helper()
	r := must.Get(tools.Call(t.Context(), "read_terminal", json.RawMessage(`{"terminalId":"pty-a","format":"digest"}`), agenttools.Caller{}))(t)
	a := r.Answer.(*agenttools.ReadAnswer)
	if len(a.History) > 8<<10 || !a.Exited || a.ExitCode != 2 {
		t.Errorf("%d bytes, exited %t", len(a.History), a.Exited)
	}
	return a.History
}

func TestDigestOfALargeBuild(t *testing.T) {
	for _, c := range []struct {
		name     string
		errors   int
		before   bool // problems were asked for before the build began
		shown    []int
		hidden   []int
		contains []string
	}{
		{"few errors", 40, true, []int{0, 1, 20, 38, 39}, nil, []string{"40 errors, 0 warnings", "--- beginning\nthe very first line\n"}},
		{"many errors", 500, true, []int{0, 19, 495, 499}, []int{20, 300, 494}, []string{"500 errors", "… 475 more errors", "errors by file:\n  src/dir"}},
		{"asked afterwards", 100, false, []int{96, 97, 98, 99}, []int{0, 50}, []string{"nobody looked at "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeTerminals{}
				x := f.add("pty-a", agenttools.OwnerAgent)
				tools := toolsOver(f)
				defer tools.Close()
				if c.before {
					must.Get(tools.Call(t.Context(), "problems", json.RawMessage(`{"terminalId":"pty-a"}`), agenttools.Caller{}))(t)
				}
				build(t, x, c.errors)
				got := digestOf(t, tools)
				for _, n := range c.shown {
					if want := fmt.Sprintf("error: this is wrong number %d\n", n); !strings.Contains(got, want) {
						t.Errorf("%q is not there", want)
					}
				}
				for _, n := range c.hidden {
					if not := fmt.Sprintf("number %d\n", n); strings.Contains(got, not) {
						t.Errorf("%q is there", not)
					}
				}
				for _, want := range append(c.contains, "the terminal has exited with 2", "build failed\nretry  (3 times)\nthe very last line\n") {
					if !strings.Contains(got, want) {
						t.Errorf("%q is not there", want)
					}
				}
				if t.Failed() {
					t.Log(got)
				}
			})
		})
	}
}

// A short output is returned only once, and if there are few problems, each has its
// lines.
func TestDigestOfAShortOutput(t *testing.T) {
	f := &fakeTerminals{}
	x := f.add("pty-a", agenttools.OwnerAgent)
	session := one(t, f)
	x.print("   Compiling app\r\nerror[E0308]: mismatched types\r\n --> src/main.rs:3:5\r\n  |\r\n")
	got := read(t, session, m{"terminalId": "pty-a", "format": "digest"}).History
	want := "[running; 77 bytes of output]\n--- problems: 1 errors, 0 warnings\nsrc/main.rs:3:5: error: mismatched types [E0308]\n" +
		"    | error[E0308]: mismatched types\n    |  --> src/main.rs:3:5\n" +
		"--- end\n   Compiling app\nerror[E0308]: mismatched types\n --> src/main.rs:3:5\n  |\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if text, isError := answer(t, session, "read_terminal", m{"terminalId": "pty-a", "format": "digest", "tail": 3}); !isError {
		t.Errorf("with tail: %s", text)
	}
}

// Without options, the answer says how much was left out.
func TestReadReportsOmittedOutput(t *testing.T) {
	f := &fakeTerminals{}
	x := f.add("pty-a", agenttools.OwnerAgent)
	session := one(t, f)
	x.print(strings.Repeat("a line of output\r\n", 10_000))
	text, _ := answer(t, session, "read_terminal", m{"terminalId": "pty-a"})
	var r agenttools.ReadAnswer
	must.Do(t, json.Unmarshal([]byte(text), &r))
	if !r.Truncated || r.LeftOut < 100_000 || !strings.Contains(r.Hint, "digest") || !strings.Contains(r.Hint, "since 0") {
		t.Errorf("left out %d, %q", r.LeftOut, r.Hint)
	}
}
