package roam_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/roam"
)

// surroundings are the sources of a watch. A test changes them between two looks.
type surroundings struct {
	mu     sync.Mutex
	asleep time.Duration
	addrs  []string
	err    error
	seen   []roam.Change

	hook func() // called before each look, if not nil
}

func (s *surroundings) watch(t *testing.T) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		next, stop := roam.GoTicks(ctx, roam.Tick)
		defer stop()
		done <- roam.WatchSources(next, s.slept, s.list, s.note)
	}()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	}
}

func (s *surroundings) slept() time.Duration {
	if s.hook != nil {
		s.hook()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asleep
}

func (s *surroundings) list() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addrs, s.err
}

func (s *surroundings) note(c roam.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, c)
}

// during calls change and returns the changes that are reported within wait after it.
func (s *surroundings) during(change func(), wait time.Duration) []roam.Change {
	s.mu.Lock()
	s.seen = nil
	change()
	s.mu.Unlock()
	time.Sleep(wait)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &surroundings{asleep: time.Hour, addrs: []string{"10.0.0.2/24"}}
		defer s.watch(t)()
		step := func(what string, change func(), want ...roam.Change) {
			t.Helper()
			if seen := s.during(change, 3500*time.Millisecond); !slices.Equal(seen, want) {
				t.Errorf("%s: %v, want %v", what, seen, want)
			}
		}
		step("nothing", func() {})
		step("a nap", func() { s.asleep += time.Second })
		step("sleep", func() { s.asleep += time.Minute }, roam.Woke)
		step("awake", func() {})
		step("another network", func() { s.addrs = []string{"192.0.2.7/24"} }, roam.Moved)
		step("no network", func() { s.addrs = nil }, roam.Moved)
		step("unknown", func() { s.err = errors.New("too many files") })
		step("known, and the same", func() { s.err = nil })
		step("unknown again", func() { s.err = errors.New("too many files") })
		step("known, and another", func() { s.err, s.addrs = nil, []string{"192.0.2.8/24"} }, roam.Moved)
		step("sleep and another network", func() { s.asleep += time.Hour; s.addrs = []string{"10.0.0.2/24"} }, roam.Woke, roam.Moved)
	})
}

// watch looks rarely, so that an idle process hardly uses the battery.
func TestLooksAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looks := &surroundings{}, 0
		s.hook = func() { looks++ }
		defer s.watch(t)()
		s.during(func() {}, 31*time.Second)
		if looks > 11 { // one at the beginning
			t.Errorf("%d looks in 30 s", looks)
		}
	})
}

// While this process is stopped, the clock continues and there are no looks.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &surroundings{}
		stop := make(chan time.Duration, 1)
		s.hook = func() {
			select {
			case d := <-stop:
				time.Sleep(d)
			default:
			}
		}
		defer s.watch(t)()
		seen := s.during(func() { stop <- 10 * time.Second }, 20*time.Second)
		if want := []roam.Change{roam.Woke}; !slices.Equal(seen, want) {
			t.Errorf("%v, want %v", seen, want)
		}
	})
}

// The real sources do not change while nothing happens.
func TestSources(t *testing.T) {
	testkit.Eventually(t, testkit.Patience, "nothing is slept between two calls", func() bool { // each reads two clocks, one after the other
		before := roam.Asleep()
		d := roam.Asleep() - before
		return d > -time.Second && d < time.Second
	})
	first, err := roam.Addresses()
	if err != nil {
		testkit.NotOnWine(t, "it cannot list network adapters: "+err.Error())
		t.Fatal(err)
	}
	again, err := roam.Addresses()
	if err != nil || !slices.Equal(first, again) {
		t.Errorf("addresses %v, then %v, %v", first, again, err)
	}
}

func BenchmarkLook(b *testing.B) {
	for b.Loop() {
		roam.Asleep()
		must.Get(roam.Addresses())(b)
	}
}

// Each system's own ticks repeat, and end with their context.
func TestTicks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now() // before the first tick is set
	next, stop := roam.Ticks(ctx, 20*time.Millisecond)
	defer stop()
	for range 3 {
		must.Do(t, next())
	}
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("three ticks of 20 ms took %v", took)
	}
	cancel()
	for range 2 { // a tick may be there already
		if err := next(); errors.Is(err, context.Canceled) {
			return
		}
	}
	t.Error("ticks go on after their context has ended")
}
