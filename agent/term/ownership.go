package term

import (
	"errors"
	"slices"
	"time"

	"tether/shellint"
	"tether/vocab"
)

// ownership records who owns the terminal, and how many people are attached. Guarded by
// the terminal's mutex.
type ownership struct {
	owner    Actor
	visible  bool
	promoted bool  // owner was an agent before
	starter  Actor // the agent that has started it; nobody if unknown
	attached int
}

// promote makes the terminal the person's for good.
func (n *ownership) promote() { n.starter, n.owner, n.visible, n.promoted = n.owner, User, true, true }

// attach counts a person who attaches (+1) or leaves (-1).
func (t *Terminal) attach(by int) {
	t.mu.Lock()
	t.ownership.attached += by
	for i := 0; i < maxPeople && by > 0; i++ {
		if t.log.Arrived(awaitedPerson(i)) {
			break
		}
	}
	if t.ending.exit == nil {
		t.staleLocked()
	}
	t.tellLocked()
	t.mu.Unlock()
}

// ErrEnding: the terminal is being killed.
var ErrEnding = errors.New("the terminal is being killed")

// Promote gives an agent's terminal to the person for good: it is theirs and visible from
// now on. It does nothing if the terminal is theirs already. Errors: ErrEnding, or a lack
// of rights.
func (h Handle) Promote() error {
	if err := h.allow(OpPromote); err != nil {
		return err
	}
	if err := h.t.origin.refuse(OpPromote); err != nil {
		return err
	}
	if h.Info().Owner == User {
		return nil
	}
	return h.did(Act{Kind: ActPromote}, h.t.promote())
}

func (t *Terminal) promote() error {
	t.mu.Lock()
	switch {
	case t.ownership.owner == User:
		t.mu.Unlock()
		return nil
	case t.ending.exit == nil && t.ending.reason != "":
		t.mu.Unlock()
		return ErrEnding
	}
	t.ownership.promote()
	t.activity.stopIdle()
	t.mu.Unlock()
	t.changed()
	return nil
}

// origin holds the facts of a terminal's start. It is set before the terminal runs and
// never changes, so it is read without the lock.
type origin struct {
	name      string
	short     string // name without the directory's part; "" if the name was given
	command   []string
	cwd       string
	started   time.Time
	door      string
	private   bool
	leased    bool
	unsigned  bool
	port      int
	notice    string
	adopted   *vocab.Adopted   // nil: tether has started its program
	onSlow    OnSlow           // never ByOwner
	idleAfter time.Duration    // how long it may be idle; 0: for ever
	endAfter  time.Duration    // how long it may run; 0: for ever
	scanning  shellint.Options // of the scanner
	secrets   []string         // values that no host may see
	clipboard bool             // the text includes sequences that set the clipboard
}

func (p *Pool) originOf(owner Actor, s Spec) origin {
	o := origin{
		name: s.Name, command: slices.Clone(s.Command), cwd: s.Cwd, started: time.Now(), door: s.Door,
		private: s.Private, leased: s.Leased, unsigned: s.Unsigned, port: s.Port, notice: s.Notice, adopted: s.Adopted, onSlow: p.opts.onSlow(s.OnSlow, owner), idleAfter: s.IdleTimeout, endAfter: s.TimeLimit,
		scanning: shellint.Options{Nonce: s.nonceOf()}, clipboard: p.opts.Outward.Clipboard(),
	}
	env := s.Env
	if s.Reveals != nil {
		env = s.Reveals
	}
	if p.opts.Secrets != nil && env != nil {
		o.secrets = p.opts.Secrets(env)
	}
	return o
}
