package host

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/jsonrpc"
)

// Only this file decides who sees which terminals. Each door asks Host.seesLocked, and a
// test lists the functions that may access terminals without asking.

// viewer is a principal who wants to see terminals, with the facts that decide about it.
type viewer struct {
	rights.Principal
	person string   // name of the person who owns it
	groups []string // names of the person's groups
}

// viewerLocked returns the viewer for a principal, with the present facts.
func (h *Host) viewerLocked(p rights.Principal) viewer {
	return viewer{Principal: p, person: h.roster.People[p.Owner], groups: h.groupsOf[p.Owner]}
}

// isAgent reports whether v is an agent, for which only grants to itself count.
func (v *viewer) isAgent() bool { return v.Role == rights.RoleAgent || v.Role == rights.RoleOperator }

// firstLocked returns the position from which on the grants let v watch, notYet if none
// does.
func (v *viewer) firstLocked(to map[rights.Grantee]int64) int64 {
	first := int64(notYet)
	look := func(g rights.Grantee) {
		if from, ok := to[g]; ok {
			first = min(first, from)
		}
	}
	look(rights.Grantee{Kind: rights.ToEveryone})
	if v.isAgent() {
		look(rights.Grantee{Kind: rights.ToAgent, Name: v.Name, ID: v.Owner})
		return first
	}
	if v.Owner != "" {
		look(rights.Grantee{Kind: rights.ToPerson, ID: v.Owner})
	}
	for _, name := range v.groups {
		look(rights.Grantee{Kind: rights.ToGroup, Name: name})
	}
	return first
}

// belongs reports whether what the person with that id owns, or nobody if owner is empty,
// belongs to v.
func (v *viewer) belongs(owner string) bool {
	return owner == "" && v.Administers() || owner != "" && v.Owner == owner
}

// audience lists who may watch a terminal besides its machine's owner and that person's
// agents. Guarded by the host's mutex.
type audience struct {
	declared bool // the machine has sent an audience, and so wants to know who watches
	said     ahp.Audience
	grants   []grant
	refused  []string // names in the audience that mean nobody
	pending  bool     // a grant begins at text that has not arrived yet
	unsaid   bool     // the machine has not said yet whether it also lends to hosts where everybody sees everything

	rules rules // computed from the grants and denials, see reindexLocked
}

// rules are an audience, indexed by grantee. The maps are never changed.
type rules struct {
	from   map[rights.Grantee]int64 // the position from which on a grantee sees the text
	denied map[denied]struct{}
}

// denied identifies the person or agent that a denial means, even if somebody else has
// the name now.
type denied struct {
	agent bool
	name  string
}

// rulesLocked returns the rules of the terminal's audience.
func (t *terminal) rulesLocked() rules {
	a := &t.audience
	if len(a.grants)+len(a.said.Denied) == 0 {
		return rules{}
	}
	r := rules{map[rights.Grantee]int64{}, map[denied]struct{}{}}
	for i := range a.grants {
		g := &a.grants[i]
		if before, ok := r.from[g.to]; (!ok || g.pos < before) && !slices.Contains(t.withdrawn, g.to) {
			r.from[g.to] = g.pos
		}
	}
	for _, name := range a.said.Denied {
		name, agent := strings.CutPrefix(name, ahp.AgentPrefix)
		r.denied[denied{agent, name}] = struct{}{}
	}
	return r
}

// grant is a grant for one terminal.
type grant struct {
	to   rights.Grantee
	name string // as the owner sent it
	from int64  // position in the owner's text from which on the grant holds; 0: from the beginning
	pos  int64  // from as a position in the recorded text
}

// seesLocked decides whether v sees t, and from which position of the recorded text on.
// All doors use it; it allocates nothing.
func (h *Host) seesLocked(v *viewer, t *terminal) (from int64, ok bool) {
	owner, a := &t.creator.principal, &t.audience
	switch {
	case v.Guest != "":
		return 0, v.Guest == t.uri && v.GuestPort == 0
	case owner.Same(v.Principal) && owner.Owner == v.Owner: // another client of the same machine
		return 0, true
	case a.said.GuestsOnly || a.unsaid || !v.May(rights.See):
		return 0, false
	case !h.roster.On:
		return 0, true
	case v.deniedBy(a.rules):
		return 0, !v.isAgent() && v.belongs(owner.Owner) // denials do not apply to one's own terminals
	case v.belongs(owner.Owner):
		return 0, true
	}
	return h.grantedLocked(v, t)
}

// grantedLocked decides whether a grant lets v see t.
func (h *Host) grantedLocked(v *viewer, t *terminal) (from int64, ok bool) {
	from = v.firstLocked(t.audience.rules.from)
	m := h.machineGrants[machineOf(&t.creator.principal)]
	if m != nil && t.audience.said.HostGrants && v.firstLocked(m.from) == 0 && v.firstLocked(m.without(t.withdrawn)) == 0 {
		from = 0
	}
	return from, from < notYet
}

// deniedBy reports whether the person or the agent is denied.
func (v *viewer) deniedBy(r rules) bool {
	who := denied{false, v.person}
	if v.isAgent() {
		who = denied{true, v.Name}
	}
	_, is := r.denied[who]
	return is && who.name != ""
}

// machineGrantsLocked returns the grantees to whom an administrator has granted
// everything that the machine lends.
func (h *Host) machineGrantsLocked(machine *rights.Principal) []rights.Grantee {
	if m := h.machineGrants[machineOf(machine)]; m != nil {
		return m.all
	}
	return nil
}

