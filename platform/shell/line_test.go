package shell_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/platform/shell"
)

func TestMerge(t *testing.T) {
	got := shell.Merge([]string{"A=1", "B=2", "A=3"}, []string{"C=", "B=x=y", "C=4"})
	if diff := cmp.Diff([]string{"A=3", "B=x=y", "C=4"}, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}
