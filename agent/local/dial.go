package local

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"tether/agent/localapi"
	"tether/platform/ipc"
)

const (
	// handOverPatience is how long a client waits while one daemon makes way for another, or starts.
	handOverPatience = 5 * time.Second
	// secondLook is when a client looks again, in case it looked between the end of one daemon and the start of the next.
	secondLook = 10 * time.Millisecond
)

// dialPatiently connects to the daemon. If a daemon is only about to start, it waits for it.
func dialPatiently(ctx context.Context, socket string) (net.Conn, error) {
	for end, looks := time.Now().Add(handOverPatience), 0; ; looks++ {
		conn, err := ipc.Dial(ctx, socket)
		if !errors.Is(err, ipc.ErrNotRunning) || looks > 0 && !locked(socket) || time.Now().After(end) {
			return conn, err
		}
		select {
		case <-time.After(secondLook):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// locked reports whether a daemon starts or ends. The one that is to come is looked for first: it holds its file before the other gives up
// the lock. A process that replaces the daemon does not wait for itself.
func locked(socket string) bool {
	for _, name := range []string{localapi.NextName, localapi.LockName} {
		lock, err := ipc.Lock(filepath.Join(filepath.Dir(socket), name))
		var held *ipc.LockedError
		if errors.As(err, &held) && (name == localapi.LockName || held.Pid != os.Getpid()) {
			return true
		}
		if err == nil {
			lock.Close()
		}
	}
	return false
}
