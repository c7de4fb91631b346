package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/doctor"
	"tether/platform/dirs"
)

// A command that stays connected to the daemon goes on waiting when that does not answer: it may be stopped or swapped out. It says so on
// standard error, and when the daemon answers again. Other commands fail, see local.SilentError.

// signEvery is how often a command that is connected looks for a sign of life of the daemon.
const signEvery = 5 * time.Second

// silence returns a function to call when the daemon stops answering and when it answers again, from any goroutine and any number of times.
func silence(notice func(format string, args ...any)) func(silent bool) {
	var mu sync.Mutex
	var said bool
	return func(silent bool) {
		mu.Lock()
		defer mu.Unlock()
		if silent == said {
			return
		}
		said = silent
		if !silent {
			notice("the daemon answers again")
			return
		}
		fix := "see tether logs"
		if d, err := dirs.Get(); err == nil {
			fix = doctor.StuckFix(d)
		}
		notice("the daemon does not answer; still waiting. To recover: %s", fix)
	}
}

// whileConnected looks for signs of life until stop is called, for streams on which nothing need come. busy, if not nil, says whether
// anything is waited for at all.
func whileConnected(ctx context.Context, client *localclient.Client, say func(silent bool), busy func() bool) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		silent := false
		for {
			select {
			case <-time.After(signEvery):
			case <-ctx.Done():
				return
			}
			if !silent && busy != nil && !busy() {
				continue
			}
			if alive := client.Alive(ctx); alive == silent && ctx.Err() == nil {
				silent = !alive
				say(silent)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

const (
	// listTimeout is how long the daemon may take to list terminals, also where looking for ports takes seconds.
	listTimeout = 10 * time.Second
	// makeWayTimeout is how long it may take to leave its terminals to another.
	makeWayTimeout = 20 * time.Second
)

// stuck turns a missing answer into an error with a remedy. Other errors stay unchanged.
func stuck(d dirs.Dirs, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if foreign := d.Check(); foreign != nil {
		return foreign
	}
	return &hinted{&localapi.Error{Code: localapi.CodeTimeout, Message: "the daemon does not answer"}, doctor.StuckFix(d)}
}
