package host_test

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"tether/host"
	"tether/host/page"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// shelf is a Register of a list.
type shelf struct {
	mu       sync.Mutex
	all      []rights.Entry
	provider bool // all tokens are of logins by an identity provider
}

// Entries implements rights.Register.
func (s *shelf) Entries() ([]rights.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all), nil
}

// End implements rights.Register.
func (s *shelf) End(kind rights.EntryKind, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.all)
	s.all = slices.DeleteFunc(s.all, func(e rights.Entry) bool { return e.Kind == kind && e.ID == id })
	if len(s.all) == before {
		return rights.ErrNoEntry
	}
	return nil
}

// Session implements rights.Register.
func (s *shelf) Session([sha256.Size]byte) bool { return s.provider }

func (s *shelf) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(e rights.Entry) bool { return e.ID == id })
}

func newShelf() *shelf {
	return &shelf{all: []rights.Entry{
		{Kind: rights.EntryMachine, ID: "1", Name: "laptop", OwnerID: "p-ann"}, {Kind: rights.EntryMachine, ID: "2", Name: "desktop", OwnerID: "p-bob"},
		{Kind: rights.EntryMachine, ID: "3", Name: "rack"}, {Kind: rights.EntryAgent, ID: "4", Name: "ci", OwnerID: "p-ann"},
		{Kind: rights.EntryPerson, ID: "p-ann", Name: "ann", OwnerID: "p-ann"}, {Kind: rights.EntryPerson, ID: "p-bob", Name: "bob", OwnerID: "p-bob"},
	}}
}

// managed is the answer for the page.
type managed struct {
	Me                   string
	Admin, Secure, Fresh bool
	Unproven             bool
	CSRF, Again          string
	Entries              []rights.Entry
}

func entriesFor(t *testing.T, url, cookie string) (m managed) {
	t.Helper()
	r, body := ask(t, url, visit{path: "/people/entries", cookie: cookie})
	if r.StatusCode != http.StatusOK || json.Unmarshal([]byte(body), &m) != nil {
		t.Fatalf("%d: %s", r.StatusCode, body)
	}
	return m
}

