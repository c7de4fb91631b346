package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrUnsupported is returned by Environment for shells it cannot ask.
var ErrUnsupported = errors.New("cannot read the environment of this shell")

// PrintVerb is the argument after which this program is to call PrintEnvironment with the next one: the login shell runs it as its only
// command.
const PrintVerb = "print-environment"

// loginTimeout bounds the time for start-up files. Those of frameworks need a second or two on a cold disk.
const loginTimeout = 10 * time.Second

// PrintEnvironment writes the environment of this process between two marks, which separate it from output of start-up files.
func PrintEnvironment(w io.Writer, mark string) error {
	_, err := io.WriteString(w, mark+"\x00"+strings.Join(os.Environ(), "\x00")+"\x00"+mark)
	return err
}

// Environment returns the environment of an interactive login of the user: the one that the start-up files of the login shell at path make
// of a bare one. self is this program, see PrintVerb. It waits for the shell for at most ten seconds and then ends all its processes.
// Variables that exist only for this query are left out. On Windows no shell is asked: the result is the environment of the user's account.
func Environment(ctx context.Context, path, self string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	env, err := environment(ctx, path, self)
	return slices.DeleteFunc(env, ofAsking), err
}

// ofAsking tells the variables that mean nothing outside the shell that was asked.
func ofAsking(entry string) bool {
	name, _, ok := strings.Cut(entry, "=")
	switch name {
	case "", "_", "SHLVL", "PWD", "OLDPWD", "TERM":
		return true
	}
	return !ok || strings.HasPrefix(name, "TETHER_")
}

// Cache holds the login environment of one user. It is safe for concurrent use.
type Cache struct {
	Path string // of the login shell
	Self string // of this program, see PrintVerb

	ask chan struct{} // 1 slot, made by the first call: one asks at a time
	mu  sync.Mutex
	env []string // nil = not asked yet
}

// Get returns the environment, asking the shell the first time. An error is not remembered. The slice is the caller's.
func (c *Cache) Get(ctx context.Context) ([]string, error) {
	if env := c.Known(); env != nil {
		return env, nil
	}
	return c.fill(ctx, false)
}

// Refresh asks the shell again.
func (c *Cache) Refresh(ctx context.Context) ([]string, error) { return c.fill(ctx, true) }

// Known returns the environment if the shell was asked before, else nil. It does not block.
func (c *Cache) Known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.env)
}

// fill asks, unless another caller has done so meanwhile and that result is good enough.
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
	if env := c.Known(); env != nil && !again {
		return env, nil
	}
	env, err := Environment(ctx, c.Path, c.Self)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.env = env
	return slices.Clone(env), nil
}
