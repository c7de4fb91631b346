package holder_test

import (
	"strings"
	"testing"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
)

// Limits apply to the child alone: its holder keeps output that is larger than the
// child's files may be, and serves while the child may open no more files. What could not
// be set is known to who started it.
func TestLimitsOfTheChild(t *testing.T) {
	testkit.Unix(t, "there are no such limits")
	testkit.Leaks(t)
	const script = "umask; ulimit -n; ulimit -f; seq 20000"
	c := spawn(t, options(t), holder.Spec{ID: "x", Command: pty.Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Limits: proc.Limits{Umask: new(0o027), Soft: map[string]int64{"fsize": 0, "nofile": 9}},
	}})
	must.Do(t, c.StreamFrom(0))
	got := strings.ReplaceAll(all(t, c), "\r\n", "\n")
	if !strings.HasPrefix(got, "0027\n9\n0\n1\n2\n") || !strings.HasSuffix(got, "\n20000\n") || c.Faults() != "" {
		t.Errorf("printed %d bytes: %.40q, faults %q", len(got), got, c.Faults())
	}
}
