package proc_test

import (
	"os"
	"testing"

	"tether/platform/proc"
)

// Where there are user ids, 0 is root; elsewhere no test runs as LocalSystem.
func TestRoot(t *testing.T) {
	if got, want := proc.Root(), os.Geteuid() == 0; got != want {
		t.Errorf("Root() = %t as user %d", got, os.Geteuid())
	}
}
