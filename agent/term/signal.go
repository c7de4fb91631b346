package term

import "errors"

// ErrNoSignals: this terminal's pty cannot send signals.
var ErrNoSignals = errors.New("this terminal does not support signals")

// signaller is a PTY that can send a signal, by its name with or without SIG,
// to the process group in the foreground.
type signaller interface{ Signal(name string) error }

// Signal sends a signal, by its name with or without SIG, to the process group
// in the foreground, as a key of the terminal would. It asks for the right to
// kill. Errors: ErrExited, ErrNoSignals, or what was wrong with the name.
func (h Handle) Signal(name string) error {
	if err := h.allow(OpKill); err != nil {
		return err
	}
	select {
	case <-h.t.life.done:
		return ErrExited
	default:
	}
	s, ok := h.t.pty.(signaller)
	if !ok {
		return ErrNoSignals
	}
	return h.did(Act{Kind: ActSignal, Detail: name}, s.Signal(name))
}
