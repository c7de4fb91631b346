package link

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// writtenTo is a channel to which so much was written.
type writtenTo int64

func (w *writtenTo) Ping(context.Context) error { return nil }
func (w *writtenTo) Written() int64             { return int64(*w) }

// patience is how long a ping may take to a peer that has said nothing since it was sent
// so much.
func patience(limit time.Duration, sent int64) time.Duration {
	var ch writtenTo
	p := Pulse{Limit: limit, Epoch: time.Now(), Channel: &ch}
	p.Note()
	ch = writtenTo(sent)
	return p.timeout()
}

// The wait for a ping grows with the data that may be in transit to a slow client, not
// with all data ever sent.
func TestAPingIsWaitedForWithinReason(t *testing.T) {
	const limit = 30 * time.Second
	if got := patience(limit, 80<<10); got != limit+10*time.Second {
		t.Errorf("behind 80 KiB: %v", got)
	}
	for _, sent := range []int64{1 << 30, 10 << 30, 1 << 40} {
		if got := patience(limit, sent); got < limit || got > time.Hour {
			t.Errorf("after %d bytes: %v", sent, got)
		}
	}
}

// Connections that were heard at different moments are pinged together: an idle host
// sleeps between.
func TestPingsGoOutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 30 * time.Second
		moments := map[time.Duration]bool{}
		for i := range 50 {
			heard := time.Duration(i) * 311 * time.Millisecond // within 16 s
			p := Pulse{Limit: limit, Epoch: time.Now().Add(-heard)}
			due := heard + p.wait(limit)
			if late := due - heard - limit; late < 0 || late >= limit/8 {
				t.Fatalf("heard at %v it is looked at %v too late", heard, late)
			}
			moments[due] = true
		}
		if len(moments) > 6 {
			t.Errorf("50 connections are looked at in %d moments", len(moments))
		}
	})
}
