package proc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
		if diff := cmp.Diff(c.without, proc.WithoutTag(c.env)); diff != "" {
			t.Errorf("WithoutTag(%q): (-want +got)\n%s", c.env, diff)
		}
		if diff := cmp.Diff(before, c.env); diff != "" {
			t.Errorf("the argument was changed: (-want +got)\n%s", diff)
		}
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
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("descendants of %d: (-want +got)\n%s", c.root, diff)
		}
	}
}
