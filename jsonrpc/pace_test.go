package jsonrpc

import (
	"testing"
	"time"
)

// The window follows the way: on a long one it grows to what the way needs, and on a slow
// one it does not fill the queues.
func TestTheWindowFollowsTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		way        time.Duration // a message takes it, beside its time on the line
		rate       int64         // bytes per second of the line
		least      int64         // bytes per second that are to arrive
		mostQueued time.Duration // that a message waits for the line in the end
	}{
		"long and fast": {50 * time.Millisecond, 1 << 30, 10e6, time.Millisecond},
		"long":          {50 * time.Millisecond, 10 << 20, 7e6, 30 * time.Millisecond},
		"slow":          {20 * time.Millisecond, 2 << 20, 1e6, 40 * time.Millisecond},
		"loopback":      {50 * time.Microsecond, 400 << 20, 200e6, 4 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			type ack struct {
				at  time.Time
				end int64
			}
			var p pacer
			var sent, acked int64
			var acks []ack
			start := time.Unix(1, 0)
			now, free := start, start // free: when the line is free
			var queued time.Duration
			for now.Sub(start) < 5*time.Second {
				for sent+streamMessage-acked <= p.room() {
					if free.Before(now) {
						free = now
					}
					queued = free.Sub(now)
					free = free.Add(time.Second * streamMessage / time.Duration(c.rate))
					sent += streamMessage
					p.left(streamMessage, sent, now, false)
					acks = append(acks, ack{free.Add(c.way), sent})
				}
				next := acks[0]
				acks = acks[1:]
				now = next.at
				p.taken(next.end, next.end-acked, sent-acked, now)
				acked = next.end
			}
			if got := acked / 5; got < c.least {
				t.Errorf("%.1f MB/s arrived, want %.1f: the window is %d", float64(got)/1e6, float64(c.least)/1e6, p.window)
			}
			if queued > c.mostQueued {
				t.Errorf("a message waits %v for the line, want at most %v: the window is %d", queued, c.mostQueued, p.window)
			}
		})
	}
}
