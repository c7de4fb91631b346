package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/page"
	"tether/host/ports"
	"tether/host/rights"
	"tether/host/terminals"
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
	t := h.terminals.Known(uri)
	if t == nil {
		return r, ports.ErrUnseen
	}
	facts := h.terminals.PortFacts(p, t)
	l, err := facts.Find(p, port)
	if err != nil {
		return r, err
	}
	v := h.terminals.Roster.Viewer(*p)
	r = ports.Route{Reader: h.readerLocked(&v, &t.Creator.Who, t.Withdrawn), Since: l.SinceMs}
	if p.Guest != "" {
		r.Reader = ahp.Reader{Guest: strings.TrimPrefix(p.Name, rights.GuestName)}
	}
	if m := t.Mirror(); m != nil {
		r.Node = m.Node
	} else if r.Machine, err = portsOfLocked(t.Creator); err != nil {
		return r, err
	}
	if use != nil {
		t.Ports.Begin(use, l.SinceMs)
		if t.Mirror() == nil { // else its node counts
			t.CountPort(l.Port)
		}
	}
	return r, nil
}

// Here implements ports.Terminals.
func (x portTerminals) Here(uri string, port int) *ports.Machine {
	h := x.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals.ByURI[uri]
	if t == nil || t.Mirror() != nil || t.Bound() == nil || ports.Number(t.State.Meta.Ports, port) == nil {
		return nil
	}
	machine, err := portsOfLocked(t.Creator)
	if err != nil {
		return nil
	}
	t.CountPort(int64(port))
	return machine
}

// Lendings implements ports.Terminals.
func (x portTerminals) Lendings(port int) (all []ports.Lending) {
	h := x.h
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.terminals.Every() {
		if l := ports.Number(t.State.Meta.Ports, port); l != nil {
			all = append(all, ports.Lending{LentPort: *l, URI: t.URI, Terminal: t.Creator.Machine() + "/" + t.Name, Client: t.Creator.ID(), ID: t.ID})
		}
	}
	return all
}

// openPortsLocked returns the ports that are open to the audience.
func openPortsLocked(t *terminals.Terminal) (all []page.OpenPort) {
	for _, l := range t.State.Meta.Ports {
		if !l.GuestsOnly {
			shown := agenttools.LentPort{Port: int(l.Port), Write: l.Write}
			all = append(all, page.OpenPort{LentPort: shown, Until: l.UntilMs, Fetched: t.Ports.Asked[l.Port]})
		}
	}
	return all
}

// portsOfLocked returns the way to a machine's lent ports on its present connection. It
// ends with that.
func portsOfLocked(cl *terminals.Client) (*ports.Machine, error) {
	c := connOf(cl)
	switch {
	case c == nil || c.closing:
		return nil, ports.ErrAway
	case !cl.Ports:
		return nil, ports.ErrOld
	}
	if c.ports == nil {
		c.ports = ports.NewMachine(c.peer)
	}
	return c.ports, nil
}

var errShellPorts = errors.New("the terminal is a shell of the host, which lends no ports")

// agentView is what an agent sees of the terminals.
type agentView struct {
	*terminals.Watched
	h *Host
}

// FarFetch implements agenttools.FarFetcher.
func (w agentView) FarFetch(ctx context.Context, id string, port int, args json.RawMessage, shows int) (*agenttools.FetchAnswer, *agenttools.Blob, error) {
	h := w.h
	at, ok := h.terminals.View(&w.P).Find(id)
	if !ok {
		return nil, nil, agenttools.ErrNotFound
	}
	machine, lent := at.Lender()
	if !lent {
		return nil, nil, errShellPorts
	}
	f := ports.Fetch{Agent: w.P, Info: at.Info(), URI: at.URI(), Machine: machine, Port: port, Args: args, Shows: shows}
	return h.ports.Fetch(ctx, f)
}
