package shell_test

import (
	"testing"

	"tether/internal/testkit/check"
	"tether/platform/shell"
)

func TestMerge(t *testing.T) {
	got := shell.Merge([]string{"A=1", "B=2", "A=3"}, []string{"C=", "B=x=y", "C=4"})
	check.Equal(t, "merged", []string{"A=3", "B=x=y", "C=4"}, got)
}