func (m *managed) names() string {
	var all []string
	for _, e := range m.Entries {
		if e.Kind != rights.EntrySession {
			all = append(all, string(e.Kind)+" "+e.Name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// end requests the end of an entry as the page does, modified by change.
func end(t *testing.T, url, cookie, csrf, kind, id string, change func(*http.Request)) (int, string) {
	t.Helper()
	return press(t, url, "/people/end", cookie, csrf, `{"kind":"`+kind+`","id":"`+id+`"}`, change)
}

// press sends a request that changes something as the page does, modified by change.
func press(t *testing.T, url, path, cookie, csrf, text string, change func(*http.Request)) (int, string) {
	t.Helper()
	at := "http" + strings.TrimPrefix(url, "ws")
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, at+path, strings.NewReader(text)))(t)
	r.Header.Set("Origin", strings.TrimSuffix(at, "/"))
	r.Header.Set("Cookie", cookie)
	r.Header.Set("X-Tether-Csrf", csrf)
	if change != nil {
		change(r)
	}
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	body := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(body)
}

// People see their own entries, administrators names, owners and sizes of everything.
func TestPeopleSeeTheirOwnEntries(t *testing.T) {
	s := newStaff(true, "observer.ann.ann", "observer.bob.bob", "machine.laptop.ann")
	h, url := serve(t, host.Options{Token: secret, Access: s, People: s, Register: newShelf(), Secure: true})
	machine := dial(t, url+"?tkn=machine.laptop.ann", "laptop", viewOptions{})
	machine.create(uri)
	machine.output(uri, "content\n", 0)
	ann, admin := launchedAs(t, h, url, s.of["observer.ann.ann"]), launchedAs(t, h, url, rights.Principal{Role: rights.RoleAdmin})
	m := entriesFor(t, url, ann)
	if m.names() != "agent ci, machine laptop" || m.Me != "ann" || m.Admin || !m.Secure || !m.Fresh {
		t.Errorf("ann sees %s: %+v", m.names(), m)
	}
	for _, e := range m.Entries {
		if e.Kind == rights.EntryMachine && (!e.Online || e.Terminals != 1 || e.Owner != "ann") {
			t.Errorf("%+v", e)
		}
	}
	bob := launchedAs(t, h, url, s.of["observer.bob.bob"])
	if m := entriesFor(t, url, bob); m.names() != "machine desktop" {
		t.Errorf("bob sees %s", m.names())
	}
	all := entriesFor(t, url, admin)
	testkit.Eventually(t, patience, "the output has arrived", func() bool { // it goes by another connection
		all = entriesFor(t, url, admin)
		return slices.ContainsFunc(all.Entries, func(e rights.Entry) bool { return e.Kind == rights.EntryTerminal && e.Size == 8 })
	})
	for _, want := range []string{"agent ci", "machine desktop", "machine laptop", "machine rack", "person ann", "person bob", "terminal laptop/"} {
		if !strings.Contains(all.names(), want) || !all.Admin {
			t.Errorf("administrators see no %s: %s", want, all.names())
		}
	}
	sessions := 0
	for _, e := range all.Entries {
		if e.Kind == rights.EntrySession {
			sessions++
		}
		if e.Kind == rights.EntryTerminal && (e.Size != 8 || e.Owner != "ann") {
			t.Errorf("%+v", e)
		}
	}
	if sessions != 3 {
		t.Errorf("administrators see %d logins", sessions)
	}
	if r, body := ask(t, url, visit{path: "/people/entries", token: secret}); r.StatusCode != http.StatusOK || strings.Contains(body, "content") {
		t.Errorf("by token: %d %s", r.StatusCode, body)
	}
	if r, _ := ask(t, url, visit{path: "/people/entries"}); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger: %d", r.StatusCode)
	}
}

// Only a page of this host ends entries, over https, soon after a login; and people end
// only their own.
func TestEndingAtThePage(t *testing.T) {
	s := newStaff(true, "observer.ann.ann", "observer.bob.bob")
	kept := newShelf()
	var audit []rights.AuditEvent
	var mu sync.Mutex
	h, url := serve(t, host.Options{Token: secret, Access: s, People: s, Register: kept, Secure: true, Audit: func(ev rights.AuditEvent) {
		mu.Lock()
		defer mu.Unlock()
		if ev.Type == rights.AuditRevoked {
			audit = append(audit, ev)
		}
	}})
	ann, bob := launchedAs(t, h, url, s.of["observer.ann.ann"]), launchedAs(t, h, url, s.of["observer.bob.bob"])
	csrf := entriesFor(t, url, ann).CSRF
	for name, c := range map[string]struct {
		kind, id, cookie, csrf string
		change                 func(*http.Request)
		status                 int
	}{
		"no cookie":            {"machine", "1", "", csrf, nil, 401},
		"a token, no cookie":   {"machine", "1", "", csrf, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }, 401},
		"a forged cookie":      {"machine", "1", "__Host-tether_host=x", csrf, nil, 403},
		"no origin":            {"machine", "1", ann, csrf, func(r *http.Request) { r.Header.Del("Origin") }, 403},
		"another page":         {"machine", "1", ann, csrf, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"no CSRF token":        {"machine", "1", ann, "", nil, 403},
		"another's CSRF token": {"machine", "1", ann, entriesFor(t, url, bob).CSRF, nil, 403},
		"another's machine":    {"machine", "2", ann, csrf, nil, 404},
		"the administrator's":  {"machine", "3", ann, csrf, nil, 404},
		"herself as a person":  {"person", "p-ann", ann, csrf, nil, 404},
		"nothing":              {"machine", "9", ann, csrf, nil, 404},
		"a terminal":           {"terminal", "x", ann, csrf, nil, 404},
		"an unknown kind":      {"x", "1", ann, csrf, nil, 404},
		"no JSON":              {`"`, "", ann, csrf, nil, 400},
		"half a character":     {`\ud800`, "", ann, csrf, nil, 400},
		"by GET":               {"machine", "1", ann, csrf, func(r *http.Request) { r.Method = http.MethodGet }, 405},
	} {
		if status, body := end(t, url, c.cookie, c.csrf, c.kind, c.id, c.change); status != c.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if len(kept.all) != 6 || len(audit) != 0 {
		t.Fatalf("something was ended: %v", kept.all)
	}
	if status, body := end(t, url, ann, csrf, "machine", "1", nil); status != http.StatusNoContent || kept.has("1") {
		t.Errorf("her own machine: %d %s", status, body)
	}
	if status, _ := end(t, url, ann, csrf, "machine", "1", nil); status != http.StatusNotFound {
		t.Errorf("again: %d", status)
	}
	mu.Lock()
	if len(audit) != 1 || audit[0].Name != "ann" || audit[0].Detail != "machine laptop" {
		t.Errorf("the record has %+v", audit)
	}
	mu.Unlock()
	admin := launchedAs(t, h, url, rights.Principal{Role: rights.RoleAdmin})
	m := entriesFor(t, url, admin)
	if status, body := end(t, url, admin, m.CSRF, "person", "p-bob", nil); status != http.StatusNoContent || kept.has("p-bob") {
		t.Errorf("an administrator ends a person: %d %s", status, body)
	}
	for _, e := range m.Entries {
		if e.Kind == rights.EntrySession && e.Name == "bob" {
			if status, body := end(t, url, admin, m.CSRF, "session", e.ID, nil); status != http.StatusNoContent {
				t.Errorf("a login: %d %s", status, body)
			}
		}
	}
	if r, _ := ask(t, url, visit{path: "/people/entries", cookie: bob}); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("bob, who was logged out: %d", r.StatusCode)
	}
}

// A login by an identity provider ends entries only if the provider has said that the
// person has just logged in there. Where it says nothing, logging in again does not help,
// and the page says so. The token that such a login leaves on a disk proves nothing
// either.
func TestEndingTakesAPerson(t *testing.T) {
	s := newStaff(true, "observer.ann.ann")
	ann := s.of["observer.ann.ann"]
	kept := newShelf()
	o := host.Options{Token: secret, Access: s, People: s, Register: kept, Secure: true, Provider: &page.LoginProvider{Name: "id.example.com", Path: "/login/oidc"}}
	h, url := serve(t, o)
	kept.provider = true
	cookies := map[string]string{"by a token": launchedAs(t, h, url, ann)}
	for _, proof := range []rights.Proof{rights.ProofNone, rights.ProofMissing, rights.ProofNow} {
		w := httptest.NewRecorder()
		h.Page().LogIn(w, httptest.NewRequest(http.MethodGet, "https://host.example/", nil), ann, "tetherlogin_x", proof)
		cookies[string(proof)] = w.Result().Cookies()[0].Name + "=" + w.Result().Cookies()[0].Value
	}
	for name, want := range map[string]struct {
		fresh, unproven bool
		status          int
		says            string
	}{
		"by a token":                {false, false, 403, "log in again"},
		string(rights.ProofNone):    {false, false, 403, "log in again"},
		string(rights.ProofMissing): {false, true, 403, "use the command at the host"},
		string(rights.ProofNow):     {true, false, 204, ""},
	} {
		m := entriesFor(t, url, cookies[name])
		status, body := end(t, url, cookies[name], m.CSRF, "machine", "1", nil)
		if m.Fresh != want.fresh || m.Unproven != want.unproven || m.Again != "/login/oidc?again" || status != want.status || !strings.Contains(body, want.says) {
			t.Errorf("%q: fresh %t, unproven %t, again at %s; %d %s", name, m.Fresh, m.Unproven, m.Again, status, body)
		}
	}
}

// Without https nothing can be ended.
func TestEndingTakesHTTPS(t *testing.T) {
	kept := newShelf()
	h, url := serve(t, host.Options{Token: secret, Register: kept})
	admin := launchedAs(t, h, url, rights.Principal{Role: rights.RoleAdmin})
	m := entriesFor(t, url, admin)
	if status, body := end(t, url, admin, m.CSRF, "machine", "1", nil); status != http.StatusForbidden || !strings.Contains(body, "https") || m.Secure || !kept.has("1") {
		t.Errorf("%d %s", status, body)
	}
}
