package hosts

import (
	"context"
	"crypto/rand"
	"strings"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp/client"
	"tether/internal/loopback"
)

// A private host is one that a command of the person has started on loopback for one
// terminal. It is linked to for the time of one request, is not stored, and is not among
// the hosts that requests can name.

// privateHost is a private host, and the terminal that it takes.
type privateHost struct {
	host
	id term.ID
}

// LinkPrivate implements local.Hosts.
func (p *Paired) LinkPrivate(ctx context.Context, at localapi.PrivateHost, id term.ID) (name string, end func(), err error) {
	address, err := hostURL(at.URL)
	if err != nil {
		return "", nil, err
	}
	if !loopback.Is(address.Hostname()) {
		return "", nil, localapi.BadRequest("a private host must be on loopback, such as ws://127.0.0.1:port")
	}
	if err := checkToken(at.Token); err != nil {
		return "", nil, err
	}
	// A name of its own, so that nothing that is kept for the host of an earlier request
	// is taken for this one's.
	h := host{Name: "here-" + strings.ToLower(rand.Text()[:6]), URL: address.String(), Token: at.Token, ClientID: client.NewID(), OnDispose: term.DisposeUnlend}
	if err := p.verify(ctx, h); err != nil {
		return "", nil, err
	}
	p.private.Store(h.Name, privateHost{h, id})
	p.links.start(h, p.store.endpoint(h))
	p.opts.Logger.Info().Str("host", h.Name).Str("terminal", string(id)).Msg("linked to a private host")
	end = func() { p.leavePrivate(h, id) }
	if err := p.awaitOnline(ctx, h.Name); err != nil {
		end()
		return "", nil, err
	}
	return h.Name, end, nil
}

// awaitOnline waits until the link of that name is online.
func (p *Paired) awaitOnline(ctx context.Context, name string) error {
	wait(verifyTimeout, func() bool {
		s, _ := p.links.status(name)
		return s.State == uplink.StateOnline || ctx.Err() != nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return shareError(name, p.links.find(name).link.TakesShares())
}

// leavePrivate lends nothing to a private host any more, tells it so if it is still
// there, and ends the link.
func (p *Paired) leavePrivate(h host, id term.ID) {
	p.private.Delete(h.Name)
	if lent, err := p.pool.As(term.User).Terminal(id); err == nil {
		_ = lent.Unlend(h.Name) // fails if it was withdrawn before
	}
	p.links.withdrawn(h.Name)
	p.links.stop(h.Name)
	p.forgetCalls(h)
	p.opts.Logger.Info().Str("host", h.Name).Msg("left a private host")
}

// Lendable reports whether terminals may be lent to a host of that name now: a paired
// one, or a private one.
func (p *Paired) Lendable(name string) bool {
	_, private := p.private.Load(name)
	return private || p.Has(name)
}

// Takes reports whether this terminal may be lent to the host: a private one takes a
// single terminal.
func (p *Paired) Takes(name string, id term.ID) bool {
	one, private := p.private.Load(name)
	return !private || one.(privateHost).id == id
}

// PrivateStatus is Status of the private hosts.
func (p *Paired) PrivateStatus() (all []localapi.HostStatus) {
	p.private.Range(func(_, one any) bool {
		all = append(all, p.hostStatus(one.(privateHost).host))
		return true
	})
	return all
}
