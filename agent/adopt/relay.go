package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tether/internal/retry"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// hubArg begins the arguments of a hub: hub, the path where it listens, and the socket of
// its tmux server.
const hubArg = "hub"

// hubStart is hubArg's path of a process that only starts the hub: it must be no
// descendant of a terminal's program, with which it would be ended.
const hubStart = "start:"

// Times of a reader that waits for its hub.
const (
	hubLook  = 5 * time.Millisecond
	hubTime  = time.Minute // for one to start, on a busy machine
	hubAgain = time.Second
	hubTries = 10 // in a row without output
)

// hubMain starts a hub or is one.
func hubMain(args []string) int {
	path, starts := strings.CutPrefix(args[2], hubStart)
	if !starts {
		return serveHub(path, args[3])
	}
	if _, err := startSelf(args, args[0], hubArg, path, args[3]); err != nil {
		return 1
	}
	return 0
}

// startSelf starts this program, whose Main got args, with others, in a session of its
// own.
func startSelf(args []string, others ...string) (*os.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := append(slices.Clip(os.Args[:len(os.Args)-len(args)]), others...)
	return proc.StartSession(self, argv, proc.WithoutTag(os.Environ()))
}

// relay writes what the hub reads of the pane.
func relay(args []string, r *reader) int {
	path := hubPath(args[0], r.socket)
	var to atomic.Pointer[net.Conn]
	if r.typed {
		go passKeys(&to)
	}
	q := request{Args: args[1:], Nonce: r.nonce}
	for tries := 0; tries < hubTries; tries++ {
		conn, err := dialHub(args, path, r.socket)
		if err != nil {
			return 1
		}
		line, _ := json.Marshal(q)
		_, _ = conn.Write(append(line, '\n')) // reading tells an error
		to.Store(&conn)
		status, wrote, err := unframe(r.out, conn)
		conn.Close()
		if err == nil {
			return status
		}
		if wrote {
			tries, q.Shown = 0, true
		}
	}
	return 1
}

// passKeys passes on what is typed.
func passKeys(to *atomic.Pointer[net.Conn]) {
	buf := make([]byte, 4096)
	for {
		n, err := os.Stdin.Read(buf)
		if conn := to.Load(); n > 0 && conn != nil {
			_, _ = (*conn).Write(buf[:n]) // a hub that has ended: the next one gets the next keys
		}
		if err != nil {
			return
		}
	}
}

// dialHub connects to the server's hub, and starts it if there is none: one reader does.
func dialHub(args []string, path, socket string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), hubTime)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	var mine *ipc.Held
	var started time.Time
	for {
		conn, err := ipc.Dial(ctx, path)
		if err == nil || !errors.Is(err, ipc.ErrNotRunning) {
			return conn, err
		}
		switch {
		case mine == nil:
			if mine, err = ipc.Lock(path + ".start"); err == nil {
				defer mine.Close()
				continue // another one may have started it meanwhile
			}
		case time.Since(started) > hubAgain: // an earlier hub may just have ended
			started = time.Now()
			p, err := startSelf(args, args[0], hubArg, hubStart+path, socket)
			if err != nil {
				return nil, err
			}
			_, _ = p.Wait()
		}
		if !retry.Wait(ctx, hubLook) {
			return nil, ctx.Err()
		}
	}
}
