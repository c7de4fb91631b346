package shell_test

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/platform/shell"
)

func TestLine(t *testing.T) {
	argv := shell.Line(`printf '%s|' "a b" $((1+1)) | tr '|' '\n'`)
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if string(out) != "a b\n2\n" || err != nil {
		t.Errorf("%q printed %q, %v", argv, out, err)
	}
}

func TestMerge(t *testing.T) {
	got := shell.Merge([]string{"A=1", "B=2", "A=3"}, []string{"C=", "B=x=y", "C=4"})
	if diff := cmp.Diff([]string{"A=3", "B=x=y", "C=4"}, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}
