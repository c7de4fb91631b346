package pty_test

import (
	"strings"
	"testing"

	"tether/platform/pty"
)

func TestConPTYByVersion(t *testing.T) {
	for _, c := range []struct {
		build         uint32
		has, releases bool
		want          string
	}{
		{26100, true, true, "ConPTY of Windows 10.0.26100, which closes itself"},
		{17763, true, false, "ConPTY of Windows 10.0.17763"},
		{17134, false, false, "Windows 10.0.17134 has no pseudo-consoles; Windows 10 1809 (build 17763) or later is needed"},
		{17134, true, false, "Windows 10.0.17134 has no pseudo-consoles"},
		{19045, false, false, "Windows 10.0.19045 has no pseudo-consoles"},
	} {
		got, err := pty.ConPTY(10, 0, c.build, c.has, c.releases)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("build %d: %q, want %q", c.build, got, c.want)
		}
	}
}

// A system that can start programs has a description of their terminals.
func TestConsole(t *testing.T) {
	what, err := pty.Console()
	if err != nil || what == "" {
		t.Errorf("%q, %v", what, err)
	}
}
