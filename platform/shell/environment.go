package shell

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrUnsupported is returned by Environment for shells it cannot ask, and on systems where nobody starts programs from a shell's
// start-up files.
var ErrUnsupported = errors.New("this shell cannot be asked for its environment")

// PrintVerb is the argument after which this program is to call PrintEnvironment with the next one: the login shell runs it as its
// only command.
const PrintVerb = "print-environment"

// loginPatience is how long start-up files may take. Those of frameworks need a second or two on a cold disk.
const loginPatience = 10 * time.Second

// PrintEnvironment writes the environment of this process between two marks, so that it can be told from what start-up files print.
func PrintEnvironment(w io.Writer, mark string) error {
	_, err := io.WriteString(w, mark+"\x00"+strings.Join(os.Environ(), "\x00")+"\x00"+mark)
	return err
}

// Environment returns the environment that an interactive login of the user has: what the start-up files of the login shell at path
// make of a bare one. self is this program, see PrintVerb. It waits for the shell for at most ten seconds and ends what it has
// started when that is over. Variables that belong to the asking alone are left out.
func Environment(ctx context.Context, path, self string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	args, err := asking(path)
	if err != nil {
		return nil, err
	}
	mark := rand.Text()
	command := "exec " + quote(self) + " " + PrintVerb + " " + mark
	out, err := runLogin(ctx, path, append(args, command), bare(os.Environ(), path))
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the start-up files of %s took too long: %w", path, ctx.Err())
	}
	env, ok := between(out, mark)
	if !ok {
		return nil, fmt.Errorf("%s did not run what it was told to: %w", path, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return slices.DeleteFunc(env, ofAsking), nil
}

// asking returns the arguments that make the shell an interactive login shell that runs one command.
func asking(path string) ([]string, error) {
	switch strings.TrimRight(filepath.Base(path), "-.0123456789") {
	case "bash", "zsh", "fish", "ksh", "mksh", "sh", "dash", "ash":
		return []string{"-l", "-i", "-c"}, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, path)
}

// quote writes s for all the shells that asking knows.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}

// kept are the variables that a login begins with: who the user is, and how to reach the user's session and agents. Everything else
// of this process, which may have been started from anywhere, is left behind.
var kept = []string{"HOME", "USER", "LOGNAME", "LANG", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "DISPLAY",
	"WAYLAND_DISPLAY", "XAUTHORITY", "TMPDIR", "__CF_USER_TEXT_ENCODING"}

// bare is the environment before any start-up file was read.
func bare(env []string, path string) []string {
	out := []string{"SHELL=" + path, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "TERM=dumb", "TETHER_RESOLVING_ENVIRONMENT=1"}
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); slices.Contains(kept, name) {
			out = append(out, e)
		}
	}
	if u, err := user.Current(); err == nil { // a service may lack what login(1) sets
		for name, value := range map[string]string{"USER": u.Username, "LOGNAME": u.Username, "HOME": u.HomeDir} {
			if value != "" && !slices.ContainsFunc(out, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
				out = append(out, name+"="+value)
			}
		}
	}
	return out
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

// between returns what PrintEnvironment wrote.
func between(out []byte, mark string) ([]string, bool) {
	_, rest, begun := bytes.Cut(out, []byte(mark+"\x00"))
	env, _, ended := bytes.Cut(rest, []byte("\x00"+mark))
	if !begun || !ended {
		return nil, false
	}
	return strings.Split(string(env), "\x00"), true
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
	if env := c.known(); env != nil {
		return env, nil
	}
	return c.fill(ctx, false)
}

// Refresh asks the shell again.
func (c *Cache) Refresh(ctx context.Context) ([]string, error) { return c.fill(ctx, true) }

func (c *Cache) known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.env)
}

// fill asks, unless somebody else has done so while it waited and that is good enough.
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
	if env := c.known(); env != nil && !again {
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
