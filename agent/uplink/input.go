package uplink

import (
	"context"
	"time"

	"tether/ahp"
	"tether/vocab"
)

// inputPause is the least time between two states of input of a terminal that are sent to
// a host. Only the newest is sent.
const inputPause = 250 * time.Millisecond

// inputReport is the last report to the host on this connection of how the program uses
// its keyboard. Owned by the publisher.
type inputReport struct {
	changed <-chan struct{} // closed when the state may have changed; nil: it may have changed already, or was never asked for
	last    ahp.StateParams
	at      time.Time

	checkout vocab.Checkout
	placed   time.Time // when the checkout was last looked for
	moved    bool      // it may have changed since
}

// checkoutEvery is how often the checkout of a terminal is looked for that prints
// nothing: another program may have changed the branch.
const checkoutEvery = 15 * time.Second

// owesInput reports whether the state of input may have changed since it was sent, so
// that it must be sent again.
func (p *publisher) owesInput() bool {
	if !p.s.marker.States {
		return false
	}
	select {
	case <-p.input.changed:
		p.input.changed = nil
	default:
	}
	return p.input.changed == nil || p.checkoutLeft() <= 0
}

// checkoutLeft returns after how long the checkout is looked for again.
func (p *publisher) checkoutLeft() time.Duration {
	if p.s.link.opts.Checkout == nil {
		return checkoutEvery
	}
	every := checkoutEvery
	if p.input.moved {
		every = inputPause
	}
	return every - time.Since(p.input.placed)
}

// checkout returns the checkout of the terminal's directory as the host may see it, and
// looks for it again if that is due. It finds none of a directory that is masked.
func (p *publisher) checkout() vocab.Checkout {
	if find := p.s.link.opts.Checkout; find != nil && p.checkoutLeft() <= 0 {
		p.input.placed, p.input.moved = time.Now(), false
		p.input.checkout = find(p.info().Cwd)
		p.input.checkout.Show(p.le.h.Outward().Redact)
	}
	return p.input.checkout
}

// inputLeft returns how long the next state has to wait.
func (p *publisher) inputLeft() time.Duration { return inputPause - time.Since(p.input.at) }

// tellInput tells the host how the program in the foreground uses its keyboard, and the
// checkout of its directory, once all output so far was sent. It does not send the
// prompt's text: that is in the output, where secrets are masked.
func (p *publisher) tellInput(ctx context.Context) error {
	if !p.owesInput() || p.inputLeft() > 0 || p.reader.Pending() > 0 {
		return nil
	}
	in, changed := p.le.h.LastInput()
	if changed == nil || in.Input == "" {
		return nil // it is not lent any more, or has exited: the publisher is about to end
	}
	p.input.changed = changed
	said := ahp.NewState(p.le.uri, string(in.Input), in.InputSince)
	if i := p.le.h.Info(); i.Ready != "" {
		said.SetReady(string(i.Ready), i.ReadySince, p.le.h.Outward().Redact(i.ReadyWhy))
	}
	said.Checkout = p.checkout()
	last := p.input.last
	if said.Input == last.Input && ahp.Awaits(said.Input) == ahp.AwaitsNothing {
		last.InputSince = said.InputSince // an older time only says that something was printed since
	}
	if said == last {
		return nil
	}
	p.input.last, p.input.at = said, time.Now()
	return p.s.conn.Peer().SendRaw(ctx, ahp.AppendState(nil, said))
}
