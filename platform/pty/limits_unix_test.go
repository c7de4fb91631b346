//go:build linux || darwin

package pty_test

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
)

// limited runs a shell's line with the limits, and returns what it prints and which
// limits it could not have.
func limited(t *testing.T, l proc.Limits, script string) (printed, faults string) {
	t.Helper()
	p := must.Get(pty.Start(pty.Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Limits: l}))(t)
	defer p.Close()
	all, err := io.ReadAll(p)
	check.OK(t, err)
	p.Wait()
	return strings.ReplaceAll(string(all), "\r\n", "\n"), p.Faults()
}

// The limits are the program's alone, and it gets neither other files nor another
// environment for them.
func TestLimits(t *testing.T) {
	testkit.Leaks(t)
	t.Setenv("ODD", "a\xff\nb")
	before := proc.OwnLimits()
	const script = "umask; ulimit -n; ulimit -c; nice; ls /dev/fd | tr -d '\n'; echo; env | sort"
	plain, _ := limited(t, proc.Limits{}, script)
	l := proc.Limits{Umask: new(0o027), Nice: new(min(*before.Nice+1, 19)), Soft: map[string]int64{"nofile": 77, "core": 0}}
	got, faults := limited(t, l, script)
	want := strings.SplitN(plain, "\n", 5)
	want[0], want[1], want[2] = "0027", "77", "0"
	if *before.Nice < 19 {
		want[3] = strconv.Itoa(*before.Nice + 1)
	}
	if faults != "" || got != strings.Join(want, "\n") {
		t.Errorf("printed %q, faults %q; want %q", got, faults, want)
	}
	if after := proc.OwnLimits(); after.String() != before.String() {
		t.Errorf("this process had %s and has %s", before, after)
	}
}

// A soft limit does not get above the hard limit, and that is said.
func TestLimitsAboveTheHardOne(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_CORE, &was); err != nil || was.Max < 4096 {
		t.Skipf("the hard limit of core files is %d, %v", was.Max, err)
	}
	if err := syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{Cur: 0, Max: 4096}); err != nil { // for good, unless this is root
		t.Fatal(err)
	}
	got, faults := limited(t, proc.Limits{Soft: map[string]int64{"core": proc.NoLimit}}, "ulimit -c; ulimit -Hc")
	lines := strings.Fields(got)
	if faults != "the limit core is 4096, the daemon's hard limit" || len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("printed %q, faults %q", got, faults)
	}
}

// A program that prints more than its limit of file sizes has printed all of it.
func TestLimitsDoNotCutOutput(t *testing.T) {
	got, faults := limited(t, proc.Limits{Soft: map[string]int64{"fsize": 0}}, "seq 20000; (echo x >"+t.TempDir()+"/f) 2>/dev/null || echo cut")
	if !strings.Contains(got, "\n20000\n") || !strings.HasSuffix(got, "cut\n") || faults != "" {
		t.Errorf("printed %d bytes, %q at the end, faults %q", len(got), got[max(0, len(got)-20):], faults)
	}
}
