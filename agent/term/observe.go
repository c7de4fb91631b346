package term

import "errors"

// ActKind is the kind of an Act.
type ActKind string

// The acts of which Options.Observe is told.
const (
	ActKill    ActKind = "kill"
	ActSignal  ActKind = "signal"
	ActLend    ActKind = "lend"
	ActUnlend  ActKind = "unlend"
	ActDispose ActKind = "dispose" // by a host
	ActPromote ActKind = "promote"
	ActRefusal ActKind = "refusal" // the actor tried something that it may not do
	ActExit    ActKind = "exit"
)

// Act is something that was done with a terminal, or was refused.
type Act struct {
	Kind     ActKind
	Actor    Actor // nobody for acts of the daemon itself, and for exits
	Terminal Info  // after the act
	Host     string
	Detail   string // a few words, "" if there is nothing to add
	// Err says why the act failed: a *DeniedError for a refusal. It is nil if the act was
	// done.
	Err error
}

// observe calls Options.Observe. It is called without locks.
func (t *Terminal) observe(a Act) {
	if t.pool.opts.Observe != nil {
		a.Terminal = t.Info()
		t.pool.opts.Observe(a)
	}
}

// did reports an act or an attempt of the actor, and returns err.
func (h Handle) did(a Act, err error) error {
	var denied *DeniedError
	a.Actor, a.Err = h.actor, err
	if errors.As(err, &denied) {
		a.Kind, a.Detail = ActRefusal, err.Error()
	}
	h.t.observe(a)
	return err
}

// allow decides whether the actor may do op.
func (h Handle) allow(op Op) error {
	err := Allow(h.actor, op, h.t.Info())
	if _, ok := errors.AsType[*DeniedError](err); ok {
		return h.did(Act{}, err)
	}
	return err
}
