package change

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSignal(t *testing.T) {
	var s Signal
	s.Raise() // nobody waits
	first := s.Next()
	if s.Next() != first || !s.Awaited() {
		t.Error("two who wait for the same change have different channels")
	}
	select {
	case <-first:
		t.Fatal("it is closed before a change")
	default:
	}
	s.Raise()
	<-first
	if s.Awaited() || s.Next() == first {
		t.Error("the next change has the channel of the last one")
	}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards what follows
		var s Signal
		version := uint64(1)
		look := func() (uint64, <-chan struct{}) {
			mu.Lock()
			defer mu.Unlock()
			return version, s.Next()
		}
		change := func(to uint64) {
			mu.Lock()
			defer mu.Unlock()
			version = to
			s.Raise()
		}
		if now, err := Await(t.Context(), 0, look); now != 1 || err != nil {
			t.Errorf("another version: %d, %v", now, err)
		}
		done := make(chan uint64)
		go func() { now, _ := Await(t.Context(), 1, look); done <- now }()
		synctest.Wait()
		change(1) // the same version
		synctest.Wait()
		change(2)
		if now := <-done; now != 2 {
			t.Errorf("after two changes: %d, want 2", now)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if now, err := Await(ctx, 2, look); now != 2 || !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of ctx: %d, %v", now, err)
		}
	})
}

func TestSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]bool{0: true, 300 * time.Millisecond: true, 2 * time.Second: false} {
			begin := time.Now()
			if got := Soon(func() bool { return time.Since(begin) >= after }); got != want {
				t.Errorf("after %v: %v", after, got)
			}
			if took := time.Since(begin); took > max(after, time.Second) {
				t.Errorf("after %v: it took %v", after, took)
			}
		}
	})
}

func TestWake(t *testing.T) {
	c := make(chan struct{}, 1)
	Wake(c)
	Wake(c) // it does not block, and nobody is woken twice
	<-c
	select {
	case <-c:
		t.Error("it was woken twice")
	default:
	}
	Wake(nil) // nobody waits there
}
