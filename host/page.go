package host

import (
	"cmp"
	"slices"

	"tether/host/agents"
	"tether/host/login"
	"tether/host/page"
	"tether/host/ports"
	"tether/host/rights"
	"tether/host/runs"
	"tether/host/sessions"
	"tether/host/terminals"
	"tether/host/web"
)

// This file connects package page, which has the table of the host's doors, to the host.

// pageOptions are what the page needs of the host.
func (h *Host) pageOptions() page.Options {
	o := page.Options{
		Checks: h.checks, Logins: h.logins, Terminals: shown{h},
		Doors: page.Doors{
			Agents: h.agents.ServeHTTP, AgentHere: h.agents.Here,
			Ended: h.ended(),
		},
		Previews: h.opts.Previews, NoPreviews: h.opts.NoPreviews, Ending: func() bool { return h.draining.Load() || h.ctx.Err() != nil }, Ports: h.ports,
		Register: h.opts.Register, Pushes: h.opts.Pushes, Provider: h.opts.Provider,
		Scripts: web.Complete(), StallTime: h.opts.StallTime, Done: h.ctx.Done(),
		Gate: h.gate, Ask: h.ask, Send: h.messages.Send, Runs: h.runs,
		Audit: h.auditRequest,
		Bug:   h.toolBug, Log: h.log,
	}
	if !h.opts.NoShares {
		o.Guests = h.shares
	}
	return o
}

// The rooms of a host that its operator's parts, and other nodes, use.

// Page returns what browsers get. The host closes it.
func (h *Host) Page() *page.Page { return h.page }

// Logins returns the browsers that are logged in. The host closes it.
func (h *Host) Logins() *login.Table { return h.logins }

// Agents returns the door for agents. The host closes it.
func (h *Host) Agents() *agents.Door { return h.agents }

// Callers returns the agents that call tools in sessions, for other nodes.
func (h *Host) Callers() *sessions.Agents { return h.callers }

// Ports returns the ways to lent ports. The host closes them.
func (h *Host) Ports() *ports.Ports { return h.ports }

// Runs returns who answers questions about earlier runs, for other nodes.
func (h *Host) Runs() *runs.Runs { return h.runs }

// Sees reports whether a principal may see a terminal now.
func (h *Host) Sees(p rights.Principal, id string) bool {
	_, ok := h.terminals.View(&p).Find(id)
	return ok
}

// shown implements page.Terminals.
type shown struct{ h *Host }

func (s shown) Rows(p rights.Principal) []page.Row { return s.h.rows(p) }

func (s shown) Follow(p rights.Principal) page.List {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return followed{s.h, s.h.terminals.Hold(s.h.terminals.Roster.Viewer(p))}
}

func (s shown) Find(p rights.Principal, id string) (page.Terminal, bool) {
	at, ok := s.h.terminals.View(&p).Find(id)
	return at, ok
}

func (s shown) Open(p rights.Principal, id string) (page.Terminal, bool) {
	t, err := s.h.terminals.View(&p).Open(id)
	if err != nil {
		return nil, false
	}
	at := t.(terminals.Seen)
	at.Looked()
	return at, true
}

// Entries implements page.Terminals.
func (s shown) Entries(p rights.Principal, kept []rights.Entry) []rights.Entry {
	return s.h.entriesOf(p, kept)
}

// followed implements page.List.
type followed struct {
	h   *Host
	use *terminals.Hold
}

func (f followed) Since(version int64) (page.Update, int64, <-chan struct{}) {
	return f.h.updateSince(f.use, version)
}

func (f followed) Close() {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.terminals.LetGo(f.use)
}

// entriesOf returns the entries that p may see and end, of the kept ones and of the
// host's own: their own or, for an administrator, all.
func (h *Host) entriesOf(p rights.Principal, all []rights.Entry) []rights.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.terminals.Roster.Viewer(p)
	all = append(all, h.shares.Entries()...)
	all = slices.DeleteFunc(all, func(e rights.Entry) bool {
		return !v.Administers() && (e.OwnerID == "" || e.OwnerID != v.Owner || e.Kind == rights.EntryPerson)
	})
	online, lent := map[string]bool{}, map[string]int{}
	for t := range h.terminals.Every() {
		if v.Administers() {
			owner := &t.Creator.Who
			all = append(all, rights.Entry{Kind: rights.EntryTerminal, ID: t.ID, Name: t.Creator.Machine() + "/" + t.Name, Owner: h.terminals.Roster.People[owner.Owner], Since: &t.Created, Size: t.Out.End() - t.Out.Oldest()})
		}
		lent[t.Creator.Who.Name]++
	}
	for _, c := range h.terminals.Clients {
		online[c.Who.Name] = online[c.Who.Name] || c.Link != nil
	}
	for i := range all {
		e := &all[i]
		e.Owner = cmp.Or(e.Owner, h.terminals.Roster.People[e.OwnerID])
		if e.Kind == rights.EntryMachine {
			e.Online, e.Terminals = online[e.Name], lent[e.Name]
		}
	}
	return all
}
