package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/doctor"
	"tether/platform/dirs"
)

// A command that stays connected to the daemon goes on waiting when the daemon does not
// answer, since the daemon's process may be stopped or swapped out. The command says so
// on standard error, and says when the daemon answers again. Other commands fail, see
// localclient.SilentError.

// silence returns a function to call when the daemon stops answering and when it answers
// again, from any goroutine and any number of times.
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

// staying returns a client for a command that stays connected: its requests wait for a
// daemon that does not answer, and until stop is called it is watched whether the daemon
// answers. busy, if not nil, says whether the command waits for anything now.
func staying(ctx context.Context, client *localclient.Client, notice func(string, ...any), busy func() bool) (patient *localclient.Client, stop func()) {
	say := silence(notice)
	return client.Patient(say), client.Watch(ctx, busy, say)
}

const (
	// listTimeout is how long the daemon may take to list terminals, also where looking
	// for ports takes seconds.
	listTimeout = 10 * time.Second
	// makeWayTimeout is how long the daemon may take to leave its terminals to another
	// daemon.
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
	if held := agent.LockHeld(context.Background(), d); held != nil { // a daemon that does not end, for example
		return held
	}
	return &hinted{&localapi.Error{Code: localapi.CodeTimeout, Message: "the daemon does not answer"}, doctor.StuckFix(d)}
}
