package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tether/platform/proc"
)

// ErrUnsupported is returned by Environment for shells that it does not know how to ask.
var ErrUnsupported = errors.New("cannot read the environment of this shell")

// PrintVerb is the first argument with which the login shell runs this program as its
// only command. The program must then call PrintEnvironment with the next argument as the
// mark.
const PrintVerb = "print-environment"

// PrintEnvironment writes the environment and, as umaskVar, the umask of this process
// between two marks, which separate them from output of start-up files.
func PrintEnvironment(w io.Writer, mark string) error {
	entries := append(os.Environ(), fmt.Sprintf("%s=%o", umaskVar, proc.Umask()))
	_, err := io.WriteString(w, mark+"\x00"+strings.Join(entries, "\x00")+"\x00"+mark)
	return err
}

const umaskVar = "TETHER_LOGIN_UMASK"

// umaskIn returns the umask that PrintEnvironment has written, 0 if there is none.
func umaskIn(env []string) int {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, umaskVar+"="); ok {
			mask, _ := strconv.ParseUint(value, 8, 9) // 0 if it is not a number
			return int(mask)
		}
	}
	return 0
}

// Environment returns the environment of an interactive login of the user: the variables
// after the login shell at path has read its start-up files in a bare environment. self
// is the path of this program, see PrintVerb. When ctx ends, Environment ends all
// processes of the shell. Variables that exist only for this query are left out. On
// Windows no shell is asked: the result is the environment of the user's account.
func Environment(ctx context.Context, path, self string) ([]string, error) {
	env, err := environment(ctx, path, self)
	return slices.DeleteFunc(env, ofAsking), err
}

// ofAsking reports whether an entry has a meaning only in the shell that was asked.
func ofAsking(entry string) bool {
	name, _, ok := strings.Cut(entry, "=")
	switch name {
	case "", "_", "SHLVL", "PWD", "OLDPWD", "TERM":
		return true
	}
	return !ok || strings.HasPrefix(name, "TETHER_")
}

// Cache holds the login environment of one user, or the reason why it is not known. It is
// safe for concurrent use.
type Cache struct {
	Path string // of the login shell
	Self string // of this program, see PrintVerb
	// Limit is how long Get waits for the shell. Start-up files of frameworks need a
	// second or two on a cold disk.
	Limit time.Duration

	ask    chan struct{} // 1 slot, held by the call that asks; made by the first such call, guarded by mu
	mu     sync.Mutex
	env    []string // nil = not known; guarded by mu
	umask  int      // see Umask; guarded by mu
	failed error    // why the shell's last answer is none; nil if it was not asked, and beside an env; guarded by mu
}

// Get returns the environment, asking the shell the first time, for at most Limit. A
// failure is remembered: later calls return it at once, until Refresh has succeeded. The
// slice is the caller's.
func (c *Cache) Get(ctx context.Context) ([]string, error) {
	if env, err := c.state(); env != nil || err != nil {
		return env, err
	}
	limited, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	env, err := c.fill(limited, false)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("the start-up files of %s take more than %v", c.Path, c.Limit)
		c.fail(err)
	}
	return env, err
}

// Refresh asks the shell again, until ctx ends.
func (c *Cache) Refresh(ctx context.Context) ([]string, error) { return c.fill(ctx, true) }

// Known returns the environment if it is known, or nil. It does not block.
func (c *Cache) Known() []string {
	env, _ := c.state()
	return env
}

// Umask returns the umask that the start-up files have set, 0 while the environment is
// not known, and on Windows. It does not block.
func (c *Cache) Umask() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.umask
}

func (c *Cache) state() ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.env), c.failed
}

// fail remembers a failure, unless the environment is known.
func (c *Cache) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.env == nil {
		c.failed = err
	}
}

// fill asks the shell when no other call does so. Unless again is set, it returns the
// result of a call that it waited for instead.
func (c *Cache) fill(ctx context.Context, again bool) ([]string, error) {
	c.mu.Lock()
	if c.ask == nil {
		c.ask = make(chan struct{}, 1)
	}
	c.mu.Unlock()
	select {
	case c.ask <- struct{}{}:
		defer func() { <-c.ask }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if env, err := c.state(); (env != nil || err != nil) && !again {
		return env, err
	}
	env, err := environment(ctx, c.Path, c.Self)
	if err != nil {
		if ctx.Err() == nil { // otherwise the caller has given up, or Get names its limit
			c.fail(err)
		}
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.umask = umaskIn(env)
	c.env, c.failed = slices.DeleteFunc(env, ofAsking), nil
	return slices.Clone(c.env), nil
}
