package term

import (
	"context"
	"errors"
	"time"

	"tether/agent/loans"
	"tether/agent/output"
	"tether/agent/redact"
	"tether/vocab"
)

// Handle is one terminal with one actor's rights. Forbidden operations are refused with
// ErrNotFound or a *DeniedError; each call checks the rights again. A Handle is safe for
// concurrent use and stays valid after the terminal is gone.
type Handle struct {
	t      *Terminal
	actor  Actor
	masked bool
}

// Masked returns a handle for the same actor that shows all texts as hosts see them:
// output, command lines, titles, directories. Agents' handles are masked already, unless
// Options.Unredacted says otherwise.
func (h Handle) Masked() Handle { return Handle{h.t, h.actor, true} }

// IsMasked reports whether the handle shows texts as hosts see them.
func (h Handle) IsMasked() bool { return h.masked }

// Redact returns a text about the terminal as the handle shows it. The zero Handle shows
// it as it is.
func (h Handle) Redact(text string) string {
	if !h.masked {
		return text
	}
	return h.redaction().Redact(text)
}

// ID names the terminal.
func (h Handle) ID() ID { return h.t.id }

// Info returns a snapshot. It needs no right: the owner of the handle could see the
// terminal once, and must learn of its end.
func (h Handle) Info() Info {
	i := h.t.Info()
	if h.masked {
		i.mask(h.redaction())
	}
	return i
}

// InfoAsIs is Info without masks. It is for decisions, and must not be shown to agents.
func (h Handle) InfoAsIs() Info { return h.t.Info() }

// Done is closed when the exit was recorded.
func (h Handle) Done() <-chan struct{} { return h.t.life.done }

// Reader returns a cursor into the output. The caller must Close it. A reader of a host,
// or of an agent there, is closed when the terminal is withdrawn from the host.
func (h Handle) Reader(o output.ReaderOptions) (*output.Reader, error) {
	if err := h.allow(OpRead); err != nil {
		return nil, err
	}
	switch {
	case h.masked:
		o.View = output.ViewOutward
	case o.View == output.ViewRaw && h.actor.Role != RoleUser:
		o.View = output.ViewScreen // raw output has the nonce, with which marks can be forged
	}
	if o.View == output.ViewOutward {
		h.t.prepare()
	}
	by := output.By{Host: h.actor.away()}
	if h.masked {
		by.Rules = h.Outward()
	}
	if h.actor.Role == RoleHost {
		by.Awaits = awaitedHost(by.Host) // its link, for which the child may be held after it was lost
	}
	r := h.t.log.NewReader(o, by)
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if by.Host != "" && h.t.loans.Loan(by.Host) == nil {
		h.t.log.CloseOf(by.Host)
		return nil, ErrNotFound // withdrawn meanwhile
	}
	return r, nil
}

// OldestScreen returns the screen at the oldest offset at which it is known. The caller
// must Close it.
func (h Handle) OldestScreen() (*output.ScreenAt, error) {
	all, err := h.Reader(output.ReaderOptions{View: output.ViewScreen, Linear: true})
	if err != nil {
		return nil, err
	}
	return output.OldestScreen(all)
}

// Commands returns the commands still remembered, oldest first.
func (h Handle) Commands() ([]vocab.Command, error) {
	if err := h.allow(OpRead); err != nil {
		return nil, err
	}
	h.t.mu.Lock()
	all := h.t.log.Commands()
	h.t.mu.Unlock()
	if h.actor.Role == RoleHost || h.actor.At() != "" { // the link tells hosts of checkouts, if they may know
		for i := range all {
			all[i].Checkout = nil
		}
	}
	for i := range all {
		all[i].Show(h.Redact)
	}
	return all, nil
}

