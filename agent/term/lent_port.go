package term

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/internal/clip"
	"tether/vocab"
)

// LentPort is a port of a Loan. FoundPorts adds those on which the programs listen to a
// loan with AutoPort.
type LentPort = vocab.LentPort

// AutoPort is LentPort.Port for ports that are not known yet.
const AutoPort = 0

// Bounds of lent ports.
const (
	MaxPorts  = 16   // of a loan
	LeastPort = 1024 // lower ones belong to the system's servers
	maxPort   = 65535

	maxClosed = 200 // bytes of LentPort.Closed
)

// Errors of lent ports.
var (
	// ErrTooManyPorts: a loan would have more ports than MaxPorts.
	ErrTooManyPorts = errors.New("too many ports")
	// ErrNoPort: the port is not open to the host, or not to whoever asks.
	ErrNoPort = errors.New("the port is not shared")
)

func portOver(p LentPort) bool {
	l := Loan{Until: p.Until}
	return l.over()
}

// portName names a port in the audit log.
func portName(port int) string {
	if port == AutoPort {
		return "the ports on which its programs will listen"
	}
	return "port " + strconv.Itoa(port)
}

// ended describes the end of ports in the audit log, with how often each was used.
func ended(what string, ports ...LentPort) string {
	var parts []string
	if what != "" {
		parts = append(parts, what)
	}
	for _, p := range ports {
		text := portName(p.Port)
		if p.Port != AutoPort {
			text += fmt.Sprintf(", fetched %d times", p.Fetched)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// portUse is a use of a lent port, such as a request. Guarded by the terminal's mutex.
type portUse struct {
	host string
	port LentPort // as the use began
	may  func(*Loan) bool
	end  context.CancelCauseFunc
}

// PortLent returns a port that is open to host, and a context that ends as soon as it is
// not any more, for whatever reason, which is then the context's cause. may reports
// whether whoever asks is in the loan's audience, nil for always; it is called with the
// terminal's lock, again whenever the loan changes. The caller must call done. Errors:
// ErrNotFound, ErrNotLent, ErrExited, and one that is ErrNoPort.
func (h Handle) PortLent(ctx context.Context, host string, port int, may func(*Loan) bool) (p LentPort, use context.Context, done context.CancelFunc, err error) {
	if err := h.allow(OpRead); err != nil {
		return LentPort{}, nil, nil, err
	}
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, err = t.openPortLocked(host, port, may); err != nil {
		return LentPort{}, nil, nil, err
	}
	use, end := context.WithCancelCause(ctx)
	u := &portUse{host, p, may, end}
	if t.lending.uses == nil {
		t.lending.uses = map[*portUse]struct{}{}
	}
	t.lending.uses[u] = struct{}{}
	return p, use, func() {
		t.mu.Lock()
		delete(t.lending.uses, u)
		t.mu.Unlock()
		end(nil)
	}, nil
}

func (t *Terminal) openPortLocked(host string, port int, may func(*Loan) bool) (LentPort, error) {
	loan := t.lending.loan(host)
	switch {
	case isClosed(t.life.left):
		return LentPort{}, ErrLeft
	case t.ending.exit != nil:
		return LentPort{}, ErrExited
	case loan == nil || loan.over():
		return LentPort{}, ErrNotLent
	case may != nil && !may(loan):
		return LentPort{}, fmt.Errorf("%w with you", ErrNoPort)
	}
	p := loan.port(port)
	switch {
	case p == nil || port == AutoPort || portOver(*p):
		return LentPort{}, ErrNoPort
	case p.Closed != "":
		return LentPort{}, fmt.Errorf("%w any more: %s", ErrNoPort, p.Closed)
	}
	return *p, nil
}

// OpenPorts returns the ports that the host may use now.
func (l *Loan) OpenPorts() []LentPort {
	return slices.DeleteFunc(slices.Clone(l.Ports), func(p LentPort) bool { return !p.IsOpen() || portOver(p) })
}

// port returns a port of the loan, or nil.
func (l *Loan) port(number int) *LentPort {
	if i := slices.IndexFunc(l.Ports, func(p LentPort) bool { return p.Port == number }); i >= 0 {
		return &l.Ports[i]
	}
	return nil
}

// checkPortsLocked ends the uses of ports that may not be used any more. It is called
// after a loan has changed, and at the terminal's end.
func (t *Terminal) checkPortsLocked() {
	for u := range t.lending.uses {
		now, err := t.openPortLocked(u.host, u.port.Port, u.may)
		if err == nil && u.port.Write && !now.Write {
			err = fmt.Errorf("%w for writing any more", ErrNoPort)
		}
		if err != nil {
			u.end(err)
			delete(t.lending.uses, u)
		}
	}
}

// setPortsLocked replaces the ports of a loan and ends uses of those that are not open
// any more. The loan is in t.lending, or will be.
func (t *Terminal) setPortsLocked(l *Loan, all []LentPort) {
	t.lending.version++
	l.Ports, l.Version = all, t.lending.version
	t.checkPortsLocked()
}

// changedPorts returns the ports of the loan after some are opened and others removed,
// and whether those are others. A port that is open already keeps its count. Without
// AutoPort, the ports that were found for it go, too.
func (l *Loan) changedPorts(open []LentPort, drop []int) (all []LentPort, other bool, err error) {
	all = slices.DeleteFunc(slices.Clone(l.Ports), func(p LentPort) bool {
		return slices.Contains(drop, p.Port) || p.Auto && slices.Contains(drop, AutoPort)
	})
	other = len(all) != len(l.Ports)
	for _, p := range open {
		p.Since, p.Auto, p.Closed, p.Fetched, p.Latest = time.Now(), p.Port == AutoPort, "", 0, time.Time{}
		i := slices.IndexFunc(all, func(old LentPort) bool { return old.Port == p.Port })
		if i < 0 {
			all, other = append(all, p), true
			continue
		}
		if old := all[i]; old.Closed == "" {
			p.Since, p.Fetched, p.Latest = old.Since, old.Fetched, old.Latest
		}
		other = other || all[i] != p
		all[i] = p
	}
	if len(all) > MaxPorts {
		return nil, false, fmt.Errorf("%w: at most %d may be shared with one host", ErrTooManyPorts, MaxPorts)
	}
	return all, other, nil
}

// DropPorts ends the lending of ports to host; AutoPort stands for the ports on which the
// programs will listen, with those that were found. Errors: ErrNotLent, ErrNoPort.
func (h Handle) DropPorts(host string, ports ...int) error {
	return h.changeLoan(host, func(t *Terminal, loan *Loan) (*Act, error) {
		for _, port := range ports {
			if loan.port(port) == nil {
				return nil, ErrNoPort
			}
		}
		left, _, err := loan.changedPorts(nil, ports)
		if err != nil {
			return nil, err
		}
		gone := slices.DeleteFunc(slices.Clone(loan.Ports), func(p LentPort) bool { return slices.Contains(left, p) })
		t.setPortsLocked(loan, left)
		return &Act{Kind: ActUnlend, Detail: ended("", gone...)}, nil
	})
}

// ClosePort ends the lending of a port to host because of what the daemon found, such as
// a program of somebody else that has the port now; why says that to the person. It does
// nothing if the port is not open there.
func (h Handle) ClosePort(host string, port int, why string) {
	t := h.t
	t.mu.Lock()
	l := t.lending.loan(host)
	i := -1
	if l != nil {
		i = slices.IndexFunc(l.Ports, func(p LentPort) bool { return p.Port == port && p.IsOpen() })
	}
	if i >= 0 {
		all := slices.Clone(l.Ports)
		all[i].Closed = clip.Text(why, maxClosed)
		t.setPortsLocked(l, all)
		why = ended(all[i].Closed, all[i])
	}
	t.mu.Unlock()
	if i >= 0 {
		t.changed()
		t.observe(Act{Kind: ActUnlend, Host: host, Detail: why})
	}
}

// CountFetch counts a request to a port that is lent to host.
func (h Handle) CountFetch(host string, port int) {
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lending.loan(host)
	if l == nil || l.port(port) == nil {
		return
	}
	l.Ports = slices.Clone(l.Ports) // an Info may have the old one
	p := l.port(port)
	p.Fetched, p.Latest = p.Fetched+1, time.Now()
	t.keepLaterLocked()
}

// FoundPorts says on which ports the terminal's programs listen. A loan with AutoPort
// gets those as ports of its own, as far as MaxPorts leaves room. It then loses others
// that were found for it before.
func (h Handle) FoundPorts(ports []int) {
	t := h.t
	var acts []Act
	t.mu.Lock()
	for i := range t.lending.loans {
		l := &t.lending.loans[i]
		auto := l.port(AutoPort)
		fresh := slices.DeleteFunc(slices.Clone(ports), func(port int) bool {
			return port < LeastPort || port > maxPort || l.port(port) != nil
		})
		if auto == nil || len(fresh) == 0 || t.ending.exit != nil {
			continue
		}
		all := slices.DeleteFunc(slices.Clone(l.Ports), func(p LentPort) bool { return p.Auto && p.Port != AutoPort && !slices.Contains(ports, p.Port) })
		fresh = fresh[:min(len(fresh), MaxPorts-len(all))]
		for _, port := range fresh {
			p := *auto
			p.Port, p.Auto, p.Since = port, true, time.Now()
			all = append(all, p)
			acts = append(acts, Act{Kind: ActLend, Host: l.Host, Detail: portName(p.Port)})
		}
		if len(fresh) > 0 {
			t.setPortsLocked(l, all)
		}
	}
	t.mu.Unlock()
	if len(acts) > 0 {
		t.changed()
	}
	for _, a := range acts {
		t.observe(a)
	}
}

// endPortsLocked removes the ports whose time is over, or all of an exited terminal, and
// returns the acts to report.
func (t *Terminal) endPortsLocked() (acts []Act) {
	for i := range t.lending.loans {
		l := &t.lending.loans[i]
		over := func(p LentPort) bool { return portOver(p) || t.ending.exit != nil }
		left := slices.DeleteFunc(slices.Clone(l.Ports), over)
		if len(left) == len(l.Ports) {
			continue
		}
		why := "the time was up"
		if t.ending.exit != nil {
			why = "the terminal has ended"
		}
		gone := slices.DeleteFunc(slices.Clone(l.Ports), func(p LentPort) bool { return !over(p) })
		acts = append(acts, Act{Kind: ActUnlend, Host: l.Host, Detail: ended(why, gone...)})
		t.setPortsLocked(l, left)
	}
	return acts
}

// expirePorts ends ports whose time is over.
func (t *Terminal) expirePorts() {
	t.mu.Lock()
	acts := t.endPortsLocked()
	t.mu.Unlock()
	if len(acts) > 0 {
		t.changed()
	}
	for _, a := range acts {
		t.observe(a)
	}
}
