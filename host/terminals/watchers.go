package terminals

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
// does.
type watcherState struct {
	conn  *Link       // the connection that was told last
	last  string      // the report
	at    time.Time   // and when
	timer *time.Timer // lets it be told; nil when none runs
	// brief has those who have looked for a moment since the last report.
	brief []ahp.Watcher
}

// sayWatchers schedules a report of watchers to the owner, if it has sent an audience:
// others do not know the message.
func (t *Terminal) sayWatchers() {
	w := &t.watchers
	if t.Channel.Ended() || !t.audience.Declared || t.Bound() == nil || !t.Creator.Resume || w.timer != nil || t.due[noticeWatchers] == t.Bound() {
		return
	}
	wait := watchersPace - time.Since(w.at)
	if wait <= 0 {
		t.owe(noticeWatchers)
		return
	}
	t.book.After(&w.timer, wait, func() {
		w.timer = nil
		t.owe(noticeWatchers)
	})
}

// watchersNotice makes the report of watchers.
func (t *Terminal) watchersNotice(c *Link) []byte {
	w := &t.watchers
	if t.Channel.Ended() {
		return nil
	}
	msg, _ := jsonrpc.EncodeNotification(ahp.MethodWatchers, t.watchersParams()) // values made here can be encoded
	brief := len(w.brief) > 0
	w.brief = nil
	if w.conn == c && w.last == string(msg) {
		return nil
	}
	w.conn, w.last, w.at = c, string(msg), time.Now()
	if brief {
		t.sayWatchers() // brief watchers are gone by then
	}
	return msg
}

func (t *Terminal) watchersParams() ahp.WatchersParams {
	all := t.watching()
	for _, f := range t.feeds {
		all = append(all, f.watchers...)
	}
	slices.SortFunc(all, func(a, b ahp.Watcher) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Who, b.Who), a.Since.Compare(b.Since))
	})
	all = slices.CompactFunc(all, func(a, b ahp.Watcher) bool { return a.Kind == b.Kind && a.Who == b.Who })
	p := ahp.WatchersParams{Channel: t.URI, May: t.MayWatch(), Refused: t.audience.Refused, Watching: all[:min(len(all), ahp.MaxWatchers)]}
	p.More = int64(len(all) - len(p.Watching))
	return p
}

// watching returns those who watch the terminal at this node.
func (t *Terminal) watching() []ahp.Watcher {
	b := t.book
	all := slices.Clone(t.watchers.brief)
	for s := range t.subs {
		if !t.OwnedBy(s.Link()) {
			all = append(all, b.watcher(s.Link().Who, s.Since()))
		}
	}
	for _, r := range t.waits {
		if r.who != nil {
			all = append(all, b.watcher(r.who, r.since))
		}
	}
	return all
}

// watcher describes a principal to the owner of a terminal.
func (b *Book) watcher(p *rights.Principal, since time.Time) ahp.Watcher {
	w := ahp.Watcher{Kind: ahp.WatcherPerson, Who: cmp.Or(b.Roster.People[p.Owner], p.Name, "administrator"), Since: since.UTC().Truncate(time.Millisecond)}
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

// MayWatch returns the names of those who may watch t, the owner first.
func (t *Terminal) MayWatch() []string {
	b, owner, a := t.book, t.Creator.Who, &t.audience
	may := []string{}
	switch {
	case a.Said.GuestsOnly:
		return may
	case !b.Roster.On:
		return append(may, ahp.ToEveryone)
	case b.Roster.People[owner.Owner] != "":
		may = append(may, b.Roster.People[owner.Owner])
	}
	add := func(name string, g rights.Grantee) {
		if slices.Contains(t.Withdrawn, g) {
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
		for _, g := range b.Roster.MachineGrants(&owner) {
			add(b.Roster.NameOf(g), g)
		}
	}
	return may
}

// Looked records that somebody has looked at the terminal for a moment.
func (l Seen) Looked() {
	if l.p == nil {
		return
	}
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	w := &l.t.watchers
	one := l.book.watcher(l.p, time.Now())
	if len(w.brief) >= ahp.MaxWatchers || !l.t.audience.Declared || slices.ContainsFunc(w.brief, func(o ahp.Watcher) bool { return o.Kind == one.Kind && o.Who == one.Who }) {
		return
	}
	w.brief = append(w.brief, one)
	l.t.sayWatchers()
}
