package localclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tether/agent/localapi"
	"tether/internal/jsonspan"
	"tether/internal/retry"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// TellVar is an environment variable that is set for a daemon that EnsureDaemon starts.
// The daemon's standard input is then a pipe. If it cannot start, it writes a
// localapi.Error in JSON into the pipe, since the disk with Launch.Output may be full.
const TellVar = "TETHER_TELL"

// Launch says how to start a daemon.
type Launch struct {
	Path string   // absolute path of the program
	Argv []string // arguments, the program's own name first
	Env  []string
	// Output is the absolute path of a file for the daemon's output outside its log, such
	// as why it could not start, or a crash.
	Output string
}

const (
	// startTimeout is for a busy machine: a daemon that cannot start ends and says why.
	startTimeout = time.Minute
	// outcome is how long EnsureDaemon still waits for another daemon after the daemon
	// that it started has ended, because the other was faster.
	outcome   = time.Second
	firstLook = time.Millisecond
	lastLook  = 25 * time.Millisecond
	// maxOutput is the size in bytes from which Output is truncated before the next
	// start.
	maxOutput = 256 << 10
)

// EnsureDaemon starts a daemon if none runs, and returns when a daemon listens. If
// another process starts or replaces the daemon, it waits for that daemon. If two callers
// start daemons at once, only the daemon that gets the socket's lock stays. The error
// includes the daemon's message.
func (c *Client) EnsureDaemon(ctx context.Context, l Launch) error {
	conn, err := dialPatiently(ctx, c.socket)
	if err == nil {
		return conn.Close()
	}
	if !errors.Is(err, ipc.ErrNotRunning) {
		return err
	}
	printed := shorten(l.Output)
	hears, tells, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	p, err := proc.StartDetached(l.Path, l.Argv, append(slices.Clip(l.Env), TellVar+"=1"), l.Output, tells)
	tells.Close()
	if err != nil {
		hears.Close()
		return fmt.Errorf("start the daemon: %w", err)
	}
	ended := make(chan struct{})
	var how *os.ProcessState
	var told []byte
	go func() { // ends with the daemon, or with this program
		defer close(ended)
		defer hears.Close()
		told, _ = io.ReadAll(io.LimitReader(hears, maxOutput))
		how, _ = p.Wait()
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("it does not answer"))
	defer cancel()
	err = c.await(ctx, ended)
	if err == nil {
		err = c.oneLeft(ctx, p.Pid, ended)
	}
	if err == nil {
		return nil
	}
	failed := &localapi.Error{Code: localapi.CodeInternal, Message: err.Error(), Hint: "tether daemon runs it in the foreground"}
	select {
	case <-ended:
		if jsonspan.Unmarshal(told, failed) != nil {
			failed.Message = fmt.Sprintf("%v (%v)%s", err, how, since(l.Output, printed))
		}
	default:
		failed.Message += since(l.Output, printed)
	}
	failed.Message = "the daemon did not start: " + failed.Message
	return failed
}

// oneLeft makes sure that only one daemon is left. If another daemon than the started one
// listens, it waits until the started one has ended, which otherwise might take the
// other's place when that is stopped.
func (c *Client) oneLeft(ctx context.Context, started int, ended <-chan struct{}) error {
	s, err := c.Status(ctx)
	if err != nil || s.Pid == started {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await polls the socket until a daemon listens, whoever started it.
func (c *Client) await(ctx context.Context, ended <-chan struct{}) error {
	var giveUp <-chan time.Time
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if err := c.dial(ctx); !errors.Is(err, ipc.ErrNotRunning) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ended:
			ended, giveUp = nil, time.After(outcome)
		case <-giveUp:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Client) dial(ctx context.Context) error {
	conn, err := ipc.Dial(ctx, c.socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

// WaitGone returns when no daemon listens any more, and the one that has listened has
// released its lock, so that another one can start.
func (c *Client) WaitGone(ctx context.Context) error {
	lock := filepath.Join(filepath.Dir(c.socket), localapi.LockName)
	for pid := ipc.Holder(lock); ; {
		err := c.dial(ctx)
		if err != nil && !errors.Is(err, ipc.ErrNotRunning) {
			return err
		}
		if err != nil {
			if holder := ipc.Holder(lock); holder == 0 || holder != pid {
				return nil
			}
		}
		if !retry.Wait(ctx, lastLook) {
			return ctx.Err()
		}
	}
}

// shorten truncates the file if it has reached maxOutput, and returns its size.
func shorten(name string) int64 {
	info, err := os.Lstat(name)
	if err != nil || info.Mode().Type()&fs.ModeType != 0 {
		return 0
	}
	if info.Size() > maxOutput && os.Truncate(name, 0) == nil {
		return 0
	}
	return info.Size()
}

// since returns the text in the file after the offset, for a message.
func since(name string, offset int64) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.NewSectionReader(f, offset, maxOutput)) // a part is better than nothing
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return ""
	}
	return ":\n" + string(text)
}
