package proc_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

func TestStricterLimits(t *testing.T) {
	least := proc.Limits{Umask: new(0o022), Nice: new(0), Soft: map[string]int64{"nofile": 1000, "core": proc.NoLimit, "fsize": 0}}
	for _, c := range []struct{ asked, want proc.Limits }{
		{proc.Limits{}, proc.Limits{}},
		{proc.Limits{Umask: new(0), Nice: new(-5)}, proc.Limits{Umask: new(0o022), Nice: new(0)}},
		{proc.Limits{Umask: new(0o007), Nice: new(5)}, proc.Limits{Umask: new(0o027), Nice: new(5)}},
		{proc.Limits{Soft: map[string]int64{"nofile": 1001, "core": proc.NoLimit, "fsize": 1, "cpu": 3}},
			proc.Limits{Soft: map[string]int64{"nofile": 1000, "core": proc.NoLimit, "fsize": 0, "cpu": 3}}},
		{proc.Limits{Soft: map[string]int64{"nofile": proc.NoLimit, "core": 5}}, proc.Limits{Soft: map[string]int64{"nofile": 1000, "core": 5}}},
		{proc.Limits{Soft: map[string]int64{"nofile": 999}}, proc.Limits{Soft: map[string]int64{"nofile": 999}}},
	} {
		before := maps.Clone(c.asked.Soft)
		check.Equal(t, fmt.Sprintf("%s:", c.asked), c.want, c.asked.Stricter(least))
		check.Equal(t, "the caller's map was changed:", before, c.asked.Soft)
		if !c.asked.Without(c.asked).IsZero() {
			t.Errorf("%s differs from itself", c.asked)
		}
	}
	if got := (proc.Limits{Umask: new(0), Nice: new(1), Soft: map[string]int64{"nofile": 1, "core": 0}}).Without(least).String(); got != "umask=000 nice=1 core=0 nofile=1" {
		t.Errorf("what differs: %s", got)
	}
}

func TestLimitsInWords(t *testing.T) {
	testkit.Unix(t, "there are no such limits")
	all := proc.Limits{Umask: new(0o077), Nice: new(-20), Soft: map[string]int64{"nofile": 512, "core": proc.NoLimit}}
	got := must.Get(proc.ParseLimits(all.String()))(t)
	check.Equal(t, fmt.Sprintf("%s:", all), all, got)
	for _, wrong := range []string{"umask=1000", "umask=-1", "umask=8", "nice=20", "nice=-21", "nofile=-2", "nofile", "nofile=9223372036854775808", "nosuch=1", "nice=1;2"} {
		if got, err := proc.ParseLimits(wrong); err == nil {
			t.Errorf("%s became %s", wrong, got)
		}
	}
}

// OwnLimits tells the limit of open files that this process was started with. Go raises
// it.
func TestOwnLimits(t *testing.T) {
	const asked = "PROC_TEST_LIMITS"
	if os.Getenv(asked) != "" {
		os.Stdout.WriteString(proc.OwnLimits().String() + "\n")
		return
	}
	testkit.Unix(t, "there are no such limits")
	c := exec.Command("/bin/sh", "-c", `umask 037; ulimit -Sn 99; exec "$0" -test.run '^TestOwnLimits$'`, os.Args[0])
	c.Env = append(os.Environ(), asked+"=1")
	out := must.Get(c.Output())(t)
	line, _, _ := strings.Cut(string(out), "\n")
	got := must.Get(proc.ParseLimits(line))(t)
	if got.Soft["nofile"] != 99 || *got.Umask != 0o037 || got.Nice == nil || len(got.Soft) < 8 {
		t.Errorf("%s; want umask=037 and nofile=99", got)
	}
}
