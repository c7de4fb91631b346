package term

import "context"

// OnDispose says what a host's disposal does to the terminal.
type OnDispose string

// The choices of the configuration key on_dispose.
const (
	DisposeAuto   OnDispose = "auto"   // withdraw while a person is attached, else kill
	DisposeKill   OnDispose = "kill"   // kill it, also while a person is attached
	DisposeUnlend OnDispose = "unlend" // only withdraw it; it runs on here
)

// Dispose does what the person chose for a disposal by the actor, a host: the
// terminal is withdrawn from it in any case and killed unless it is kept.
// killed tells which.
func (h Handle) Dispose(ctx context.Context, how OnDispose) (killed bool, err error) {
	if err := h.allow(OpDispose); err != nil {
		return false, err
	}
	attached, was := h.t.withdraw(h.actor.Name)
	if !was {
		return false, ErrNotFound // withdrawn by somebody else meanwhile
	}
	if how == DisposeUnlend || how != DisposeKill && attached > 0 {
		return false, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: "the terminal runs on here"}, nil)
	}
	return true, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: "the terminal was killed"}, h.t.terminate(ctx, ReasonKilled))
}
