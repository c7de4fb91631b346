package host

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"tether/ahp"
	"tether/jsonrpc"
)

// Only this file decides who sees which terminals. Each door asks Host.seesLocked, and a test lists the functions that may access terminals
// without asking.

// viewer is a principal who wants to see: the facts that the decision needs.
type viewer struct {
	Principal
	person string   // name of the person who owns it
	groups []string // names of the person's groups
}

// viewerLocked is a principal as of now.
func (h *Host) viewerLocked(p Principal) viewer {
	return viewer{Principal: p, person: h.roster.People[p.Owner], groups: h.groupsOf[p.Owner]}
}

// isAgent reports whether it is an agent, for which only grants to itself count.
func (v *viewer) isAgent() bool { return v.Role == RoleAgent || v.Role == RoleOperator }

// is reports whether it is meant by g.
func (v *viewer) is(g Grantee) bool {
	switch g.kind {
	case toPerson:
		return !v.isAgent() && v.Owner != "" && v.Owner == g.id
	case toGroup:
		return !v.isAgent() && slices.Contains(v.groups, g.name)
	case toAgent:
		return v.isAgent() && v.Name == g.name && v.Owner == g.id
	}
	return g.kind == toEveryone
}

// administers reports whether things without an owner are the principal's.
func (p *Principal) administers() bool { return p.Role == RoleAdmin || p.Role == "" || p.steward }

// belongs reports whether things of the person with that id, or without an owner, are its own.
func (v *viewer) belongs(owner string) bool {
	return owner == "" && v.administers() || owner != "" && v.Owner == owner
}

// audience lists who may watch a terminal besides its machine's owner and that person's agents. Guarded by the host's mutex.
type audience struct {
	told    bool // the machine has said one, and wants to know who watches
	said    ahp.Audience
	grants  []grant
	refused []string // names in it that mean nobody
	pending bool     // a grant begins with text that has not come yet
	unsaid  bool     // the machine has not said yet whether it lends also where everybody sees everything
}

// grant is one of a terminal.
type grant struct {
	to   Grantee
	name string // as it was said
	from int64  // position in the owner's text from which on it is for; 0: from the beginning
	pos  int64  // the same in the recorded text
}

// seesLocked decides whether v sees t, and from which position of its recorded text on. All doors ask it; it allocates nothing.
func (h *Host) seesLocked(v *viewer, t *terminal) (from int64, ok bool) {
	owner, a := &t.creator.principal, &t.audience
	switch {
	case v.Guest != "":
		return 0, v.Guest == t.uri
	case owner.same(v.Principal) && owner.Owner == v.Owner: // other clients of the machine itself
		return 0, true
	case a.said.GuestsOnly || a.unsaid || !v.may(rightSee):
		return 0, false
	case !h.roster.On:
		return 0, true
	case slices.ContainsFunc(a.said.Denied, v.denied):
		return 0, !v.isAgent() && v.belongs(owner.Owner) // nobody is denied their own terminals
	case v.belongs(owner.Owner):
		return 0, true
	}
	from = notYet
	for i := range a.grants {
		if g := &a.grants[i]; g.pos < from && v.is(g.to) && !slices.Contains(t.over, g.to) {
			from = g.pos
		}
	}
	if a.said.HostGrants {
		for _, g := range h.machineGrants[machineOf(owner)] {
			if v.is(g) && !slices.Contains(t.over, g) {
				from = 0
			}
		}
	}
	return from, from < notYet
}

// denied reports whether a name in a denial is that of the person or the agent, whoever has it now.
func (v *viewer) denied(name string) bool {
	if agent, is := strings.CutPrefix(name, ahp.AgentPrefix); is {
		return v.isAgent() && v.Name == agent
	}
	return !v.isAgent() && v.person == name && name != ""
}

// seesLocked reports whether c may know of t.
func (c *conn) seesLocked(t *terminal) bool {
	if c.client != nil && t.creator == c.client {
		return true
	}
	_, ok := c.h.seesLocked(&c.hold.viewer, t)
	return ok
}

// terminalLocked is the terminal with that URI, or nil if there is none that c sees. The decision is made in any case, so that both cases
// take as long.
func (c *conn) terminalLocked(uri string) *terminal {
	t, ok := c.h.terminals[uri]
	if !ok {
		t = &c.h.absent
	}
	if !c.seesLocked(t) || !ok {
		return nil
	}
	return t
}

// showsLocked reports whether c sees the channel of a subscription.
func (c *conn) showsLocked(s *subscription) bool {
	switch {
	case s.withdrawn:
		return false
	case s.ch.term != nil:
		return c.seesLocked(s.ch.term)
	}
	return s.ch.session == nil || c.seesChannelLocked(s.ch)
}

// fromLocked is the position from which on c sees the text of t.
func (c *conn) fromLocked(t *terminal) int64 {
	from, _ := c.h.seesLocked(&c.hold.viewer, t)
	return from
}

// machineKey names a machine in grants of the host.
type machineKey struct{ name, owner string }

func machineOf(p *Principal) machineKey { return machineKey{p.Name, p.Owner} }

// meant is an audience with the grantees of its grants.
type meant struct {
	ahp.Audience
	grants  []Grantee // of each grant; the zero value for a name that means nobody
	refused []string  // the refused names
}

