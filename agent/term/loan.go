package term

import (
	"context"
	"time"

	"tether/agent/loans"
	"tether/internal/clip"
	"tether/vocab"
)

// LoanHere is Loan for the actor, a host.
func (h Handle) LoanHere() (loans.Loan, bool) { return h.Loan(h.actor.Name) }

// Loan returns the loan to host; ok is false if there is none.
func (h Handle) Loan(host string) (loan loans.Loan, ok bool) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if l := h.t.loans.Loan(host); l != nil {
		return *l, true
	}
	return loans.Loan{}, false
}

// lend announces the terminal at host, or changes its loan there. It returns the loan,
// and whether that has changed. It does nothing for a host whose pairing is ending, as if
// the end of the pairing had already withdrawn the terminal. It does nothing and returns
// moved if the shell has left cwd, the directory for which lending was allowed.
func (t *Terminal) lend(host string, c loans.Change, cwd string) (loan loans.Loan, changed, moved bool, err error) {
	t.prepare()
	t.mu.Lock()
	switch {
	case t.log.Cwd() != cwd:
		moved = true
	case t.origin.private:
		err = ErrPrivate
	case !t.pool.lendable(host):
	default:
		loan, changed, err = t.loans.Change(host, c, t.log.TextAt(t.log.End()), t.log.TextEnd())
		t.log.SetLent(!t.loans.Empty())
	}
	t.watchLoansLocked()
	t.mu.Unlock()
	if changed {
		t.changed()
	}
	return loan, changed, moved, err
}

// withdraw ends the lending to host. It returns whether there was a loan, with which
// ports, and how many people were attached at that moment: the effect of a disposal
// depends on that.
func (t *Terminal) withdraw(host string) (attached int, ports []vocab.LentPort, was bool) {
	t.mu.Lock()
	if l := t.loans.Loan(host); l != nil {
		ports = l.Ports
	}
	was = t.withdrawLocked(host)
	attached = t.ownership.attached
	t.mu.Unlock()
	if was {
		t.changed()
	}
	return attached, ports, was
}

// withdrawLocked is withdraw for a caller that calls changed afterwards. It closes the
// host's readers, which must not see later output of the child.
func (t *Terminal) withdrawLocked(host string) (was bool) {
	if was = t.loans.Withdraw(host); was {
		t.log.SetLent(!t.loans.Empty())
		t.log.Arrived(awaitedHost(host))
		t.log.CloseOf(host)
		t.tellLocked()
	}
	return was
}

// watchLoansLocked schedules expire for the end of the first loan. It is called after
// loans have changed, and by expire.
func (t *Terminal) watchLoansLocked() {
	next, some := t.loans.Due()
	switch {
	case !some && t.expiry != nil:
		t.expiry.Stop()
	case !some || t.share.released:
	case t.expiry == nil:
		t.expiry = time.AfterFunc(next, t.expire)
	default:
		t.expiry.Reset(next)
	}
}

// expire withdraws the terminal from the hosts whose loans have expired, and ends expired
// shares and ports.
func (t *Terminal) expire() {
	t.mu.Lock()
	acts, done := t.loans.ExpireShares()
	for _, host := range done {
		t.withdrawLocked(host)
		acts = append(acts, loans.Act{Host: host, Detail: "the last link's time was up"})
	}
	acts = append(acts, t.loans.EndPorts(t.ending.exit != nil)...)
	t.mu.Unlock()
	t.loansChanged(acts...)
	t.mu.Lock()
	over := t.loans.Over()
	t.mu.Unlock()
	for _, host := range over {
		if _, ports, was := t.withdraw(host); was {
			t.observe(Act{Kind: ActUnlend, Host: host, Detail: loans.EndText("the lending time was up", ports...)})
		}
	}
	t.mu.Lock()
	t.watchLoansLocked()
	t.mu.Unlock()
}

// Expire ends expired loans. It is called after the machine has slept.
func (p *Pool) Expire() {
	for _, t := range p.all() {
		t.expire()
	}
}

// forbiddenDirectory is the detail of an Act that ends a lending because of the shell's
// new directory.
const forbiddenDirectory = "a lend rule forbids its directory"

