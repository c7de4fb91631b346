package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/check"
)

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, events, want string
	}{
		{"passed tests say nothing", `
			{"Action":"start","Package":"p"}
			{"Action":"run","Package":"p","Test":"A"}
			{"Action":"output","Package":"p","Test":"A","Output":"=== RUN   A\n"}
			{"Action":"output","Package":"p","Test":"A","Output":"chatter\n"}
			{"Action":"pass","Package":"p","Test":"A","Elapsed":0.1}
			{"Action":"output","Package":"p","Output":"PASS\n"}
			{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
			{"Action":"pass","Package":"p"}`,
			"ok  \tp\t0.1s\nno test was skipped\n"},
		{"failed tests say all", `
			{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:7: 1, want 2\n"}
			{"Action":"output","Package":"p","Test":"A","Output":"--- FAIL: A (0.00s)\n"}
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"output","Package":"p","Output":"FAIL\n"}
			{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
			{"Action":"fail","Package":"p"}`,
			"    a_test.go:7: 1, want 2\n--- FAIL: A (0.00s)\nFAIL\tp\t0.1s\nno test was skipped\n"},
		{"skipped tests are named by reason", `
			{"Action":"output","Package":"p","Test":"A","Output":"=== RUN   A\n"}
			{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:7: needs root: really\n"}
			{"Action":"output","Package":"p","Test":"A","Output":"--- SKIP: A (0.00s)\n"}
			{"Action":"skip","Package":"p","Test":"A"}
			{"Action":"skip","Package":"p","Test":"B/sub"}
			{"Action":"output","Package":"p","Test":"D","Output":"    d_test.go:7: needs root: really\n"}
			{"Action":"skip","Package":"p","Test":"D"}
			{"Action":"output","Package":"q","Test":"C","Output":"    c_test.go:7: needs root: really\n"}
			{"Action":"skip","Package":"q","Test":"C"}
			{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}
			{"Action":"skip","Package":"q"}`,
			"skipped: 4\n  needs root: really\n    p A D\n    q C\n  no reason given\n    p B/sub\n"},
		{"slow tests are named, the slowest first", `
			{"Action":"pass","Package":"p","Test":"A","Elapsed":20}
			{"Action":"pass","Package":"p","Test":"B/sub","Elapsed":99}
			{"Action":"pass","Package":"q","Test":"C","Elapsed":99.7}
			{"Action":"pass","Package":"q","Elapsed":200}`,
			"no test was skipped\nslow: 2 took 20 s or longer\n   100 s q C\n    20 s p A\n"},
		{"a panic takes the package down", `
			{"Action":"output","Package":"p","Test":"A","Output":"panic: oh\n"}
			{"Action":"output","Package":"q","Test":"A","Output":"other\n"}
			{"Action":"fail","Package":"p"}`,
			"panic: oh\nno test was skipped\n"},
		{"what does not compile", `
			{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/a.go:1: syntax error\n"}
			{"ImportPath":"p [p.test]","Action":"build-fail"}
			{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
			{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			"p/a.go:1: syntax error\nFAIL\tp [build failed]\nno test was skipped\n"},
	} {
		var out strings.Builder
		r := newReport(&out)
		if err := r.read(strings.NewReader(c.events)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		r.printSkipped()
		r.printSlow()
		check.Equal(t, fmt.Sprintf("%s:", c.name), c.want, out.String())
	}
}

func TestReportRefusesOtherText(t *testing.T) {
	if err := newReport(&strings.Builder{}).read(strings.NewReader("FAIL p\n")); err == nil {
		t.Error("text that is not JSON was accepted")
	}
}

func TestForgivable(t *testing.T) {
	for _, c := range []struct {
		name, events string
		want         []key
		ok           bool
	}{
		{"a test and its parts", `
			{"Action":"fail","Package":"p","Test":"A/b"}
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"output","Package":"p","Output":"FAIL\n"}
			{"Action":"fail","Package":"p"}`, []key{{"p", "A"}}, true},
		{"a race", `
			{"Action":"output","Package":"p","Test":"A","Output":"WARNING: DATA RACE\n"}
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p"}`, []key{{"p", "A"}}, false},
		{"a race in a part", `
			{"Action":"output","Package":"p","Test":"A/b","Output":"WARNING: DATA RACE\n"}
			{"Action":"fail","Package":"p","Test":"A/b"}
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p"}`, []key{{"p", "A"}}, false},
		{"a panic", `
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"output","Package":"p","Test":"B","Output":"panic: oh\n"}
			{"Action":"fail","Package":"p"}`, []key{{"p", "A"}}, false},
		{"a panic of the test itself", `
			{"Action":"output","Package":"p","Test":"A","Output":"--- FAIL: A (0.00s)\n"}
			{"Action":"output","Package":"p","Test":"A","Output":"panic: oh\n"}
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p"}`, []key{{"p", "A"}}, false},
		{"output that a process still holds", `
			{"Action":"pass","Package":"p","Test":"A"}
			{"Action":"output","Package":"p","Output":"*** Test I/O incomplete 1m0s after exiting.\n"}
			{"Action":"fail","Package":"p"}`, []key{{"p", ""}}, true},
		{"no test at all", `
			{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
			{"Action":"fail","Package":"p"}`, nil, false},
		{"one package by a test, one otherwise", `
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p"}
			{"Action":"fail","Package":"q"}`, []key{{"p", "A"}}, false},
	} {
		r := newReport(&strings.Builder{})
		if err := r.read(strings.NewReader(c.events)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got, ok := r.forgivable()
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(key{})); diff != "" || ok != c.ok {
			t.Errorf("%s: %v; (-want +got)\n%s", c.name, ok, diff)
		}
	}
}

func TestAlone(t *testing.T) {
	got := alone(key{"tether/host", "TestA"}, []string{"-race", "-timeout", "10m", "./..."})
	want := []string{"-race", "-timeout", "10m", "-count=1", "-run=^TestA$", "tether/host"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = alone(key{"tether/host", ""}, []string{"-race", "./..."})
	if diff := cmp.Diff([]string{"-race", "-count=1", "tether/host"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"-race", "-count=1", "tether/host"}, alone(key{pkg: "tether/host"}, []string{"-race", "./..."})); diff != "" {
		t.Error(diff)
	}
}
