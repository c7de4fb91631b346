//go:build linux

package holder_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/pty"
)

// A holder accepts a process that has the key, holds the daemon's lock, and runs in no
// agent's terminal, even if its environment is cleared.
func TestWhoIsLetIn(t *testing.T) {
	testkit.Leaks(t)
	open := options(t)
	locked := options(t)
	locked.Lock = filepath.Join(t.TempDir(), "daemon.lock")
	const private = "a private name"
	spawn(t, open, holder.Spec{ID: "x", Command: sh("read x"), Meta: []byte(private)}).Close()
	lock := must.Get(ipc.Lock(locked.Lock))(t)
	spawn(t, locked, holder.Spec{ID: "x", Command: sh("read x"), Meta: []byte(private)}).Close()
	lock.Close()
	t.Cleanup(func() { // the cleanup of spawn connects as the daemon does
		if _, err := ipc.Lock(locked.Lock); err != nil {
			t.Error(err)
		}
	})
	person, agents := []string{"PATH=/bin:/usr/bin"}, []string{"PATH=/bin:/usr/bin", proc.AgentTag("claude")}
	self := self(t)
	for n, c := range []struct {
		name string
		o    holder.Options
		env  []string
		line string
		want string
	}{
		{"the person's program with the key", open, person, "key x", "in: \"a private name\""},
		{"another key", open, person, "wrong x", "without its key"},
		{"an agent's program", open, agents, "key x", "agent claude has started"},
		{"one without its environment", open, agents, "env -i key x", "agent claude has started"},
		{"one in a session of its own", open, agents, "env -i setsid -w key x", "agent claude has started"},
		{"one without the lock", locked, person, "key x", "does not hold the daemon's lock"},
		{"one with another lock", locked, person, "key x " + filepath.Join(t.TempDir(), "other"), "does not hold the daemon's lock"},
		{"one with the lock", locked, person, "key x " + locked.Lock, "in: \"a private name\""},
		{"an agent's with the lock", locked, agents, "env -i key x " + locked.Lock, "agent claude has started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := strings.Index(c.line, "key x")
			if at < 0 {
				at = strings.Index(c.line, "wrong x")
			}
			line := c.line[:at] + self + " knock " + c.o.Dir + " " + c.line[at:]
			h := spawn(t, open, holder.Spec{ID: fmt.Sprint("from-", n), Command: pty.Command{Path: "/bin/sh", Args: []string{"sh", "-c", line}, Env: c.env}})
			stream(t, h, 0)
			if out := all(t, h); !strings.Contains(out, c.want) || strings.Contains(out, private) != strings.Contains(c.want, private) {
				t.Errorf("%s: %q, want %q", line, out, c.want)
			}
		})
	}
}

// A server of the socket without the key is not accepted as a holder.
func TestDialAsksForTheKey(t *testing.T) {
	o := options(t)
	spawn(t, o, holder.Spec{ID: "x", Command: sh("read x")}).Close()
	o.Key[0]++
	var refused *holder.RefusedError
	if _, err := holder.Dial(t.Context(), o, "x"); !errors.As(err, &refused) {
		t.Errorf("the error is %v", err)
	}
	o.Key[0]--
}
