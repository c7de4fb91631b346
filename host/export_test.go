package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/output"
	"tether/host/page"
	"tether/host/rights"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
)

// ServeAs is ServeChannel for a principal.
func ServeAs(h *Host, ch jsonrpc.Channel, p rights.Principal) error {
	return h.serve(context.Background(), ch, remote{name: "test", principal: p})
}

// Count is how many terminals the catalogue has.
func (h *Host) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.order)
}

// Catalogue is the view of agents.
func Catalogue(h *Host) agenttools.Terminals { return catalogue{h: h} }

// Feed is a terminal that tests print into without a connection.
type Feed struct {
	h *Host
	t *terminal
}

// NewFeed adds a terminal.
func NewFeed(h *Host, uri string) *Feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Feed{h, h.addTerminalLocked(uri, &client{id: "feed"}, nil, ahp.TerminalState{Title: "feed", ExecutionTarget: ahp.TargetClient}, rights.Audience{})}
}

// Text prints.
func (f *Feed) Text(text string) {
	clean, _ := output.Clean(jsonspan.AppendQuoteString(nil, text))
	f.h.mu.Lock()
	f.t.out.Text(clean)
	f.t.addedLocked()
	f.h.mu.Unlock()
	f.t.settle()
}

// Act applies an action.
func (f *Feed) Act(a ahp.Action) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.applyLocked(f.t, a, nil)
}

// Lend puts an audience in force, as its machine does.
func (f *Feed) Lend(a ahp.Audience) {
	m := f.h.understand(a)
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.setAudienceLocked(f.t, f.h.resolveLocked(m, f.t))
}

// IDOf is idOf.
func IDOf(uri string) string { return idOf(uri) }

// LookAtPeople is lookAtPeople.
func (h *Host) LookAtPeople() { h.lookAtPeople() }

// Methods are the requests that clients may send.
func Methods() []string { return slices.Collect(maps.Keys(methods)) }

// Waiting is how many agents wait for a terminal.
func (h *Host) Waiting(uri string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.terminals[uri]; t != nil {
		return t.agents
	}
	return 0
}

// Change changes a terminal's title, sends the change at once, and encodes the lists and
// the rows for those who see it: how many there were, and how long that took.
func (h *Host) Change(uri, title string, pages []*Page) (due int, took time.Duration) {
	h.mu.Lock()
	began := time.Now()
	h.applyLocked(h.terminals[uri], ahp.TerminalTitleChanged{Title: title}, nil)
	h.listNowLocked()
	for _, l := range h.terminals[uri].listers {
		for _, s := range l.subs {
			if s.Changed() == h.listed.changed {
				s.listingLocked()
				due++
			}
		}
	}
	h.mu.Unlock()
	for _, p := range pages {
		u, now, _ := h.updateSince(p.use, p.version)
		p.version = now
		due += len(u.Rows)
	}
	return due, time.Since(began)
}

// Page is a page of a principal's.
type Page struct {
	use     *hold
	version int64
	rows    map[string]bool // ids that it has
}

// Anew has the page know nothing.
func (p *Page) Anew() { p.version = 0 }

// Astray brings a page up to date and returns the faults of its list.
func (h *Host) Astray(p *Page) (wrong []string) {
	u, now, _ := h.updateSince(p.use, p.version)
	if p.version = max(now, 1); u.Whole {
		p.rows = map[string]bool{}
	}
	for _, id := range u.Gone {
		delete(p.rows, id)
	}
	for _, raw := range u.Rows {
		var r struct{ ID string }
		_ = json.Unmarshal(raw, &r)
		p.rows[r.ID] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.order {
		if _, ok := p.use.Sees(t.subject, h.roster); ok != p.rows[t.id] {
			wrong = append(wrong, fmt.Sprintf("%s: shown %t, seen %t", t.uri, p.rows[t.id], ok))
		}
	}
	return wrong
}

// NewPage opens one that knows everything.
func (h *Host) NewPage(p rights.Principal) *Page {
	h.mu.Lock()
	defer h.mu.Unlock()
	use := h.holdLocked(h.roster.Viewer(p))
	return &Page{use: use, version: use.l.book.version}
}

// Decides is whether a principal sees a terminal.
func (h *Host) Decides(p rights.Principal, uri string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.roster.Viewer(p)
	_, ok := v.Sees(h.terminals[uri].subject, h.roster)
	return ok
}

// Misindexed says which listers are shown something else than the decision says.
func (h *Host) Misindexed() (wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.listers {
		var want []*terminal
		for _, t := range h.order {
			if _, ok := l.Sees(t.subject, h.roster); ok {
				want = append(want, t)
			}
			if _, ok := l.Sees(t.subject, h.roster); ok != slices.Contains(t.listers, l) {
				wrong = append(wrong, fmt.Sprint(l.key, " of ", t.uri))
			}
		}
		if !slices.Equal(want, l.terminals) {
			wrong = append(wrong, fmt.Sprint(l.key, " has ", len(l.terminals), " terminals, want ", len(want)))
		}
	}
	return wrong
}

// Parked are the ids of the terminals that are parked, the longest first.
func (h *Host) Parked() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.parked {
		ids = append(ids, t.id)
	}
	return ids
}

// AgentReader is a reader of a terminal from its beginning, as an agent has it.
func AgentReader(h *Host, id string) (agenttools.Reader, error) {
	t, err := catalogue{h, nil}.Open(id)
	if err != nil {
		return nil, err
	}
	return t.Read(0)
}

// PageUpdate is the update for a page that is up to date as of a version.
func (h *Host) PageUpdate(version int64) (data []byte, now int64) {
	h.mu.Lock()
	use := h.holdLocked(h.roster.Viewer(rights.Principal{Role: rights.RoleObserver})) // a page's goes on while the page does
	h.mu.Unlock()
	u, now, _ := h.updateSince(use, version)
	data, _ = json.Marshal(u)
	return data, now
}

// PageRows is the whole present list, without rows encoded before.
func (h *Host) PageRows() []byte {
	data, _ := json.Marshal(h.rows(rights.Principal{Role: rights.RoleObserver}))
	return data
}

// Remove takes a fed terminal out.
func (f *Feed) Remove() {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.removeLocked(f.t)
}

// BuiltWith sets whether the host was built with the page's scripts.
func (h *Host) BuiltWith(scripts bool) {
	o := h.pageOptions()
	o.Scripts = scripts
	h.page = page.New(o)
}

// MachinePorts is the way to the lent ports of the client with that id.
func (h *Host) MachinePorts(id string) (http.RoundTripper, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clients[id].portsLocked()
}
