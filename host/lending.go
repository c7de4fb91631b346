package host

import (
	"encoding/json"
	"time"

	"tether/ahp"
	"tether/host/rights"
	"tether/jsonrpc"
	"tether/screen"
)

// audienceOf returns the audience in the _meta of a createTerminal; told is false if
// there is none.
func audienceOf(p *ahp.CreateTerminalParams) (said ahp.Audience, told bool, err error) {
	said, told, err = ahp.FindAudience(p.Meta)
	if err != nil {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err.Error())
	}
	return said, told, err
}

// setAudience handles a terminal owner's request to set the audience. Without a channel,
// the request only asks which names the host would refuse.
func (c *conn) setAudience(r *jsonrpc.Request) error {
	var p ahp.AudienceParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	if !c.may(rights.Lend) {
		return c.Denied("lend terminals")
	}
	h := c.h
	m := h.terminals.Understand(p.Audience)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals.ByURI[p.Channel]
	if p.Channel != "" && (t == nil || !t.OwnedBy(&c.link)) {
		return errUnknownChannel
	}
	if len(m.Refused) > 0 {
		data, _ := json.Marshal(ahp.RefusedNames{Names: m.Refused}) // names
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "nobody here is called so", Data: data}
	}
	if t != nil {
		h.terminals.SetAudience(t, h.terminals.Resolve(m, t))
	}
	return r.Reply(struct{}{})
}

// park serves ahp.MethodPark: the owner of a terminal has changed what it allows.
func (c *conn) park(r *jsonrpc.Request) error {
	var p ahp.ParkParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	if !c.may(rights.Lend) {
		return c.Denied("lend terminals")
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	t := c.h.terminals.ByURI[p.Channel]
	if t == nil || !t.OwnedBy(&c.link) {
		return errUnknownChannel
	}
	t.SetPark(p.Park)
	return r.Reply(struct{}{})
}

// listParked serves ahp.MethodParked.
func (c *conn) listParked(r *jsonrpc.Request) error {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	var own, others []ahp.Parked
	for _, t := range c.h.terminals.Parked {
		p := t.Parked()
		if !c.link.Sees(t) {
			continue
		}
		one := ahp.Parked{Channel: t.URI, ID: t.ID, Machine: screen.Clean(t.Creator.Machine()), Name: screen.Clean(t.Name), Title: screen.Clean(t.State.Title), Dropped: p.Dropped,
			AwayMs: max(0, time.Since(p.Since).Milliseconds()), LeftMs: max(0, time.Until(p.Until).Milliseconds()), Own: t.LentBy(c.link.Client)}
		if one.Own {
			own = append(own, one)
		} else {
			others = append(others, one)
		}
	}
	all := append(append([]ahp.Parked{}, own...), others...)
	some := all[:min(len(all), ahp.MaxParked)]
	return r.Reply(ahp.ParkedResult{Terminals: some, More: int64(len(all) - len(some))})
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
	t := h.terminals.ByURI[p.Channel]
	if t == nil || !t.OwnedBy(&c.link) {
		return errUnknownChannel
	}
	h.terminals.SetPorts(t, p.Ports)
	return r.Reply(struct{}{})
}

// inputSaid handles the report of a terminal's owner. It ignores reports from anybody
// else, and invalid ones.
func (c *conn) inputSaid(params []byte) {
	var p ahp.StateParams
	if err := ahp.DecodeParams(params, &p); err != nil || !c.may(rights.Lend) {
		return
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if t := c.h.terminals.ByURI[p.Channel]; t != nil && t.OwnedBy(&c.link) && t.Bound() == &c.link && !t.State.Lifecycle.Exited() {
		c.h.terminals.SetInput(t, p)
	}
}
