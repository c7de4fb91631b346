package shells

import (
	"cmp"
	"context"
	"strings"
	"time"

	"tether/internal/retry"
	"tether/screen"
)

// Shell is a shell as administrators see it.
type Shell struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Command    string     `json:"command,omitempty"`
	Owner      string     `json:"owner"` // its starter: the name of a token, a session, or the client's name for itself
	Cwd        string     `json:"cwd,omitempty"`
	Created    time.Time  `json:"created"`
	AloneSince *time.Time `json:"alone_since,omitempty"` // since when no client is there; nil while one is
	Foreground string     `json:"foreground,omitempty"`  // the program that runs in it; empty for the shell alone
	Exited     bool       `json:"exited,omitempty"`

	// Process is nil if the viewer must not see what runs in the shell.
	Process Process `json:"-"`
}

// Inspect adds what only the processes know. It asks the system, so the caller must hold
// no lock.
func Inspect(all []Shell) []Shell {
	for i := range all {
		s := &all[i]
		p, ok := s.Process.(Inspector)
		if !ok {
			continue
		}
		s.Command = screen.Clean(strings.Join(p.Command(), " "))
		if !s.Exited {
			s.Foreground = cmp.Or(s.Foreground, front(p))
		}
	}
	return all
}

// maxForeground bounds the shown command line of a program, in bytes.
const maxForeground = 2 << 10

func front(p Inspector) string {
	line := p.Foreground()
	return screen.Clean(strings.ToValidUTF8(line[:min(len(line), maxForeground)], ""))
}

// EndLonely ends the shells to which no client comes back within the grace time, until
// ctx ends. lonely lists the shells without a client, each with the time since which it
// has none. The time counts only while nothing runs in the shell, as far as looking now
// and then tells.
func EndLonely[T comparable](ctx context.Context, grace time.Duration, lonely func() map[T]time.Time, busy func(T) bool, end func(T)) {
	counts := map[T]time.Time{} // since when the time counts
	for retry.Wait(ctx, min(max(grace/8, 100*time.Millisecond), 30*time.Second)) {
		still := map[T]time.Time{}
		for t, since := range lonely() {
			if busy(t) {
				since = time.Now()
			} else if before := counts[t]; before.After(since) { // something has run since then
				since = before
			}
			still[t] = since
			if time.Since(since) >= grace {
				end(t)
			}
		}
		counts = still
	}
}
