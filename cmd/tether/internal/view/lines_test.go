package view

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/must"
)

func TestTrail(t *testing.T) {
	long := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, shown, then, rest string
		joined                  bool
	}{
		{"nothing shown", "", "abc", "abc", true},
		{"the same", long(0, 1000), long(0, 1000), "", true},
		{"continued", long(0, 1000), long(0, 1010), long(1000, 1010), true},
		{"shorter history", long(0, 1000), long(900, 1010), long(1000, 1010), true},
		{"short text", "abc", "abcdef", "def", true},
		{"less than is remembered", long(0, 1000), long(990, 1000) + "more", "more", true},
		{"a gap", long(0, 1000), long(1500, 2000), long(1500, 2000), false},
		{"a chance match", "........x", "x and so on", "x and so on", false},
	} {
		var tr trail
		for _, line := range strings.SplitAfter(c.shown, "\n") {
			tr.add([]byte(line))
		}
		rest, joined := tr.join([]byte(c.then))
		if string(rest) != c.rest || joined != c.joined {
			t.Errorf("%s: rest %.60q, joined %t; want %.60q, %t", c.name, rest, joined, c.rest, c.joined)
		}
		if len(tr.last) > trailBytes {
			t.Errorf("%s: remembers %d bytes", c.name, len(tr.last))
		}
	}
}

func TestLineView(t *testing.T) {
	var out strings.Builder
	v := &Lines{Out: &out, Title: "t"}
	var before strings.Builder
	for i := range history + 5 {
		fmt.Fprintf(&before, "before %d\n", i)
	}
	must.Do(t, errors.Join(v.Resync(state(before.String())), v.Data([]byte("10%\r20%\r\n\x1b[1mbo")), v.Data([]byte("ld\x1b[0m\nrest")), v.Say("exited 1"),
		v.Data([]byte(strings.Repeat("x", 10_000)+"\n"))))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"[t] before 14", "[t] 20%", "[t] bold", "[t] rest", "[t] ── exited 1"}
	if got := lines[history-1 : len(lines)-1]; !cmp.Equal(got, want) {
		t.Errorf("shown:\n%s", cmp.Diff(want, got))
	}
	if lines[0] != "[t] before 5" {
		t.Errorf("begins with %q", lines[0])
	}
	if last := lines[len(lines)-1]; len(last) != 10_000+len("[t] ") {
		t.Errorf("the long line has %d bytes", len(last))
	}
}
