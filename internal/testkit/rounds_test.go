package testkit

import (
	"testing"
	"time"
)

func TestRounds(t *testing.T) {
	cases := []struct {
		name, soak  string
		pause       time.Duration
		short, long int
		want        int
	}{
		{"without a soak", "", 0, 3, 100, 3},
		{"in a soak", "1h", 0, 3, 100, 100},
		{"at the end of its time", "1ms", time.Millisecond, 3, 1 << 30, 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(soakVariable, c.soak)
			n := 0
			defer func(was time.Time) { started = was }(started)
			started = time.Now()
			for i := range Rounds(t, c.short, c.long) {
				if i != n {
					t.Fatalf("round %d, want %d", i, n)
				}
				n++
				<-time.After(c.pause)
			}
			if n != c.want {
				t.Errorf("%d rounds, want %d", n, c.want)
			}
		})
	}
}

func TestRoundsEndWithTheLoop(t *testing.T) {
	for _, soak := range []string{"", "1h"} {
		t.Setenv(soakVariable, soak)
		n := 0
		for range Rounds(t, 5, 5) {
			if n++; n == 2 {
				break
			}
		}
		if n != 2 || Soaking() != (soak != "") {
			t.Errorf("TETHER_SOAK=%q: %d rounds, soaking %t", soak, n, Soaking())
		}
	}
}

func TestLoad(t *testing.T) {
	want := 1000
	if raceDetector || onWine {
		want = 10
	}
	if got := Load(1000, 10); got != want {
		t.Errorf("with the race detector %t, under Wine %t: %d, want %d", raceDetector, onWine, got, want)
	}
}
