package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

func TestBehind(t *testing.T) {
	now := time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC)
	ago := func(days int) time.Time { return now.Add(-time.Duration(days) * 24 * time.Hour) }
	for _, c := range []struct {
		name  string
		newer []release
		want  string
	}{
		{"the newest is used", nil, ""},
		{"a newer one is out for 60 days", []release{{"1.1.0", ago(60)}}, ""},
		{"and for 61", []release{{"1.1.0", ago(61)}}, "1.1.0 is out since 2026-01-29"},
		{"the newest is of today, one before it is old", []release{{"1.2.0", ago(0)}, {"1.1.0", ago(61)}}, "the newest is 1.2.0"},
	} {
		if got := behind(c.newer, now); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPinned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, []byte("npm x @a/b@1.2.3 vite@7.1.12 c-d@2.0.1\n  \"@e/f\": \"0.16.0\",\n go install x.org/y@v1.2.3\n"), 0o600))
	got, err := pinned(file)
	if want := []pin{{"@a/b", "1.2.3"}, {"c-d", "2.0.1"}, {"@e/f", "0.16.0"}}; err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestSameOrOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"1.2.3", "1.2.3", true}, {"1.2.3", "1.10.0", true}, {"2.0.0", "1.9.9", false}} {
		if got := sameOrOlder(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}
