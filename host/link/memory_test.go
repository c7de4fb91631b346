package link

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A long message has 30 s to arrive, and again as long if it is very long.
func TestLongMessagesArriveInTime(t *testing.T) {
	for _, c := range []struct {
		after          time.Duration
		veryLong, late bool
	}{{29 * time.Second, false, false}, {31 * time.Second, false, true}, {29 * time.Second, true, false}, {31 * time.Second, true, true}} {
		synctest.Test(t, func(t *testing.T) {
			in := NewMemory(30 * time.Second).NewReceiver("m")
			var late atomic.Bool
			in.Late = func() { late.Store(true) }
			defer in.Release()
			_ = in.Reserve(t.Context(), 128<<10)
			time.Sleep(c.after)
			if c.veryLong {
				_ = in.Reserve(t.Context(), 1<<20)
				time.Sleep(c.after)
			}
			in.Arrived()
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := late.Load(); got != c.late {
				t.Errorf("after %v, very long %v: it is too late: %v", c.after, c.veryLong, got)
			}
		})
	}
}

// Whoever waits for many bytes delays nobody but later messages of the same name.
func TestNobodyWaitsBehindAnothersLargeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 60)
		got := make(chan string, 4)
		take := func(name string, n int) {
			go func() {
				if b.Take(t.Context(), name, n) == nil {
					got <- fmt.Sprint(name, n)
				}
			}()
			synctest.Wait()
		}
		take("a", 60)
		take("b", 50)
		take("c", 20)
		take("b", 5)
		if first, second := <-got, <-got; first != "a60" || second != "c20" || len(got) > 0 {
			t.Errorf("%s and %s got bytes, and %d more", first, second, len(got))
		}
		b.Give("a", 60)
		synctest.Wait()
		if len(got) != 2 {
			t.Errorf("%d of two got bytes", len(got))
		}
	})
}