// understand resolves an audience's grantees. It may read files, so it is not called with the host's mutex.
func (h *Host) understand(said ahp.Audience) meant {
	m := meant{Audience: said}
	if len(said.Grants) == 0 {
		return m
	}
	r := h.lookAtPeople() // a person may have been added a moment ago
	for _, g := range said.Grants {
		to, ok := h.grantee(r, g.To)
		if !ok {
			m.refused = append(m.refused, g.To)
		}
		m.grants = append(m.grants, to)
	}
	return m
}

// grantee resolves a name.
func (h *Host) grantee(r *Roster, name string) (g Grantee, ok bool) {
	if h.opts.People == nil {
		return Grantee{kind: toEveryone}, name == ahp.ToEveryone
	}
	if g, ok = Resolve(h.opts.People, r, name); !ok {
		g = Grantee{}
	}
	return g, ok
}

// resolveLocked is an audience as it is in force now for t, which is nil before there is one.
func (h *Host) resolveLocked(m meant, t *terminal) audience {
	a := audience{told: true, said: m.Audience, refused: m.refused}
	for i, g := range m.Grants {
		if m.grants[i] == (Grantee{}) || h.roster.ended(m.grants[i]) {
			continue
		}
		one := grant{to: m.grants[i], name: g.To, from: g.From}
		if g.From > 0 {
			one.pos = t.positionLocked(g)
			a.pending = a.pending || one.pos == notYet
		}
		a.grants = append(a.grants, one)
	}
	return a
}

// notYet is the position of text that has not come. Until then the grant shows nothing.
const notYet = math.MaxInt64

// positionLocked is the position in the recorded text where a grant begins. For text that has arrived already the host does not know the
// position: it then shows only later text.
func (t *terminal) positionLocked(g ahp.Grant) int64 {
	if t == nil || g.From > t.applied {
		return notYet
	}
	for _, before := range t.audience.grants {
		if before.name == g.To && before.from == g.From {
			return before.pos
		}
	}
	return t.content.end
}

// passedLocked is called when output has been placed while a grant waits for its text: applied and end are from before it.
func (t *terminal) passedLocked(applied, end int64) {
	t.audience.pending = false
	passed := false
	for i := range t.audience.grants {
		g := &t.audience.grants[i]
		switch {
		case g.pos != notYet:
		case g.from > t.applied:
			t.audience.pending = true
		default: // marks that were taken out let it be a little later than it could
			g.pos = min(end+max(0, g.from-applied), t.content.end)
			passed = true
		}
	}
	if passed {
		t.host.sight++
		t.host.reindexLocked(t)
		t.wakeLocked()
	}
}

// setAudienceLocked puts another audience in force, and ends views of those who are no longer in it.
func (h *Host) setAudienceLocked(t *terminal, a audience) {
	t.audience = a
	h.sight++
	h.reindexLocked(t)
	h.recheckLocked(t)
	t.watchersLocked()
	if h.opts.Nodes != nil {
		h.rowChangedLocked(t) // the others follow
	}
}

// recheckLocked ends views of t by those who do not see it any more.
func (h *Host) recheckLocked(t *terminal) {
	for _, s := range slices.Clone(t.subs) {
		if !s.conn.seesLocked(t) {
			s.withdrawLocked()
		}
	}
	t.wakeLocked()
}

// wakeLocked wakes who waits for the terminal.
func (t *terminal) wakeLocked() {
	if t.moved != nil {
		close(t.moved)
		t.moved = nil
	}
}

// withdrawLocked ends a subscription to a terminal that its subscriber does not see any more. The subscriber is told that the terminal has
// ended, as when a machine withdraws one.
func (s *subscription) withdrawLocked() {
	c, t := s.conn, s.ch.term
	s.withdrawn = true
	shown := !s.paused
	s.own = nil
	s.endLocked()
	if c.catching == s {
		c.catching = nil
	}
	if shown && !t.state.Lifecycle.Exited() {
		a := ahp.TerminalExited{}
		if c.client.old() {
			a.ExitCode = &noCode
		}
		seq := c.h.nextSeqLocked()
		c.directLocked(entry{seq: seq, msg: ahp.AppendEnvelope(nil, t.uri, seq, nil, "", ahp.AppendActionFor(nil, a, c.client.version))})
	}
}

// audienceOf reads the audience in the _meta of a createTerminal; told is false if there is none.
func audienceOf(p *ahp.CreateTerminalParams) (said ahp.Audience, told bool, err error) {
	said, told, err = ahp.FindAudience(p.Meta)
	if err != nil {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err.Error())
	}
	return said, told, err
}

// setAudience handles a request of a terminal's owner. One without a channel asks which names the host takes.
func (c *conn) setAudience(r *jsonrpc.Request) error {
	var p ahp.AudienceParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	if !c.may(rightLend) {
		return c.denied("lend terminals")
	}
	h := c.h
	m := h.understand(p.Audience)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[p.Channel]
	if p.Channel != "" && (t == nil || !t.ownedBy(c)) {
		return errUnknownChannel
	}
	if len(m.refused) > 0 {
		data, _ := json.Marshal(ahp.RefusedNames{Names: m.refused}) // names
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "nobody here is called so", Data: data}
	}
	if t != nil {
		h.setAudienceLocked(t, h.resolveLocked(m, t))
	}
	return r.Reply(struct{}{})
}