// machineAudience has the grantees to whom an administrator has granted everything that a
// machine lends. It is never changed.
type machineAudience struct {
	all  []rights.Grantee
	from map[rights.Grantee]int64 // the same as a map, each from position 0
}

// without returns m.from without the grants that were ended for one terminal.
func (m *machineAudience) without(over []rights.Grantee) map[rights.Grantee]int64 {
	if len(over) == 0 {
		return m.from
	}
	left := maps.Clone(m.from)
	for _, g := range over {
		delete(left, g)
	}
	return left
}

// seesLocked reports whether c sees t.
func (c *conn) seesLocked(t *terminal) bool {
	if c.client != nil && t.creator == c.client {
		return true
	}
	_, ok := c.h.seesLocked(&c.hold.viewer, t)
	return ok
}

// terminalLocked returns the terminal with that URI, or nil if c sees none: one that it
// may not see is answered as one that does not exist.
func (c *conn) terminalLocked(uri string) *terminal {
	if t := c.h.terminals[uri]; t != nil && c.seesLocked(t) {
		return t
	}
	return nil
}

// showsLocked reports whether c sees the channel of a subscription.
func (c *conn) showsLocked(s *subscription) bool {
	switch {
	case s.withdrawn:
		return false
	case s.term != nil:
		return c.seesLocked(s.term)
	}
	return s.session == nil || c.seesChannelLocked(s.session, s.ch)
}

// fromLocked returns the position from which on c sees the text of t.
func (c *conn) fromLocked(t *terminal) int64 {
	from, _ := c.h.seesLocked(&c.hold.viewer, t)
	return from
}

// machineKey names a machine in grants of the host.
type machineKey struct{ name, owner string }

func machineOf(p *rights.Principal) machineKey { return machineKey{p.Name, p.Owner} }

// meant is an audience with its grantees resolved.
type meant struct {
	ahp.Audience
	grants  []rights.Grantee // the grantee of each grant; the zero value if the name means nobody
	refused []string         // the refused names
}

// understand resolves an audience's grantees. It may read files, so it must not be called
// with the host's mutex.
func (h *Host) understand(said ahp.Audience) meant {
	m := meant{Audience: said}
	if len(said.Grants) == 0 {
		return m
	}
	r := h.lookAtPeople() // a person may be new
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
func (h *Host) grantee(r *rights.Roster, name string) (g rights.Grantee, ok bool) {
	if h.opts.People == nil {
		return rights.Grantee{Kind: rights.ToEveryone}, name == ahp.ToEveryone
	}
	if g, ok = rights.Resolve(h.opts.People, r, name); !ok {
		g = rights.Grantee{}
	}
	return g, ok
}

// resolveLocked returns the audience that is in force for t from now on. t is nil for a
// terminal that does not exist yet.
func (h *Host) resolveLocked(m meant, t *terminal) audience {
	a := audience{declared: true, said: m.Audience, refused: m.refused}
	for i, g := range m.Grants {
		if m.grants[i] == (rights.Grantee{}) || h.roster.Ended(m.grants[i]) {
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

// notYet is the position of text that has not arrived. Until it arrives, the grant shows
// nothing.
const notYet = math.MaxInt64

// positionLocked returns the position in the recorded text where a grant begins. If the
// grant's text has arrived already, the host does not know its position and shows only
// later text.
func (t *terminal) positionLocked(g ahp.Grant) int64 {
	if t == nil || g.From > t.out.Applied() {
		return notYet
	}
	for _, before := range t.audience.grants {
		if before.name == g.To && before.from == g.From {
			return before.pos
		}
	}
	return t.out.End()
}

// passedLocked is called after output was recorded while a grant waits for its text.
// applied and end are the values from before that output.
func (t *terminal) passedLocked(applied, end int64) {
	t.audience.pending = false
	passed := false
	for i := range t.audience.grants {
		g := &t.audience.grants[i]
		switch {
		case g.pos != notYet:
		case g.from > t.out.Applied():
			t.audience.pending = true
		default: // because of removed marks, the position may be a little later than necessary
			g.pos = min(end+max(0, g.from-applied), t.out.End())
			passed = true
		}
	}
	if passed {
		t.host.sight++
		t.host.reindexLocked(t)
		t.moved.Raise()
	}
}

// setAudienceLocked puts another audience in force, and ends the views of those who are
// not in it any more.
func (h *Host) setAudienceLocked(t *terminal, a audience) {
	t.audience = a
	h.sight++
	h.reindexLocked(t)
	h.recheckLocked(t)
	t.watchersLocked()
	if h.opts.Nodes != nil {
		t.touch(inRows) // see recheckLocked for the others
	}
}

// recheckLocked ends the views of those who do not see t any more.
func (h *Host) recheckLocked(t *terminal) {
	for _, s := range slices.Collect(t.subs) {
		if !s.conn.seesLocked(t) {
			s.withdrawLocked()
		}
	}
	h.recheckPortsLocked(t)
	t.moved.Raise()
}

// withdrawLocked ends a subscription to a terminal that its subscriber does not see any
// more. It tells the subscriber that the terminal has ended, as when a machine withdraws
// it.
func (s *subscription) withdrawLocked() {
	c, t := s.conn, s.term
	s.withdrawn = true
	shown := s.Started()
	s.endLocked()
	if shown && !t.state.Lifecycle.Exited() {
		a := ahp.TerminalExited{}
		if c.client.old() {
			a.ExitCode = &noCode
		}
		seq := c.h.envelopes.Next()
		c.directLocked(channel.Piece{Seq: seq, Msg: ahp.AppendEnvelope(nil, t.uri, seq, nil, "", ahp.AppendActionFor(nil, a, c.client.version))})
	}
}

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