// recheckLendingLocked starts a goroutine that calls recheckLending, because the
// directory of a lent terminal has changed. It does not call it here, under the lock,
// because a rule may need the disk. The check is for this directory, even if the shell
// has moved on by then. While an adopted terminal scans old output, with directories of
// the past, it does nothing: Adopt checks afterwards.
func (t *Terminal) recheckLendingLocked() {
	if t.pool.opts.MayLend != nil && !t.loans.Empty() && !t.log.Restoring() {
		go t.recheckLending(t.infoLocked())
	}
}

// recheckLending withdraws the terminal from the hosts to which it may not be lent in the
// directory that i gives.
func (t *Terminal) recheckLending(i Info) {
	for _, host := range i.LentTo {
		if t.pool.mayLend(i, host) == nil {
			continue
		}
		if _, ports, was := t.withdraw(host); was {
			t.observe(Act{Kind: ActUnlend, Host: host, Detail: loans.EndText(forbiddenDirectory, ports...)})
		}
	}
}

// SaveLinkState keeps a text of at most 1 KiB for the actor, a host's link, for as long
// as the terminal is lent there. If the terminal outlives this daemon, the next daemon
// gets the text. SaveLinkState returns when that is certain, or ctx ends. ErrNotFound
// means that the terminal is not lent there.
func (h Handle) SaveLinkState(ctx context.Context, text string) error {
	t := h.t
	text = clip.Text(text, maxLinkState)
	t.mu.Lock()
	lent := t.loans.Loan(h.actor.Name) != nil
	certain := t.loans.LinkState(h.actor.Name) == text && !t.keeper.running // while saver runs, the text may be on its way to the holder
	if lent && !certain {
		t.loans.SetLinkState(h.actor.Name, text)
	}
	t.mu.Unlock()
	switch {
	case !lent:
		return ErrNotFound
	case certain:
		return nil
	}
	return t.keep(ctx)
}

// Ended returns what the actor, a host's link, stored with SaveLinkState for adopted
// terminals that are no longer lent to it: their lending ended while no daemon could tell
// the host. Each text is returned once, and Changed reports new ones.
func (a Access) Ended() []string {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	texts := a.pool.ended[a.actor.Name]
	delete(a.pool.ended, a.actor.Name)
	return texts
}

// LinkState returns the text of the last SaveLinkState, or "".
func (h Handle) LinkState() string {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.loans.LinkState(h.actor.Name)
}

// ChangeAudience changes the audience at a host to which the terminal is lent. Errors:
// loans.ErrNotLent, loans.ErrTooManyNames.
func (h Handle) ChangeAudience(host string, c loans.AudienceChange) error {
	return h.changeLoan(host, func(t *Terminal, loan *loans.Loan) (*Act, error) {
		changed, err := t.loans.SetAudience(loan, c, t.log.TextEnd())
		if !changed {
			return nil, err
		}
		change := loans.Change{Audience: c}
		kind := ActLend
		if len(c.Grant) == 0 {
			kind = ActUnlend
		}
		return &Act{Kind: kind, Detail: change.Text(&loan.Audience)}, nil
	})
}

// changeLoan has do change the loan to host, and notes what that did; nil is nothing. do
// is called with the terminal's mutex. Errors: loans.ErrNotLent, do's.
func (h Handle) changeLoan(host string, do func(*Terminal, *loans.Loan) (*Act, error)) error {
	if err := h.allow(OpLend); err != nil {
		return err
	}
	t := h.t
	t.mu.Lock()
	loan := t.loans.Loan(host)
	if loan == nil {
		t.mu.Unlock()
		return loans.ErrNotLent
	}
	act, err := do(t, loan)
	t.mu.Unlock()
	if act == nil {
		return err
	}
	t.changed()
	act.Host = host
	return h.did(*act, err)
}

// Unshare ends a share. It also ends the loan if that was only for guests and has no
// other share. Errors: loans.ErrNotLent, loans.ErrNoShare.
func (h Handle) Unshare(host, id string) error {
	return h.changeLoan(host, func(t *Terminal, loan *loans.Loan) (*Act, error) {
		ended, done := t.loans.EndShares(loan, func(s *loans.Share) bool { return s.ID == id })
		if done {
			t.withdrawLocked(host)
		}
		t.watchLoansLocked()
		if len(ended) == 0 {
			return nil, loans.ErrNoShare
		}
		return &Act{Kind: ActUnlend, Detail: "the link " + id}, nil
	})
}

