package host

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tether/ahp"
	"tether/host/rights"
	"tether/jsonrpc"
)

// watchersPace is the shortest time between two notifications of who watches a terminal.
const watchersPace = 500 * time.Millisecond

// watcherState is the last report to the owner of a terminal of who may watch it, and who
// does. Guarded by the host's mutex.
type watcherState struct {
	conn  *conn       // the connection that was told last
	last  string      // the report
	at    time.Time   // and when
	timer *time.Timer // lets it be told; nil when none runs
	// brief has those who have looked for a moment since the last report.
	brief []ahp.Watcher
}

// watchersLocked schedules a report of watchers to the owner, if it has sent an audience:
// others do not know the message.
func (t *terminal) watchersLocked() {
	w := &t.watchers
	if t.channel.Ended() || !t.audience.Declared || t.bound() == nil || !t.creator.resume || w.timer != nil || t.due[noticeWatchers] == t.bound() {
		return
	}
	wait := watchersPace - time.Since(w.at)
	if wait <= 0 {
		t.oweLocked(noticeWatchers)
		return
	}
	t.host.afterLocked(&w.timer, wait, func() {
		w.timer = nil
		t.oweLocked(noticeWatchers)
	})
}

// watchersNoticeLocked makes the report of watchers.
func (t *terminal) watchersNoticeLocked(c *conn) []byte {
	w := &t.watchers
	if t.channel.Ended() {
		return nil
	}
	msg, _ := jsonrpc.EncodeNotification(ahp.MethodWatchers, t.watchersParamsLocked()) // values made here can be encoded
	brief := len(w.brief) > 0
	w.brief = nil
	if w.conn == c && w.last == string(msg) {
		return nil
	}
	w.conn, w.last, w.at = c, string(msg), time.Now()
	if brief {
		t.watchersLocked() // brief watchers are gone by then
	}
	return msg
}

func (t *terminal) watchersParamsLocked() ahp.WatchersParams {
	all := t.watchingLocked()
	for _, f := range t.feeds {
		all = append(all, f.watchers...)
	}
	slices.SortFunc(all, func(a, b ahp.Watcher) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Who, b.Who), a.Since.Compare(b.Since))
	})
	all = slices.CompactFunc(all, func(a, b ahp.Watcher) bool { return a.Kind == b.Kind && a.Who == b.Who })
	p := ahp.WatchersParams{Channel: t.uri, May: t.mayWatchLocked(), Refused: t.audience.Refused, Watching: all[:min(len(all), ahp.MaxWatchers)]}
	p.More = int64(len(all) - len(p.Watching))
	return p
}

// watchingLocked returns those who watch the terminal at this node.
func (t *terminal) watchingLocked() []ahp.Watcher {
	h := t.host
	all := slices.Clone(t.watchers.brief)
	for s := range t.subs {
		if !t.ownedBy(s.conn) {
			all = append(all, h.watcherLocked(&s.conn.remote.principal, s.since))
		}
	}
	for _, r := range t.waits {
		if r.at.p != nil {
			all = append(all, h.watcherLocked(r.at.p, r.since))
		}
	}
	return all
}

// watcherLocked describes a principal to the owner of a terminal.
func (h *Host) watcherLocked(p *rights.Principal, since time.Time) ahp.Watcher {
	w := ahp.Watcher{Kind: ahp.WatcherPerson, Who: cmp.Or(h.roster.People[p.Owner], p.Name, "administrator"), Since: since.UTC().Truncate(time.Millisecond)}
	switch {
	case p.Guest != "":
		w.Kind, w.Who = ahp.WatcherGuest, cmp.Or(p.Name, "guest")
	case p.Role == rights.RoleMachine:
		w.Kind, w.Who = ahp.WatcherMachine, p.Name
	case p.Role == rights.RoleAgent || p.Role == rights.RoleOperator:
		w.Kind, w.Who = ahp.WatcherAgent, p.Name
	}
	return w
}

// mayWatchLocked returns the names of those who may watch t, the owner first.
func (t *terminal) mayWatchLocked() []string {
	h, owner, a := t.host, t.creator.principal, &t.audience
	may := []string{}
	switch {
	case a.Said.GuestsOnly:
		return may
	case !h.roster.On:
		return append(may, ahp.ToEveryone)
	case h.roster.People[owner.Owner] != "":
		may = append(may, h.roster.People[owner.Owner])
	}
	add := func(name string, g rights.Grantee) {
		if slices.Contains(t.withdrawn, g) {
			return
		}
		if name != "" && !slices.Contains(may, name) && len(may) < ahp.MaxWatchers {
			may = append(may, name)
		}
	}
	for i := range a.Grants {
		add(a.Grants[i].Name, a.Grants[i].To)
	}
	if a.Said.HostGrants {
		for _, g := range h.roster.MachineGrants(&owner) {
			add(h.roster.NameOf(g), g)
		}
	}
	return may
}

// looked records that somebody has looked at the terminal for a moment.
func (l lookedAt) looked() {
	if l.p == nil {
		return
	}
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	w := &l.t.watchers
	one := l.h.watcherLocked(l.p, time.Now())
	if len(w.brief) >= ahp.MaxWatchers || !l.t.audience.Declared || slices.ContainsFunc(w.brief, func(o ahp.Watcher) bool { return o.Kind == one.Kind && o.Who == one.Who }) {
		return
	}
	w.brief = append(w.brief, one)
	l.t.watchersLocked()
}
