package terminals

import (
	"time"

	"tether/ahp"
)

// listPace is the shortest time between two notifications of changes of the catalogue, so
// that a machine that changes titles as fast as it can does not cause a list each time.
const listPace = 50 * time.Millisecond

// listing schedules updates of the catalogue on the root channel. It is delivered as
// state: a subscriber gets the newest list, so that a thousand new terminals at once do
// not make a thousand lists for everybody.
type listing struct {
	changed int64 // serverSeq of the newest notified change
	told    time.Time
	stale   map[*Lister]struct{} // listers whose view has changed since
	timer   *time.Timer          // sends the changes; nil if not running
}

// whereShown says which lists show a change of a terminal.
type whereShown int

const (
	inRows      whereShown = iota // the rows of pages, what agents list, what other nodes are told
	inCatalogue                   // these and AHP's catalogue
)

// touch records that t has changed, and wakes those who wait for changes of a list that
// shows it: they ask for what is newer than their version. Subscribers of AHP's catalogue
// are told at once, or together with other changes within listPace.
func (t *Terminal) touch(where whereShown) {
	if t.gone() {
		return
	}
	b := t.book
	t.rowVersion = b.nextRow()
	for _, l := range t.listers {
		l.book.changed(t.rowVersion)
		if where == inCatalogue {
			b.news.stale[l] = struct{}{}
		}
	}
	b.nodes.moved.Raise()
	if where == inCatalogue {
		b.tellSoon()
	}
}

// touchPresence is touch after the owner of t, or its node, has come or gone: then AHP's
// catalogue shows or hides what the owner has reported.
func (t *Terminal) touchPresence() {
	if ahp.Awaits(string(t.input.Input)) != ahp.AwaitsNothing || t.input.Ready != "" {
		t.touch(inCatalogue)
	} else {
		t.touch(inRows)
	}
}

// stale records that the view of a lister has changed.
func (b *Book) stale(of *Lister) {
	b.news.stale[of] = struct{}{}
	b.tellSoon()
}

func (b *Book) tellSoon() {
	l := &b.news
	switch wait := listPace - time.Since(l.told); {
	case l.timer != nil:
	case wait <= 0:
		b.tellList()
	default:
		b.After(&l.timer, wait, b.tellList)
	}
}

// ListNow sends pending changes at once, so that a returning client gets all changes
// up to now.
func (b *Book) ListNow() {
	if t := b.news.timer; t != nil {
		t.Stop()
		b.tellList()
	}
}

// tellList notifies those who see the changes.
func (b *Book) tellList() {
	l := &b.news
	l.changed, l.told, l.timer = b.envelopes.Next(), time.Now(), nil
	for of := range l.stale {
		for _, s := range of.subs {
			s.News(l.changed)
		}
	}
	clear(l.stale)
}

// Listing returns the root/terminalsChanged for a subscriber of the list, as of its news:
// the present catalogue, encoded once per change and form. old asks for the older form.
func (l *Lister) Listing(news int64, old bool) []byte {
	shape, version := &l.encoded[0], newestVersion
	if old {
		shape, version = &l.encoded[1], oldestVersion
	}
	if shape.seq != news || shape.msg == nil {
		shape.seq = news
		shape.msg = ahp.AppendEnvelope(nil, ahp.RootURI, news, nil, "", ahp.AppendActionFor(nil, ahp.RootTerminalsChanged{Terminals: l.Infos()}, version))
	}
	return shape.msg
}

func infosOf(terminals []*Terminal) []ahp.TerminalInfo {
	infos := make([]ahp.TerminalInfo, 0, len(terminals))
	for _, t := range terminals {
		if t.Parked() != nil { // parked terminals are not in AHP's catalogue
			continue
		}
		infos = append(infos, ahp.TerminalInfo{Resource: t.URI, Title: t.State.Title, Claim: t.State.Claim,
			Lifecycle: t.State.Lifecycle, ExecutionTarget: t.State.ExecutionTarget,
			Meta: ahp.TerminalMeta{Former: t.State.Meta.Former, Adopted: t.State.Meta.Adopted, Picture: t.State.Meta.Picture, Ports: t.State.Meta.Ports, Awaits: t.Awaits(), Ready: ahp.ReadinessOf(t.Ready())}})
	}
	return infos
}
