package notify

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tether/agent/config"
	"tether/internal/deliver"
	"tether/internal/retry"
)

const (
	// giveUp is how long a message is tried.
	giveUp = 24 * time.Hour
	// maxQueue bounds the messages that wait for one receiver. Beyond it, the oldest is
	// dropped.
	maxQueue = 50
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 4 << 10
)

// sender delivers messages to one receiver, one at a time and in order. Its goroutine
// exists only while there are messages.
type sender struct {
	name string
	// try sends a message once.
	try func(context.Context, message) deliver.Result
	// report shows in status what does not work; with "", that it works.
	report func(text string)
	// run starts a goroutine with the context of the package's user; false: it ends.
	run func(func(context.Context)) bool

	mu      sync.Mutex
	queue   []message // the first one is being tried
	busy    bool
	wake    context.CancelFunc // ends the pause before the next attempt; nil: there is none
	dropped int                // messages that were given up since the last one was taken
	failing time.Time          // since when nothing was taken; zero: nothing fails
	last    deliver.Result
}

// put queues a message.
func (s *sender) put(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == maxQueue {
		s.queue = slices.Delete(s.queue, 1, 2) // the first one is being tried
		s.dropped++
	}
	s.queue = append(s.queue, m)
	if !s.busy {
		s.busy = s.run(s.deliver)
	}
	s.reportLocked()
}

// deliver sends what is queued until nothing is left, or ctx ends.
func (s *sender) deliver(ctx context.Context) {
	for try := 0; ; try++ {
		s.mu.Lock()
		for len(s.queue) > 0 && time.Since(s.queue[0].At) >= giveUp {
			s.queue = s.queue[1:]
			s.dropped++
		}
		if len(s.queue) == 0 {
			s.busy = false
			s.reportLocked()
			s.mu.Unlock()
			return
		}
		m, after := s.queue[0], s.last.After
		s.mu.Unlock()
		pause := min(deliver.Pause(try, after), max(giveUp-time.Since(m.At), time.Second))
		if try > 0 && !s.wait(ctx, pause) {
			return
		}
		got := s.try(ctx, m)
		if got.Failure != "" && ctx.Err() != nil {
			return // the next daemon sends it
		}
		if s.note(got) {
			try = -1
		}
	}
}

// wait waits for the next attempt, or for again. It returns false if ctx ends.
func (s *sender) wait(ctx context.Context, pause time.Duration) bool {
	waiting, wake := context.WithCancel(ctx)
	defer wake()
	s.mu.Lock()
	s.wake = wake
	s.mu.Unlock()
	retry.Wait(waiting, pause)
	return ctx.Err() == nil
}

// again ends the pause before the next attempt: the receiver may be another one now.
func (s *sender) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake != nil {
		s.wake()
	}
}

// note records the result for the first message, and reports whether that was taken.
func (s *sender) note(got deliver.Result) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = got
	taken := got.Failure == ""
	switch {
	case taken:
		s.queue, s.dropped, s.failing = s.queue[1:], 0, time.Time{}
	case s.failing.IsZero():
		s.failing = time.Now()
	}
	s.reportLocked()
	return taken
}

// reportLocked tells status what fails.
func (s *sender) reportLocked() {
	if s.failing.IsZero() {
		s.report("")
		return
	}
	text := fmt.Sprintf("%s since %s", failureText(s.last), s.failing.Local().Format("Jan 2 15:04"))
	if n := len(s.queue); n > 0 {
		text += fmt.Sprintf("; messages that wait: %d", n)
	}
	if s.dropped > 0 {
		text += fmt.Sprintf("; given up, after %v or since too many waited: %d", giveUp, s.dropped)
	}
	text += ". Try: tether notify test " + s.name
	if s.name != config.NotifyDesktop {
		text += "; give another URL: tether notify add " + s.name
	}
	s.report(text)
}

// left returns the messages that were not sent.
func (s *sender) left() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue
}

// failureText says why a message was not taken, without anything of the URL.
func failureText(r deliver.Result) string {
	switch {
	case r.Status >= 300 && r.Status < 400:
		return fmt.Sprintf("the receiver redirects (status %d), which is not followed", r.Status)
	case r.Status >= 300:
		return fmt.Sprintf("the receiver answers with status %d", r.Status)
	}
	return map[deliver.Failure]string{
		deliver.Refused: "the receiver cannot be reached",
		deliver.Timeout: "the receiver does not answer in time",
		deliver.TLS:     "the receiver has no valid certificate, or no TLS",
		failureDesktop:  "the desktop shows no notifications, or there is none",
		failureURL:      "the URL cannot be read",
	}[r.Failure]
}
