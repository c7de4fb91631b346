package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/notify"
	"tether/internal/deliver"
)

// answers is a receiver that answers in turn, and in the end always with the last answer.
type answers struct {
	mu   sync.Mutex
	all  []deliver.Result
	took []string
	at   []time.Time
	said string // in status
}

// from makes it answer so from now on.
func (a *answers) from(r deliver.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = []deliver.Result{r}
}

// seen is what a test looks at.
type seen struct {
	took []string
	at   []time.Time
	said string
}

func (a *answers) seen() seen {
	a.mu.Lock()
	defer a.mu.Unlock()
	return seen{slices.Clone(a.took), slices.Clone(a.at), a.said}
}

func (a *answers) report(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = text
}

func (a *answers) try(_ context.Context, m notify.Message) deliver.Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Now())
	got := a.all[0]
	if len(a.all) > 1 {
		a.all = a.all[1:]
	}
	if got.Failure == "" {
		a.took = append(a.took, m.Text)
	}
	return got
}

func text(n int) notify.Message { return notify.Message{Text: fmt.Sprint(n), At: time.Now()} }

var (
	taken = deliver.Result{Status: http.StatusOK}
	never = deliver.Result{Status: http.StatusNotFound, Failure: deliver.HTTP4xx}
)

func run(t *testing.T, a *answers, do func(notify.Sender)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		do(notify.NewSender(ctx, "phone", a.try, a.report))
		cancel()
		synctest.Wait()
	})
}

// A receiver that comes back gets all messages, in order; until then status says what is
// wrong, without the URL.
func TestComesBack(t *testing.T) {
	a := &answers{all: []deliver.Result{{Failure: deliver.Refused}, {Failure: deliver.Timeout}, {Status: 302, Failure: deliver.HTTP4xx}, taken}}
	run(t, a, func(s notify.Sender) {
		s.Put(text(1))
		s.Put(text(2))
		synctest.Wait()
		seen := a.seen()
		if !strings.Contains(seen.said, "cannot be reached since") || !strings.Contains(seen.said, "messages that wait: 2") || !strings.Contains(seen.said, "tether notify test phone") {
			t.Errorf("status says %q", seen.said)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		seen = a.seen()
		if !strings.Contains(seen.said, "does not answer in time") {
			t.Errorf("status says %q", seen.said)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		seen = a.seen()
		if !strings.Contains(seen.said, "redirects") {
			t.Errorf("status says %q", seen.said)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		seen = a.seen()
		if got := strings.Join(seen.took, " "); got != "1 2" || seen.said != "" {
			t.Errorf("it took %q, and status says %q", got, seen.said)
		}
	})
}

// A receiver that asks for a pause gets it.
func TestRetryAfter(t *testing.T) {
	a := &answers{all: []deliver.Result{{Status: 429, Failure: deliver.HTTP4xx, After: 10 * time.Minute}, taken}}
	run(t, a, func(s notify.Sender) {
		s.Put(text(1))
		time.Sleep(time.Hour)
		synctest.Wait()
		seen := a.seen()
		if len(seen.at) != 2 || seen.at[1].Sub(seen.at[0]) != 10*time.Minute {
			t.Errorf("attempts at %v", seen.at)
		}
	})
}

// A receiver that refuses for ever is given up after a day, and status says so until it
// takes a message.
func TestGivesUp(t *testing.T) {
	a := &answers{all: []deliver.Result{never}}
	run(t, a, func(s notify.Sender) {
		s.Put(text(1))
		time.Sleep(notify.GiveUp - time.Minute)
		synctest.Wait()
		if s.Left() != 1 {
			t.Fatal("given up before the day was over")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		seen := a.seen()
		if s.Left() != 0 || !strings.Contains(seen.said, "status 404") || !strings.Contains(seen.said, "given up, after 24h0m0s or since too many waited: 1") {
			t.Errorf("after a day %d wait, and status says %q", s.Left(), seen.said)
		}
		if n := len(seen.at); n < 20 || n > 100 {
			t.Errorf("%d attempts in a day", n)
		}
		a.from(taken)
		s.Put(text(2))
		synctest.Wait()
		seen = a.seen()
		if len(seen.took) != 1 || seen.said != "" {
			t.Errorf("afterwards it took %q, and status says %q", seen.took, seen.said)
		}
	})
}

// What waits is bounded, and the newest stays.
func TestQueue(t *testing.T) {
	a := &answers{all: []deliver.Result{never}}
	run(t, a, func(s notify.Sender) {
		for n := range notify.MaxQueue * 3 {
			s.Put(text(n))
		}
		synctest.Wait()
		seen := a.seen()
		if s.Left() != notify.MaxQueue || !strings.Contains(seen.said, fmt.Sprint("too many waited: ", notify.MaxQueue*2)) {
			t.Errorf("%d wait, and status says %q", s.Left(), seen.said)
		}
		a.from(taken)
		s.Again() // another URL does not wait for the next attempt
		synctest.Wait()
		seen = a.seen()
		if n := len(seen.took); n != notify.MaxQueue || seen.took[n-1] != fmt.Sprint(notify.MaxQueue*3-1) {
			t.Errorf("it took %q", seen.took)
		}
	})
}

// A message that was taken while the daemon ends is not left to the next one.
func TestTakenAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := notify.NewSender(ctx, "phone", func(context.Context, notify.Message) deliver.Result {
			cancel()
			return taken
		}, func(string) {})
		s.Put(text(1))
		synctest.Wait()
		if n := s.Left(); n > 0 {
			t.Errorf("%d are left", n)
		}
	})
}
