package testkit

import (
	"iter"
	"os"
	"strconv"
	"testing"
	"time"
)

// soakVariable makes tests long. Its value is the time, such as 2m, after which the test
// program starts no optional rounds. scripts/soak.sh runs each test as a program of its
// own and sets the variable to the test's share.
const soakVariable = "TETHER_SOAK"

// started is when that time begins.
var started = time.Now()

// Soaking reports whether this is a long run (make soak), in which a test may be more
// thorough than in make test.
func Soaking() bool { return os.Getenv(soakVariable) != "" }

// Load returns the size of a load, such as a number of machines or bytes: small with the
// race detector and under Wine, otherwise whole. With the race detector everything takes
// ten times as long, and a small load suffices to find a race. Wine shows what differs on
// Windows, which a small load shows, too. make soak and go test without -race take the
// whole load.
func Load(whole, small int) int {
	if (raceDetector || onWine) && !Soaking() {
		return small
	}
	return whole
}

// Rounds yields the numbers of a test's rounds from 0: short rounds, or long rounds in a
// soak (make soak). A soak stops early when its time is over, but does at least short
// rounds, and logs how many it did. Several loops of one test share the time. Range over
// it in the test function itself, where scripts/soak.sh finds it, and outside of synctest
// bubbles, whose time is fake.
//
//	for round := range testkit.Rounds(t, 10, 1000) { … }
func Rounds(t testing.TB, short, long int) iter.Seq[int] {
	t.Helper()
	bound := soakTime(t)
	if bound == 0 {
		return func(yield func(int) bool) {
			for i := 0; i < short && yield(i); i++ {
			}
		}
	}
	return func(yield func(int) bool) {
		began, done := time.Now(), 0 // for the log
		defer func() {
			t.Logf("soak: %s: %d of %d rounds in %v", t.Name(), done, long, time.Since(began).Round(time.Millisecond))
		}()
		for ; done < long && (done < short || time.Since(started) < bound); done++ {
			if !yield(done) {
				return
			}
		}
	}
}

// soakTime returns the time for the rounds of one test; 0 if this is no soak.
func soakTime(t testing.TB) time.Duration {
	t.Helper()
	if !Soaking() {
		return 0
	}
	d, err := time.ParseDuration(os.Getenv(soakVariable))
	if err != nil || d <= 0 {
		t.Fatalf("%s=%q: want a time for each test, such as 2m", soakVariable, os.Getenv(soakVariable))
	}
	return d
}

// Number returns the value of an environment variable, at least 1, or otherwise if the
// variable is not set. Such variables make a test longer than in make test, as make
// test-cluster does.
func Number(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number from 1", variable, text)
	}
	return n
}
