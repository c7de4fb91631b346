package loans

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

// AutoPort is vocab.LentPort.Port for ports that are not known yet.
const AutoPort = 0

// Bounds of lent ports.
const (
	MaxPorts  = 16   // of a loan
	LeastPort = 1024 // lower ones belong to the system's servers
	maxPort   = 65535

	maxClosed = 200 // bytes of vocab.LentPort.Closed
)

// Errors of lent ports.
var (
	// ErrTooManyPorts: a loan would have more ports than MaxPorts.
	ErrTooManyPorts = errors.New("too many ports")
	// ErrNoPort: the port is not open to the host, or not to whoever asks.
	ErrNoPort = errors.New("the port is not shared")
)

// portName names a port in the audit log.
func portName(port int) string {
	if port == AutoPort {
		return "the ports on which its programs will listen"
	}
	return "port " + strconv.Itoa(port)
}

// EndText describes the end of ports in the audit log, with how often each was used.
func EndText(what string, ports ...vocab.LentPort) string {
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

// Act is something that was done with a loan, for the audit log.
type Act struct {
	Begun        bool // otherwise something has ended
	Host, Detail string
}

// use is a use of a lent port, such as a request.
type use struct {
	host string
	port vocab.LentPort // as the use began
	may  func(*Loan) bool
	end  context.CancelCauseFunc
}

// Use returns a port that is open to host, and a context that ends as soon as it is not
// any more, for whatever reason, which is then the context's cause. may reports whether
// whoever asks is in the loan's audience, nil for always; it is called with the lock,
// again whenever the loan changes. The caller must call done, without the lock. Errors:
// ErrNotLent, that of Stop, and one that is ErrNoPort.
func (l *List) Use(ctx context.Context, host string, port int, may func(*Loan) bool) (p vocab.LentPort, in context.Context, done func(), err error) {
	if p, err = l.openPort(host, port, may); err != nil {
		return vocab.LentPort{}, nil, nil, err
	}
	in, end := context.WithCancelCause(ctx)
	u := &use{host, p, may, end}
	if l.uses == nil {
		l.uses = map[*use]struct{}{}
	}
	l.uses[u] = struct{}{}
	return p, in, func() { delete(l.uses, u); end(nil) }, nil
}

func (l *List) openPort(host string, port int, may func(*Loan) bool) (vocab.LentPort, error) {
	loan := l.Loan(host)
	switch {
	case l.over != nil:
		return vocab.LentPort{}, l.over
	case loan == nil || over(loan.Until):
		return vocab.LentPort{}, ErrNotLent
	case may != nil && !may(loan):
		return vocab.LentPort{}, fmt.Errorf("%w with you", ErrNoPort)
	}
	p := loan.Port(port)
	switch {
	case p == nil || port == AutoPort || over(p.Until):
		return vocab.LentPort{}, ErrNoPort
	case p.Closed != "":
		return vocab.LentPort{}, fmt.Errorf("%w any more: %s", ErrNoPort, p.Closed)
	}
	return *p, nil
}

// OpenPorts returns the ports that the host may use now.
func (l *Loan) OpenPorts() []vocab.LentPort {
	return slices.DeleteFunc(slices.Clone(l.Ports), func(p vocab.LentPort) bool { return !p.IsOpen() || over(p.Until) })
}

// Port returns a port of the loan, or nil.
func (l *Loan) Port(number int) *vocab.LentPort {
	if i := slices.IndexFunc(l.Ports, func(p vocab.LentPort) bool { return p.Port == number }); i >= 0 {
		return &l.Ports[i]
	}
	return nil
}

// Stop ends the uses of all ports for good, for a reason that is the error of later ones.
func (l *List) Stop(why error) {
	l.over = why
	l.checkPorts()
}

// checkPorts ends the uses of ports that may not be used any more. It is called after a
// loan has changed.
func (l *List) checkPorts() {
	for u := range l.uses {
		now, err := l.openPort(u.host, u.port.Port, u.may)
		if err == nil && u.port.Write && !now.Write {
			err = fmt.Errorf("%w for writing any more", ErrNoPort)
		}
		if err != nil {
			u.end(err)
			delete(l.uses, u)
		}
	}
}

// setPorts replaces the ports of a loan, which is in l or will be, and ends uses of those
// that are not open any more.
func (l *List) setPorts(loan *Loan, all []vocab.LentPort) {
	loan.Ports = all
	l.touch(loan)
	l.checkPorts()
}

// changedPorts returns the ports of the loan after some are opened and others removed,
// and whether those are others. A port that is open already keeps its count. Without
// AutoPort, the ports that were found for it go, too.
func (l *Loan) changedPorts(open []vocab.LentPort, drop []int) (all []vocab.LentPort, other bool, err error) {
	all = slices.DeleteFunc(slices.Clone(l.Ports), func(p vocab.LentPort) bool {
		return slices.Contains(drop, p.Port) || p.Auto && slices.Contains(drop, AutoPort)
	})
	other = len(all) != len(l.Ports)
	for _, p := range open {
		p.Since, p.Auto, p.Closed, p.Fetched, p.Latest = time.Now(), p.Port == AutoPort, "", 0, time.Time{}
		i := slices.IndexFunc(all, func(old vocab.LentPort) bool { return old.Port == p.Port })
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

// DropPorts removes ports of a loan; AutoPort stands for the ports on which the programs
// will listen, with those that were found. It returns those that are gone.
func (l *List) DropPorts(loan *Loan, ports []int) (gone []vocab.LentPort, err error) {
	for _, port := range ports {
		if loan.Port(port) == nil {
			return nil, ErrNoPort
		}
	}
	left, _, err := loan.changedPorts(nil, ports)
	if err != nil {
		return nil, err
	}
	gone = slices.DeleteFunc(slices.Clone(loan.Ports), func(p vocab.LentPort) bool { return slices.Contains(left, p) })
	l.setPorts(loan, left)
	return gone, nil
}

// ClosePort ends the lending of a port to host for a reason. some is false if the port is
// not open there.
func (l *List) ClosePort(host string, port int, why string) (a Act, some bool) {
	loan := l.Loan(host)
	if loan == nil {
		return Act{}, false
	}
	i := slices.IndexFunc(loan.Ports, func(p vocab.LentPort) bool { return p.Port == port && p.IsOpen() })
	if i < 0 {
		return Act{}, false
	}
	all := slices.Clone(loan.Ports)
	all[i].Closed = clip.Text(why, maxClosed)
	l.setPorts(loan, all)
	return Act{Host: host, Detail: EndText(all[i].Closed, all[i])}, true
}

// CountFetch counts a request to a port that is lent to host, and reports whether it is.
func (l *List) CountFetch(host string, port int) bool {
	loan := l.Loan(host)
	if loan == nil || loan.Port(port) == nil {
		return false
	}
	loan.Ports = slices.Clone(loan.Ports) // somebody may have the old one
	p := loan.Port(port)
	p.Fetched, p.Latest = p.Fetched+1, time.Now()
	return true
}

// FoundPorts gives each loan with AutoPort the ports on which the terminal's programs
// listen, as far as MaxPorts leaves room. It then loses others that were found for it
// before.
func (l *List) FoundPorts(ports []int) (acts []Act) {
	for i := range l.loans {
		one := &l.loans[i]
		auto := one.Port(AutoPort)
		fresh := slices.DeleteFunc(slices.Clone(ports), func(port int) bool {
			return port < LeastPort || port > maxPort || one.Port(port) != nil
		})
		if auto == nil || len(fresh) == 0 || l.over != nil {
			continue
		}
		all := slices.DeleteFunc(slices.Clone(one.Ports), func(p vocab.LentPort) bool {
			return p.Auto && p.Port != AutoPort && !slices.Contains(ports, p.Port)
		})
		fresh = fresh[:min(len(fresh), MaxPorts-len(all))]
		for _, port := range fresh {
			p := *auto
			p.Port, p.Auto, p.Since = port, true, time.Now()
			all = append(all, p)
			acts = append(acts, Act{Begun: true, Host: one.Host, Detail: portName(p.Port)})
		}
		if len(fresh) > 0 {
			l.setPorts(one, all)
		}
	}
	return acts
}

// EndPorts removes the ports whose time is over, or with all set all of them, because the
// terminal has ended.
func (l *List) EndPorts(all bool) (acts []Act) {
	why := "the time was up"
	if all {
		why = "the terminal has ended"
	}
	for i := range l.loans {
		one := &l.loans[i]
		ends := func(p vocab.LentPort) bool { return all || over(p.Until) }
		left := slices.DeleteFunc(slices.Clone(one.Ports), ends)
		if len(left) == len(one.Ports) {
			continue
		}
		gone := slices.DeleteFunc(slices.Clone(one.Ports), func(p vocab.LentPort) bool { return !ends(p) })
		acts = append(acts, Act{Host: one.Host, Detail: EndText(why, gone...)})
		l.setPorts(one, left)
	}
	return acts
}
