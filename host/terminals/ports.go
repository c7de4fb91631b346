package terminals

import (
	"cmp"
	"slices"
	"strings"

	"tether/ahp"
	"tether/host/ports"
	"tether/host/rights"
)

// PortFacts returns what decides about the ports of t for a principal.
func (b *Book) PortFacts(p *rights.Principal, t *Terminal) ports.Facts {
	v := b.Roster.Viewer(*p)
	v.GuestPort = 0 // with it, a guest sees nothing at all
	_, sees := v.Sees(t.Subject, b.Roster)
	return ports.Facts{
		Sees: sees && !t.gone(), Runs: t.Remote() && !t.State.Lifecycle.Exited(), Away: t.IsAway(), Old: !t.Creator.Ports,
		Opened: t.State.Meta.Ports,
	}
}

// CountPort counts a request to a port.
func (t *Terminal) CountPort(port int64) {
	t.Ports.Count(port)
	t.touch(inRows)
}

// recheckPorts ends the requests to ports of t whose principals may not send them
// any more.
func (b *Book) recheckPorts(t *Terminal) {
	t.Ports.Recheck(func(p *rights.Principal) ports.Facts { return b.PortFacts(p, t) })
}

// SetPorts replaces the open ports of a terminal.
func (b *Book) SetPorts(t *Terminal, all []ahp.LentPort) {
	before := t.State.Meta.Ports
	if slices.Equal(before, all) {
		return
	}
	t.State.Meta.Ports = all
	b.auditPorts(t, before)
	b.recheckPorts(t)
	t.touch(inCatalogue)
}

// auditPorts records which ports were opened and closed.
func (b *Book) auditPorts(t *Terminal, before []ahp.LentPort) {
	said := t.Ports.Changed(before, t.State.Meta.Ports, cmp.Or(strings.Join(t.MayWatch(), ", "), "nobody"))
	if len(said) == 0 || t.Mirror() != nil || b.closed {
		return
	}
	by, uri := t.Creator.Who, t.URI
	b.opts.Go(func() {
		for _, detail := range said {
			b.opts.Audit(rights.AuditPort, by, rights.AuditEvent{Terminal: uri, Detail: detail})
		}
	})
}
