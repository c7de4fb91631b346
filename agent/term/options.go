package term

import (
	"cmp"
	"os"
	"strings"
	"time"

	"tether/platform/pty"
)

// Options configures a Pool. Zero values mean the defaults stated.
type Options struct {
	// Start runs a child on a pty; nil means platform/pty.Start.
	Start func(id ID, c pty.Command) (PTY, error)
	// LogBytes is how much of each terminal's output is kept, 64 KiB to
	// 1 GiB, default 4 MiB. Memory is taken as it fills.
	LogBytes int
	// Stall is how long one slow reader may hold a child, default 10 s.
	Stall time.Duration
	// KillGrace is the time between TERM and KILL, default 3 s.
	KillGrace time.Duration
	// KeepExited bounds the exited terminals kept for reading, default 50;
	// the oldest go first. KeepFor bounds their age, default 1 h.
	KeepExited int
	KeepFor    time.Duration
	// MaxTerminals bounds the running terminals, default 200.
	MaxTerminals int

	hostname string
}

const (
	minLogBytes = 64 << 10 // two of a pump's reads, so that no read is larger than a log
	maxLogBytes = 1 << 30
)

func (o Options) withDefaults() Options {
	if o.Start == nil {
		o.Start = func(_ ID, c pty.Command) (PTY, error) { return pty.Start(c) }
	}
	o.LogBytes = min(max(cmp.Or(o.LogBytes, 4<<20), minLogBytes), maxLogBytes)
	o.Stall = cmp.Or(o.Stall, 10*time.Second)
	o.KillGrace = cmp.Or(o.KillGrace, 3*time.Second)
	o.KeepExited = cmp.Or(o.KeepExited, 50)
	o.KeepFor = cmp.Or(o.KeepFor, time.Hour)
	o.MaxTerminals = cmp.Or(o.MaxTerminals, 200)
	o.hostname, _ = os.Hostname()
	return o
}

// localHost reports whether a cwd report that names host speaks of this
// machine.
func (o Options) localHost(host string) bool {
	return host == "" || host == "localhost" || strings.EqualFold(host, o.hostname)
}