// TextEnd returns the present length of ViewText in bytes: the text offset of later
// output. It is 0 if the actor may not read.
func (h Handle) TextEnd() int64 {
	if h.allow(OpRead) != nil {
		return 0
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.log.TextEnd()
}

// prepare makes the rules for what hosts and agents see of the terminal. It must be
// called without the lock, because the first call may take a moment, before the terminal
// is lent or read in that view.
func (t *Terminal) prepare() {
	base := t.pool.opts.Outward
	if base == nil {
		return
	}
	t.mu.Lock()
	done, secrets := t.log.Rules() != nil, t.origin.secrets
	t.mu.Unlock()
	if done {
		return
	}
	rules, complete := base.With(secrets)
	if !complete && t.pool.opts.Trouble != nil {
		t.pool.opts.Trouble("too many values to redact: none is redacted")
	}
	t.mu.Lock()
	t.log.SetRules(rules)
	t.mu.Unlock()
}

// Outward returns the rules for texts about the terminal that a host gets besides the
// output, such as titles. Nil rules redact nothing.
func (h Handle) Outward() *redact.Rules {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.log.Rules()
}

// redaction returns the rules for a terminal's output, even if it is lent to no host. Nil
// rules redact nothing.
func (h Handle) redaction() *redact.Rules {
	h.t.prepare()
	return h.Outward()
}

// TypedElsewhere reports whether somebody typed at another terminal of the pool within
// flow.Quiet: that person waits for an echo, which output of this terminal should not
// delay.
func (h Handle) TypedElsewhere() bool { return h.t.pool.inputs.Elsewhere(h.t) }

// Write queues input for the child. It blocks while too much is queued already. Errors:
// ErrExited, ctx's.
func (h Handle) Write(ctx context.Context, p []byte) error { return h.WriteWithin(ctx, 0, p) }

// WriteWithin is Write that blocks for at most d, unless that is 0, and then returns
// context.DeadlineExceeded. It starts a timer only when it has to wait, which makes it
// cheaper for a key than a context with that timeout.
func (h Handle) WriteWithin(ctx context.Context, d time.Duration, p []byte) error {
	if err := h.allow(OpType); err != nil {
		return err
	}
	if err := h.t.origin.refuse(OpType); err != nil {
		return err
	}
	err := h.t.write(ctx, d, h.actor, p)
	if _, denied := errors.AsType[*DeniedError](err); denied {
		return h.did(Act{}, err)
	}
	return err
}

// TakesLines reports whether the terminal is in line mode: it then gathers a line, of
// pty.MaxLine bytes at most, before the program reads it. It is false where the system
// does not tell.
func (h Handle) TakesLines() bool {
	l, ok := h.t.pty.(looker)
	if !ok || h.t.origin.adopted != nil {
		return false
	}
	look, err := l.Look()
	return err == nil && look.Lines
}

// Resize changes the size; each side 1 to 1000.
func (h Handle) Resize(s Size) error {
	if err := h.allow(OpResize); err != nil {
		return err
	}
	if err := h.t.origin.refuse(OpResize); err != nil {
		return err
	}
	return h.t.resize(s)
}

// Kill ends the whole process tree and waits until the exit was recorded or ctx ends. For
// an exited terminal it ends background processes: those with the terminal's mark, if the
// system shows marks, those below an agent's holder, and on Windows those in its job. It
// is idempotent.
func (h Handle) Kill(ctx context.Context) error {
	over := h.Info().Exit != nil
	err := h.t.condemn(h.actor)
	switch {
	case err == nil && over:
		n, err := h.t.endLeftover(ctx)
		if n == 0 {
			return nil // nothing was left to end
		}
		return h.did(Act{Kind: ActKill, Detail: "what it had left running"}, err)
	case err == nil:
		err = h.t.terminate(ctx, vocab.ExitKilled)
	}
	return h.did(Act{Kind: ActKill}, err)
}

// Lend announces the terminal at host.
func (h Handle) Lend(host string) error { return h.LendUntil(host, time.Time{}) }

// LendUntil announces the terminal at host until then, or changes the end of its lending
// there; zero means no end. A past time ends it at once. Errors: ErrPrivate, or that of
// Options.MayLend.
func (h Handle) LendUntil(host string, until time.Time) error {
	return h.LendTo(host, loans.Change{Until: &until})
}

// LendTo announces the terminal at host, or changes its loan there. Errors are those of
// LendUntil, and ErrTooManyNames.
func (h Handle) LendTo(host string, c loans.Change) error {
	if err := h.allow(OpLend); err != nil {
		return err
	}
	var err error
	var loan loans.Loan
	changed, moved := false, true
	for moved && err == nil {
		i := h.t.Info()
		if err = h.t.pool.mayLend(i, host); err == nil {
			loan, changed, moved, err = h.t.lend(host, c, i.Cwd)
		}
	}
	if !changed && err == nil {
		return nil
	}
	return h.did(Act{Kind: ActLend, Host: host, Detail: c.Text(&loan.Audience)}, err)
}

// Unlend ends the lending to host.
func (h Handle) Unlend(host string) error {
	if err := h.allow(OpLend); err != nil {
		return err
	}
	if _, ports, was := h.t.withdraw(host); was {
		return h.did(Act{Kind: ActUnlend, Host: host, Detail: loans.EndText("", ports...)}, nil)
	}
	return nil
}

// Attach counts a person as attached until leave is called.
func (h Handle) Attach() (leave func(), err error) {
	if err := h.allow(OpType); err != nil {
		return nil, err
	}
	h.t.attach(+1)
	return func() { h.t.attach(-1) }, nil
}

// ErrNoSignals: this terminal's pty cannot send signals.
var ErrNoSignals = errors.New("this terminal does not support signals")

// signaller is a PTY that can send a signal, by its name with or without SIG, to the
// process group in the foreground.
type signaller interface{ Signal(name string) error }

// Signal sends a signal, by its name with or without SIG, to the process group in the
// foreground, as a key of the terminal would. It needs the right to kill. Errors:
// ErrExited, ErrNoSignals, or an unknown name.
func (h Handle) Signal(name string) error {
	if err := h.allow(OpKill); err != nil {
		return err
	}
	select {
	case <-h.t.life.done:
		return ErrExited
	default:
	}
	if err := h.t.origin.refuse(OpKill); err != nil { // it would reach the reader
		return err
	}
	s, ok := h.t.pty.(signaller)
	if !ok {
		return ErrNoSignals
	}
	h.t.mu.Lock()
	h.t.activity.stopped = time.Now()
	h.t.mu.Unlock()
	return h.did(Act{Kind: ActSignal, Detail: name}, s.Signal(name))
}
