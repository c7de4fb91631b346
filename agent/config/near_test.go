package config_test

import (
	"strings"
	"testing"

	"tether/agent/config"
)

func TestDistance(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"abc", "xabc", 1},
		{"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {long, long + "y", 0},
	} {
		if got := config.Distance(c.a, c.b); got != c.want {
			t.Errorf("%.10q to %.10q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"log_bytes", "total_log_bytes", "keep_for", "heartbeat"}
	for s, want := range map[string]string{
		"log_byte": "log_bytes", "logbytes": "log_bytes", "log-bytes": "log_bytes", "hartbeat": "heartbeat",
		"keep": "", "": "", "zzz": "", "LOG_BYTES": "",
	} {
		if got := config.Nearest(s, words); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