// ForgetShare removes a share that has ended. The actor, a host's link, calls it after it
// has told its host.
func (h Handle) ForgetShare(id string) {
	h.t.mu.Lock()
	forgot := h.t.loans.ForgetShare(h.actor.Name, id)
	h.t.mu.Unlock()
	if forgot {
		h.t.changed()
	}
}

// PortLent returns a port that is open to host, and a context that ends as soon as it is
// not any more; see [loans.List.Use]. The caller must call done. Errors: ErrNotFound,
// loans.ErrNotLent, ErrExited, ErrLeft, and one that is loans.ErrNoPort.
func (h Handle) PortLent(ctx context.Context, host string, port int, may func(*loans.Loan) bool) (p vocab.LentPort, use context.Context, done context.CancelFunc, err error) {
	if err := h.allow(OpRead); err != nil {
		return vocab.LentPort{}, nil, nil, err
	}
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	p, use, end, err := t.loans.Use(ctx, host, port, may)
	if err != nil {
		return vocab.LentPort{}, nil, nil, err
	}
	return p, use, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		end()
	}, nil
}

// DropPorts ends the lending of ports to host; loans.AutoPort stands for the ports on
// which the programs will listen, with those that were found. Errors: loans.ErrNotLent,
// loans.ErrNoPort.
func (h Handle) DropPorts(host string, ports ...int) error {
	return h.changeLoan(host, func(t *Terminal, loan *loans.Loan) (*Act, error) {
		gone, err := t.loans.DropPorts(loan, ports)
		if err != nil {
			return nil, err
		}
		return &Act{Kind: ActUnlend, Detail: loans.EndText("", gone...)}, nil
	})
}

// ClosePort ends the lending of a port to host because of what the daemon found, such as
// a program of somebody else that has the port now; why says that to the person. It does
// nothing if the port is not open there.
func (h Handle) ClosePort(host string, port int, why string) {
	h.t.mu.Lock()
	act, some := h.t.loans.ClosePort(host, port, why)
	h.t.mu.Unlock()
	if some {
		h.t.loansChanged(act)
	}
}

// CountFetch counts a request to a port that is lent to host.
func (h Handle) CountFetch(host string, port int) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.t.loans.CountFetch(host, port) {
		h.t.keepLaterLocked()
	}
}

// FoundPorts says on which ports the terminal's programs listen, see
// [loans.List.FoundPorts].
func (h Handle) FoundPorts(ports []int) {
	h.t.mu.Lock()
	acts := h.t.loans.FoundPorts(ports)
	h.t.mu.Unlock()
	h.t.loansChanged(acts...)
}

// loansChanged tells of changes of loans.
func (t *Terminal) loansChanged(acts ...loans.Act) {
	if len(acts) > 0 {
		t.changed()
	}
	t.report(acts)
}

func (t *Terminal) report(acts []loans.Act) {
	for _, a := range acts {
		kind := ActUnlend
		if a.Begun {
			kind = ActLend
		}
		t.observe(Act{Kind: kind, Host: a.Host, Detail: a.Detail})
	}
}

// OnDispose is the effect of a host's disposal on the terminal.
type OnDispose string

// The choices of the configuration key on_dispose.
const (
	DisposeAuto   OnDispose = "auto"   // withdraw while a person is attached, else kill
	DisposeKill   OnDispose = "kill"   // kill it, even while a person is attached
	DisposeUnlend OnDispose = "unlend" // only withdraw it; it runs on here
)

// Dispose carries out a disposal by the actor, a host, as the person has configured: it
// withdraws the terminal from the host in any case, and kills it unless how keeps it.
// killed reports whether it does.
func (h Handle) Dispose(ctx context.Context, how OnDispose) (killed bool, err error) {
	if err := h.allow(OpDispose); err != nil {
		return false, err
	}
	attached, ports, was := h.t.withdraw(h.actor.Name)
	if !was {
		return false, ErrNotFound // withdrawn by another call meanwhile
	}
	if how == DisposeUnlend || how != DisposeKill && attached > 0 {
		return false, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: loans.EndText("the terminal runs on here", ports...)}, nil)
	}
	return true, h.did(Act{Kind: ActDispose, Host: h.actor.Name, Detail: loans.EndText("the terminal was killed", ports...)}, h.t.terminate(ctx, vocab.ExitKilled))
}
