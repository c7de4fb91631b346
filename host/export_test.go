package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"time"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/channel"
	"tether/host/output"
	"tether/host/page"
	"tether/host/rights"
	"tether/host/terminals"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
)

// ServeAs is ServeChannel for a principal.
func ServeAs(h *Host, ch jsonrpc.Channel, p rights.Principal) error {
	return h.serve(context.Background(), ch, remote{name: "test", principal: p})
}

// hidden is a field of a struct of another package.
func hidden[T any](of any, field string) *T {
	return (*T)(reflect.ValueOf(of).Elem().FieldByName(field).Addr().UnsafePointer())
}

// Count is how many terminals the catalogue has.
func (h *Host) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.terminals.Listed)
}

// Catalogue is the view of agents.
func Catalogue(h *Host) agenttools.Terminals { return h.terminals.View(nil) }

// Feed is a terminal that tests print into without a connection.
type Feed struct {
	h *Host
	t *terminals.Terminal
}

// NewFeed adds a terminal.
func NewFeed(h *Host, uri string) *Feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Feed{h, h.terminals.AddTerminal(uri, terminals.NewClient("feed", 0, rights.Principal{}), nil, ahp.TerminalState{Title: "feed", ExecutionTarget: ahp.TargetClient}, rights.Audience{})}
}

// Text prints.
func (f *Feed) Text(text string) {
	clean, _ := output.Clean(jsonspan.AppendQuoteString(nil, text))
	f.h.mu.Lock()
	f.t.Out.Text(clean)
	f.t.Added()
	f.h.mu.Unlock()
	f.t.Settle()
}

// Act applies an action.
func (f *Feed) Act(a ahp.Action) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.terminals.Apply(f.t, a, nil)
}

// Lend puts an audience in force, as its machine does.
func (f *Feed) Lend(a ahp.Audience) {
	m := f.h.terminals.Understand(a)
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.terminals.SetAudience(f.t, f.h.terminals.Resolve(m, f.t))
}

// IDOf is IDOf.
func IDOf(uri string) string { return terminals.IDOf(uri) }

// LookAtPeople is LookAtPeople.
func (h *Host) LookAtPeople() { h.terminals.LookAtPeople() }

// Methods are the requests that clients may send.
func Methods() []string { return slices.Collect(maps.Keys(methods)) }

// Waiting is how many agents wait for a terminal.
func (h *Host) Waiting(uri string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.terminals.ByURI[uri]; t != nil {
		return *hidden[int](t, "agents")
	}
	return 0
}

// Change changes a terminal's title, sends the change at once, and encodes the lists and
// the rows for those who see it: how many there were, and how long that took.
func (h *Host) Change(uri, title string, pages []*Page) (due int, took time.Duration) {
	h.mu.Lock()
	began := time.Now()
	h.terminals.Apply(h.terminals.ByURI[uri], ahp.TerminalTitleChanged{Title: title}, nil)
	h.terminals.ListNow()
	for _, l := range *hidden[[]*terminals.Lister](h.terminals.ByURI[uri], "listers") {
		for _, s := range *hidden[[]*channel.Subscription](l, "subs") {
			if s.Changed() == h.envelopes.Newest() {
				l.Listing(s.Changed(), s.Of.(*subscription).conn.link.Client.Old())
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
	use     *terminals.Hold
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
	for _, t := range h.terminals.Listed {
		if _, ok := p.use.Sees(t.Subject, h.terminals.Roster); ok != p.rows[t.ID] {
			wrong = append(wrong, fmt.Sprintf("%s: shown %t, seen %t", t.URI, p.rows[t.ID], ok))
		}
	}
	return wrong
}

// NewPage opens one that knows everything.
func (h *Host) NewPage(p rights.Principal) *Page {
	h.mu.Lock()
	use := h.terminals.Hold(h.terminals.Roster.Viewer(p))
	h.mu.Unlock()
	_, now, _ := h.updateSince(use, math.MaxInt64)
	return &Page{use: use, version: now}
}

// Decides is whether a principal sees a terminal.
func (h *Host) Decides(p rights.Principal, uri string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.terminals.Roster.Viewer(p)
	_, ok := v.Sees(h.terminals.ByURI[uri].Subject, h.terminals.Roster)
	return ok
}

// Misindexed says which listers are shown something else than the decision says.
func (h *Host) Misindexed() (wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for all := reflect.ValueOf(h.terminals).Elem().FieldByName("listers").MapRange(); all.Next(); {
		l := (*terminals.Lister)(all.Value().UnsafePointer())
		var want []*terminals.Terminal
		for _, t := range h.terminals.Listed {
			if _, ok := l.Sees(t.Subject, h.terminals.Roster); ok {
				want = append(want, t)
			}
			if _, ok := l.Sees(t.Subject, h.terminals.Roster); ok != slices.Contains(*hidden[[]*terminals.Lister](t, "listers"), l) {
				wrong = append(wrong, fmt.Sprint(l.Principal, " of ", t.URI))
			}
		}
		if !slices.Equal(want, l.Terminals) {
			wrong = append(wrong, fmt.Sprint(l.Principal, " has ", len(l.Terminals), " terminals, want ", len(want)))
		}
	}
	return wrong
}

// Parked are the ids of the terminals that are parked, the longest first.
func (h *Host) Parked() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.terminals.Parked {
		ids = append(ids, t.ID)
	}
	return ids
}

// AgentReader is a reader of a terminal from its beginning, as an agent has it.
func AgentReader(h *Host, id string) (agenttools.Reader, error) {
	t, err := h.terminals.View(nil).Open(id)
	if err != nil {
		return nil, err
	}
	return t.Read(0)
}

// PageUpdate is the update for a page that is up to date as of a version.
func (h *Host) PageUpdate(version int64) (data []byte, now int64) {
	h.mu.Lock()
	use := h.terminals.Hold(h.terminals.Roster.Viewer(rights.Principal{Role: rights.RoleObserver})) // a page's goes on while the page does
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
	f.h.terminals.Dispose(f.t, nil)
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
	return portsOfLocked(h.terminals.Clients[id])
}
