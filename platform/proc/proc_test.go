package proc_test

import (
	"fmt"
	"testing"

	"tether/internal/testkit/check"
	"tether/platform/proc"
)

func TestTags(t *testing.T) {
	if got := proc.Tag("pty-1"); got != "TETHER_TERMINAL=pty-1" {
		t.Errorf("Tag = %q", got)
	}
	for _, c := range []struct {
		env     []string
		tag     string
		without []string
	}{
		{nil, "", nil},
		{[]string{"A=1", "TETHER_TERMINALS=x", "XTETHER_TERMINAL=x"}, "", []string{"A=1", "TETHER_TERMINALS=x", "XTETHER_TERMINAL=x"}},
		{[]string{"TETHER_TERMINAL=a", "B=2", "TETHER_TERMINAL=b"}, "TETHER_TERMINAL=b", []string{"B=2"}}, // the last one counts
		{[]string{"TETHER_TERMINAL="}, "TETHER_TERMINAL=", []string{}},
	} {
		before := append([]string(nil), c.env...)
		if got := proc.FindTag(c.env); got != c.tag {
			t.Errorf("FindTag(%q) = %q, want %q", c.env, got, c.tag)
		}
		check.Equal(t, fmt.Sprintf("WithoutTag(%q):", c.env), c.without, proc.WithoutTag(c.env))
		check.Equal(t, "the argument was changed:", before, c.env)
	}
}

func TestDescendants(t *testing.T) {
	row := func(pid, parent int) proc.Info { return proc.Info{ID: proc.ID{Pid: pid}, Parent: parent} }
	all := []proc.Info{row(0, 0), row(1, 0), row(9, 5), row(5, 1), row(6, 5), row(7, 6), row(8, 1), row(20, 21), row(21, 20)}
	for _, c := range []struct {
		root int
		want []int
	}{
		{5, []int{9, 6, 7}},
		{8, nil},
		{99, nil},
		{20, []int{21}}, // a circle, as two readings of a changing table may show
	} {
		var got []int
		for _, p := range proc.Descendants(all, c.root) {
			got = append(got, p.Pid)
		}
		check.Equal(t, fmt.Sprintf("descendants of %d:", c.root), c.want, got)
	}
}
