package proc

import (
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	tail := " 1 7 6 34816 7 4194560 0 0 0 0 1 2 0 0 20 0 1 0 987654 1000 1 18446744073709551615" + strings.Repeat(" 0", 25) + " 140733193388032 0"
	nascent := strings.Replace(tail, "140733193388032", "0", 1)
	for _, c := range []struct {
		line    string
		want    Info
		nascent bool
		ok      bool
	}{
		{"5 (sh) S" + tail, Info{ID: ID{5, 987654}, Parent: 1, Group: 7, Session: 6, TTY: 34816, Front: 7}, false, true},
		{"5 (a b) c) Z" + tail + "\n", Info{ID: ID{5, 987654}, Parent: 1, Group: 7, Session: 6, TTY: 34816, Front: 7, Zombie: true}, false, true},
		{"5 (\n) Z 1) X" + tail, Info{ID: ID{5, 987654}, Parent: 1, Group: 7, Session: 6, TTY: 34816, Front: 7, Zombie: true}, false, true},
		{"5 (sh) R" + nascent, Info{ID: ID{5, 987654}, Parent: 1, Group: 7, Session: 6, TTY: 34816, Front: 7}, true, true},
		{"5 (kworker) I" + strings.Replace(nascent, "4194560", "2097152", 1), Info{ID: ID{5, 987654}, Parent: 1, Group: 7, Session: 6, TTY: 34816, Front: 7}, false, true},
		{"", Info{}, false, false},
		{"5 (sh)", Info{}, false, false},
		{"5 (sh) S 1 2 3", Info{}, false, false},
		{"5 (sh) S" + strings.Replace(tail, "987654", "x", 1), Info{}, false, false},
	} {
		got, nascent, err := parseStat(5, []byte(c.line))
		if c.ok != (err == nil) || c.ok && (got != c.want || nascent != c.nascent) {
			t.Errorf("parseStat(%q) = %+v, %t, %v; want %+v, %t, ok %t", c.line, got, nascent, err, c.want, c.nascent, c.ok)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	tail := ") S 1 7 6 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 42" + strings.Repeat(" 1", 30)
	f.Add([]byte("5 (sh" + tail))
	f.Fuzz(func(t *testing.T, line []byte) {
		// With any name, the numbers after it are the same.
		want, _, errWant := parseStat(5, []byte("5 (sh"+tail))
		got, _, err := parseStat(5, []byte("5 ("+string(line)+tail))
		if err != nil || errWant != nil || got != want {
			t.Errorf("name %q: %+v, %v; want %+v", line, got, err, want)
		}
		_, _, _ = parseStat(5, line)
	})
}

func TestHasEntry(t *testing.T) {
	for _, c := range []struct {
		env  string
		want bool
	}{
		{"", false},
		{"A=1", true},
		{"B=2\x00A=1\x00", true},
		{"B=2\x00A=12\x00", false},
		{"XA=1\x00", false},
		{"\x00\x00A=1", true},
	} {
		if got := hasEntry([]byte(c.env), "A=1"); got != c.want {
			t.Errorf("hasEntry(%q) = %t", c.env, got)
		}
	}
}
