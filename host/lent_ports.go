package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/page"
	"tether/host/ports"
	"tether/host/rights"
	"tether/jsonrpc"
)

// Lent ports: package ports carries the requests. This file has the facts by which it
// decides who may send them, and the request by which their owner opens and closes them.

// openPorts makes the ways to lent ports.
func (h *Host) openPorts() {
	o := ports.Options{Terminals: portTerminals{h}, Log: h.log, Audit: func(kind string, p rights.Principal, terminal, detail string) {
		h.audit(kind, remote{principal: p}, rights.AuditEvent{Terminal: terminal, Detail: detail})
	}}
	if h.opts.Nodes != nil {
		o.Unlapsed, o.Dial = h.gate.Unlapsed, h.opts.Nodes.Dial
	}
	h.ports = ports.New(o)
}

// portTerminals implements ports.Terminals.
type portTerminals struct{ h *Host }

// Route implements ports.Terminals.
func (x portTerminals) Route(p *rights.Principal, uri string, port int, use *ports.Use) (r ports.Route, err error) {
	h := x.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.knownLocked(uri)
	if t == nil {
		return r, ports.ErrUnseen
	}
	facts := h.portFactsLocked(p, t)
	l, err := facts.Find(p, port)
	if err != nil {
		return r, err
	}
	v := h.roster.Viewer(*p)
	r = ports.Route{Reader: h.readerLocked(&v, &t.creator.principal, t.withdrawn), Since: l.SinceMs}
	if p.Guest != "" {
		r.Reader = ahp.Reader{Guest: strings.TrimPrefix(p.Name, rights.GuestName)}
	}
	if m := t.mirror(); m != nil {
		r.Node = m.node
	} else if r.Machine, err = t.creator.portsLocked(); err != nil {
		return r, err
	}
	if use != nil {
		t.ports.Begin(use, l.SinceMs)
		if t.mirror() == nil { // else its node counts
			t.countPortLocked(l.Port)
		}
	}
	return r, nil
}

// portFactsLocked returns what decides about the ports of t for a principal.
func (h *Host) portFactsLocked(p *rights.Principal, t *terminal) ports.Facts {
	v := h.roster.Viewer(*p)
	v.GuestPort = 0 // with it, a guest sees nothing at all
	_, sees := v.Sees(t.subject, h.roster)
	return ports.Facts{
		Sees: sees && !t.gone(), Runs: t.remote() && !t.state.Lifecycle.Exited(), Away: t.isAway(), Old: !t.creator.ports,
		Opened: t.state.Meta.Ports,
	}
}

// countPortLocked counts a request to a port.
func (t *terminal) countPortLocked(port int64) {
	t.ports.Count(port)
	t.touch(inRows)
}

// Here implements ports.Terminals.
func (x portTerminals) Here(uri string, port int) *ports.Machine {
	h := x.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[uri]
	if t == nil || t.mirror() != nil || t.bound() == nil || ports.Number(t.state.Meta.Ports, port) == nil {
		return nil
	}
	machine, err := t.creator.portsLocked()
	if err != nil {
		return nil
	}
	t.countPortLocked(int64(port))
	return machine
}

// Lendings implements ports.Terminals.
func (x portTerminals) Lendings(port int) (all []ports.Lending) {
	h := x.h
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.everyLocked() {
		if l := ports.Number(t.state.Meta.Ports, port); l != nil {
			all = append(all, ports.Lending{LentPort: *l, URI: t.uri, Terminal: t.creator.Machine() + "/" + t.name, Client: t.creator.id, ID: t.id})
		}
	}
	return all
}

// openPortsLocked returns the ports that are open to the audience.
func (t *terminal) openPortsLocked() (all []page.OpenPort) {
	for _, l := range t.state.Meta.Ports {
		if !l.GuestsOnly {
			shown := agenttools.LentPort{Port: int(l.Port), Write: l.Write}
			all = append(all, page.OpenPort{LentPort: shown, Until: l.UntilMs, Fetched: t.ports.Asked[l.Port]})
		}
	}
	return all
}

// portsLocked returns the way to the machine's lent ports on its present connection. It
// ends with that.
func (cl *client) portsLocked() (*ports.Machine, error) {
	c := cl.conn
	switch {
	case c == nil || c.closing:
		return nil, ports.ErrAway
	case !cl.ports:
		return nil, ports.ErrOld
	}
	if c.ports == nil {
		c.ports = ports.NewMachine(c.peer)
	}
	return c.ports, nil
}

// recheckPortsLocked ends the requests to ports of t whose principals may not send them
// any more.
func (h *Host) recheckPortsLocked(t *terminal) {
	t.ports.Recheck(func(p *rights.Principal) ports.Facts { return h.portFactsLocked(p, t) })
}

// lentPorts serves ahp.MethodLentPorts: the owner of a terminal replaces its open ports.
func (c *conn) lentPorts(r *jsonrpc.Request) error {
	var p ahp.LentPortsParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	if !c.may(rights.Lend) {
		return c.Denied("lend ports")
	}
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[p.Channel]
	if t == nil || !t.ownedBy(c) {
		return errUnknownChannel
	}
	h.setPortsLocked(t, p.Ports)
	return r.Reply(struct{}{})
}

// setPortsLocked replaces the open ports of a terminal.
func (h *Host) setPortsLocked(t *terminal, all []ahp.LentPort) {
	before := t.state.Meta.Ports
	if slices.Equal(before, all) {
		return
	}
	t.state.Meta.Ports = all
	h.auditPortsLocked(t, before)
	h.recheckPortsLocked(t)
	t.touch(inCatalogue)
}

// auditPortsLocked records which ports were opened and closed.
func (h *Host) auditPortsLocked(t *terminal, before []ahp.LentPort) {
	said := t.ports.Changed(before, t.state.Meta.Ports, cmp.Or(strings.Join(t.mayWatchLocked(), ", "), "nobody"))
	if len(said) == 0 || h.opts.Audit == nil || t.mirror() != nil || h.closed {
		return
	}
	by, uri := remote{principal: t.creator.principal}, t.uri
	h.work.Go(func() {
		for _, detail := range said {
			h.audit(rights.AuditPort, by, rights.AuditEvent{Terminal: uri, Detail: detail})
		}
	})
}

var errShellPorts = errors.New("the terminal is a shell of the host, which lends no ports")

// FarFetch implements agenttools.FarFetcher.
func (w *watched) FarFetch(ctx context.Context, id string, port int, args json.RawMessage, shows int) (*agenttools.FetchAnswer, *agenttools.Blob, error) {
	h := w.h
	at, ok := catalogue{h, &w.p}.find(id)
	if !ok {
		return nil, nil, agenttools.ErrNotFound
	}
	f := ports.Fetch{Agent: w.p, Info: at.Info(), Port: port, Args: args, Shows: shows}
	h.mu.Lock()
	lent := at.t.remote()
	f.URI, f.Machine = at.t.uri, at.t.creator.id
	h.mu.Unlock()
	if !lent {
		return nil, nil, errShellPorts
	}
	return h.ports.Fetch(ctx, f)
}
