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

// ErrUnsupported is returned by Environment for shells that it does not know how to ask.
var ErrUnsupported = errors.New("cannot read the environment of this shell")

// PrintVerb is the first argument with which the login shell runs this program as its only command. The program must then call
// PrintEnvironment with the next argument as the mark.
const PrintVerb = "print-environment"

// loginTimeout bounds the time for start-up files. Those of frameworks need a second or two on a cold disk.
const loginTimeout = 10 * time.Second

// PrintEnvironment writes the environment of this process between two marks, which separate it from output of start-up files.
func PrintEnvironment(w io.Writer, mark string) error {
	_, err := io.WriteString(w, mark+"\x00"+strings.Join(os.Environ(), "\x00")+"\x00"+mark)
	return err
}

// Environment returns the environment of an interactive login of the user: the variables after the login shell at path has read its
// start-up files in a bare environment. self is the path of this program, see PrintVerb. Environment waits for the shell for at most ten
// seconds and then ends all its processes. Variables that exist only for this query are left out. On Windows no shell is asked: the result
// is the environment of the user's account.
func Environment(ctx context.Context, path, self string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
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

// Cache holds the login environment of one user. It is safe for concurrent use.
type Cache struct {
	Path string // of the login shell
	Self string // of this program, see PrintVerb

	ask chan struct{} // 1 slot, held by the call that asks; made by the first such call, guarded by mu
	mu  sync.Mutex
	env []string // nil = not asked yet; guarded by mu
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

// Known returns the environment if the shell was asked before, or nil otherwise. It does not block.
func (c *Cache) Known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.env)
}

// fill asks the shell when no other call does so. Unless again is set, it returns the result of a call that it waited for instead.
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
