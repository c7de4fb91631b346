package term

import (
	"cmp"
	"os"
	"strings"
	"time"

	"tether/agent/redact"
	"tether/platform/pty"
	"tether/vocab"
)

// Options configures a Pool. Zero values mean the defaults stated.
type Options struct {
	// Start runs a child on a pty; nil means platform/pty.Start.
	Start func(id ID, c pty.Command) (PTY, error)
	// Left, if not nil, is called when the connection to a running holder was lost: the
	// terminal is gone from the pool and may be adopted again. It must not block.
	Left func(ID)
	// Lendable, if not nil, reports whether terminals may be lent to the host of that
	// name: whether it is paired at this moment. It must not block. To end a pairing,
	// make Lendable return false, and then withdraw every terminal in the pool: a
	// terminal that is being started is not lent any more then.
	Lendable func(host string) bool
	// MayLend, if not nil, returns why a terminal may not be lent to a host, or nil if it
	// may. It is called again when the shell reports another directory. It must not block
	// for long.
	MayLend func(i Info, host string) error
	// Observe, if not nil, is called after each act on a terminal and each refusal, from
	// any goroutine. It must not block for long.
	Observe func(Act)
	// Outward is the redaction of the view for hosts and agents; nil means none.
	// Unredacted, if not nil, reports whether an agent at this machine sees everything;
	// it must not block. Secrets, if not nil, chooses from a terminal's environment the
	// values that no host and no agent may see. Trouble, if not nil, receives failures of
	// that.
	Outward    *redact.Rules
	Unredacted func(Actor) bool
	Secrets    func(env []string) []string
	Trouble    func(what string)
	// Recovered, if not nil, is called after a panic that the terminal has survived. It
	// must not block for long.
	Recovered func(Recovery)
	// Checkout, if not nil, finds the git work tree that a directory showed at a time
	// that has just passed, and calls tell with it from another goroutine. It must not
	// block.
	Checkout func(dir string, at time.Time, tell func(vocab.Checkout))
	// IgnoreUnsigned ignores marks without the terminal's nonce when it looks for
	// commands.
	IgnoreUnsigned bool
	// LogBytes is how much of each terminal's output is kept, 64 KiB to 1 GiB, default 4
	// MiB. Memory is taken as it fills.
	LogBytes int
	// TotalLogBytes bounds the kept output of all terminals, default 256 MiB. Beyond it
	// exited terminals lose their oldest output first, then those that keep the most;
	// none is cut below 64 KiB for it.
	TotalLogBytes int64
	// OnSlowUser and OnSlowAgent replace ByOwner: for the person's terminals (default
	// Lag) and for agents' (default Hold).
	OnSlowUser, OnSlowAgent OnSlow
	// Stall is how long one slow reader may hold a child, default 10 s.
	Stall time.Duration
	// KillGrace is the time between TERM and KILL, default 3 s.
	KillGrace time.Duration
	// KeepExited bounds the exited terminals kept for reading, default 50; the oldest are
	// removed first. KeepFor bounds their age, default 1 h.
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
	o.TotalLogBytes = cmp.Or(o.TotalLogBytes, 256<<20)
	o.OnSlowUser, o.OnSlowAgent = cmp.Or(o.OnSlowUser, Lag), cmp.Or(o.OnSlowAgent, Hold)
	o.Stall = cmp.Or(o.Stall, 10*time.Second)
	o.KillGrace = cmp.Or(o.KillGrace, 3*time.Second)
	o.KeepExited = cmp.Or(o.KeepExited, 50)
	o.KeepFor = cmp.Or(o.KeepFor, time.Hour)
	o.MaxTerminals = cmp.Or(o.MaxTerminals, 200)
	o.hostname, _ = os.Hostname()
	return o
}

// onSlow resolves ByOwner.
func (o *Options) onSlow(s OnSlow, owner Actor) OnSlow {
	if owner.Role == RoleUser {
		return cmp.Or(s, o.OnSlowUser)
	}
	return cmp.Or(s, o.OnSlowAgent)
}

// localHost reports whether a cwd report that names host speaks of this machine.
func (o Options) localHost(host string) bool {
	return host == "" || host == "localhost" || strings.EqualFold(host, o.hostname)
}
