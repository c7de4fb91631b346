package config_test

import (
	"testing"
	"time"

	"tether/agent/config"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		text string
		want config.Size
		back string
	}{
		{"0B", 0, "0B"}, {"0KiB", 0, "0B"}, {"1B", 1, "1B"}, {"1023B", 1023, "1023B"}, {"1024B", 1024, "1KiB"},
		{"64MiB", 64 << 20, "64MiB"}, {"1.5GiB", 3 << 29, "1536MiB"}, {"1TiB", 1 << 40, "1TiB"}, {"0.5KiB", 512, "512B"},
	} {
		got, err := config.ParseSize(c.text)
		if err != nil || got != c.want || got.String() != c.back {
			t.Errorf("%s: %d, %v, written %s; want %d, written %s", c.text, int64(got), err, got, int64(c.want), c.back)
		}
	}
	for _, text := range []string{"", "B", "MiB", "1", "1MB", "1 MiB", "1mib", "-1MiB", "1e3MiB", "0x1MiB", "infMiB", "NaNB", "0.3B", "1..2KiB", "1_0KiB", "9000000TiB"} {
		if n, err := config.ParseSize(text); err == nil {
			t.Errorf("%q was taken for %d", text, int64(n))
		}
	}
}

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
		back string
	}{
		{"0s", 0, "0s"}, {"500ms", 500 * time.Millisecond, "500ms"}, {"90s", 90 * time.Second, "1m30s"}, {"60s", time.Minute, "1m"},
		{"1h", time.Hour, "1h"}, {"1h30m", 90 * time.Minute, "1h30m"}, {"1h0m5s", time.Hour + 5*time.Second, "1h0m5s"}, {"10s", 10 * time.Second, "10s"},
		{"7d", 7 * 24 * time.Hour, "7d"}, {"24h", 24 * time.Hour, "24h"}, {"1d", 24 * time.Hour, "24h"}, {"48h", 48 * time.Hour, "2d"}, {"1d12h", 36 * time.Hour, "36h"}, {"0d", 0, "0s"},
	} {
		got, err := config.ParseDuration(c.text)
		if err != nil || time.Duration(got) != c.want || got.String() != c.back {
			t.Errorf("%s: %v, %v, written %s; want %v, written %s", c.text, time.Duration(got), err, got, c.want, c.back)
		}
	}
	for _, text := range []string{"", "1", "-1s", "-0s", "1 s", "d", "1d-1h", "-1d", "+1d", "1d1d", "1h1d", "1.5d", "1d1", "70000d", "65000d2000000h", "s"} {
		if d, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q was taken for %v", text, d)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"64MiB", "1.5GiB", "0B", "1e9KiB", "9007199254740993B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := config.ParseSize(s)
		if err != nil {
			return
		}
		if back, err := config.ParseSize(n.String()); err != nil || back != n || n < 0 {
			t.Errorf("%q is %d, which is written %s and read as %d, %v", s, int64(n), n, int64(back), err)
		}
	})
}
