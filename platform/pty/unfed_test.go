//go:build linux || darwin

package pty

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/testkit/must"
)

// A standard input without a writer ends after a while, and one with a writer never does.
func TestUnfed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, r, err := newFeed()
		must.Do(t, err)
		defer r.Close()
		defer f.close()
		closed := func() bool {
			synctest.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.closed
		}
		f.within(FeedWait)
		time.Sleep(FeedWait - time.Nanosecond)
		must.Get(f.put(context.Background(), 0, nil, false))(t)
		time.Sleep(time.Hour)
		if closed() {
			t.Error("it has ended although it has a writer")
		}
		f.within(FeedWait)
		time.Sleep(FeedWait - time.Nanosecond)
		f.within(FeedWait) // does not begin again
		if closed() {
			t.Error("it has ended too early")
		}
		time.Sleep(time.Nanosecond)
		if !closed() {
			t.Error("it has not ended")
		}
		if all, err := io.ReadAll(r); len(all) > 0 || err != nil {
			t.Errorf("the program reads %q, %v", all, err)
		}
	})
}
