package term

import (
	"slices"
	"time"

	"tether/shellint"
)

// origin is what a terminal was started as. It is set before the terminal runs
// and never changes, so it is read without the lock.
type origin struct {
	name      string
	command   []string
	cwd       string
	started   time.Time
	door      string
	private   bool
	leased    bool
	unsigned  bool
	onSlow    OnSlow           // never ByOwner
	idleAfter time.Duration    // how long it may be idle; 0: for ever
	endAfter  time.Duration    // how long it may run; 0: for ever
	scanning  shellint.Options // of the scanner
	secrets   []string         // values that no host may see
	clipboard bool             // the text has what sets the clipboard
}

func (p *Pool) originOf(owner Actor, s Spec) origin {
	o := origin{
		name: s.Name, command: slices.Clone(s.Command), cwd: s.Cwd, started: time.Now(), door: s.Door,
		private: s.Private, leased: s.Leased, unsigned: s.Unsigned, onSlow: p.opts.onSlow(s.OnSlow, owner), idleAfter: s.IdleTimeout, endAfter: s.TimeLimit,
		scanning: shellint.Options{Nonce: s.nonceOf(), Queries: true}, clipboard: p.opts.Outward.Clipboard(),
	}
	if p.opts.Secrets != nil && s.Env != nil {
		o.secrets = p.opts.Secrets(s.Env)
	}
	return o
}
