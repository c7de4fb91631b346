package web_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"tether/host"
	"tether/host/rights"
)

// register has the entries of the page of people.
type register struct {
	mu  sync.Mutex
	all []rights.Entry
}

// Entries implements rights.Register.
func (r *register) Entries() ([]rights.Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all), nil
}

// End implements rights.Register.
func (r *register) End(kind rights.EntryKind, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(e rights.Entry) bool { return e.Kind == kind && e.ID == id })
	return nil
}

// Session implements rights.Register.
func (r *register) Session([sha256.Size]byte) bool { return false }

// An administrator finds one of a thousand machines and ends it with the keyboard, also
// in a phone's window. Names never become markup.
func TestPageOfPeople(t *testing.T) {
	b := newBrowser(t)
	kept := &register{all: []rights.Entry{{Kind: rights.EntryAgent, ID: "a", Name: "<img src=x onerror=alert(1)>", Detail: "agent"}, {Kind: rights.EntryPerson, ID: "p", Name: "ann", Detail: "web, ops"}}}
	for i := range 1000 {
		kept.all = append(kept.all, rights.Entry{Kind: rights.EntryMachine, ID: fmt.Sprint("m", i), Name: fmt.Sprintf("machine-%03d", i), Owner: "ann", Detail: "machine"})
	}
	s := newSite(t, host.Options{Register: kept, Secure: true})
	b.do("open", nil, nil)
	s.follow(b, s.host.Page().Launch(rights.Principal{Role: rights.RoleAdmin}))
	b.wait("document.querySelector('#link')?.dataset.state === 'up'")
	b.do("goto", args{"url": s.server.URL + "/people"}, nil)
	b.wait("document.querySelectorAll('tbody tr').length >= 1002")
	if text := b.text("document.querySelector('#who').textContent + document.querySelector('#tables').textContent.slice(-900)"); !strings.Contains(text, "administrator: this is everybody's") || !strings.Contains(text, "<img src=x") {
		t.Errorf("the page says\n%.600s", text)
	}
	b.shot("people")
	b.do("key", args{"key": "/"}, nil)
	b.do("type", args{"text": "machine-777"}, nil)
	b.wait("[...document.querySelectorAll('tbody tr')].filter(e => !e.hidden).length === 1")
	b.do("key", args{"key": "Tab"}, nil)
	b.wait("document.activeElement.getAttribute('aria-label') === 'End machine machine-777'")
	b.do("key", args{"key": "Enter"}, nil)
	b.wait("document.querySelector('#sure').open && document.querySelector('#question').textContent === 'End machine machine-777?'")
	b.do("key", args{"key": "Escape"}, nil)
	b.wait("!document.querySelector('#sure').open")
	if all, _ := kept.Entries(); len(all) != 1002 {
		t.Fatal("it was ended although the question was cancelled")
	}
	b.do("key", args{"key": "Enter"}, nil)
	b.wait("document.querySelector('#sure').open")
	b.do("key", args{"key": "Tab"}, nil)
	b.do("key", args{"key": "Enter"}, nil)
	b.wait("[...document.querySelectorAll('tbody tr')].filter(e => !e.hidden).length === 0")
	if all, _ := kept.Entries(); len(all) != 1001 || slices.ContainsFunc(all, func(e rights.Entry) bool { return e.ID == "m777" }) {
		t.Errorf("%d are left", len(all))
	}
	b.do("size", args{"width": 390, "height": 800}, nil)
	b.do("eval", args{"js": "document.querySelector('#filter').value = ''; document.querySelector('#filter').dispatchEvent(new Event('input'))"}, nil)
	b.wait("document.documentElement.scrollWidth <= innerWidth")
	b.shot("people-phone")
	b.clean(s.server.URL)
}

// The person's own terminals and shared ones are separate, once the host reports owners.
func TestPageSeparatesMineAndShared(t *testing.T) {
	b := newBrowser(t)
	people := &team{roster: &rights.Roster{On: true, People: map[string]string{"p-ann": "ann"}, Groups: map[string][]string{}}}
	s := newSite(t, host.Options{People: people, Register: &register{}})
	s.lend(s.machine, "laptop", "web")
	b.do("open", nil, nil)
	s.follow(b, s.host.Page().Launch(rights.Principal{Role: rights.RoleAdmin}))
	b.wait("document.querySelectorAll('nav a').length === 1")
	if text := b.text("document.querySelector('nav').innerText"); !strings.HasPrefix(strings.ToLower(text), "my machines") || strings.Contains(text, "Shared with me") {
		t.Errorf("the list:\n%s", text)
	}
}

// team knows people.
type team struct{ roster *rights.Roster }

// Look implements rights.People.
func (t *team) Look() *rights.Roster { return t.roster }

// Withdraw implements rights.People. These tests do not call it.
func (t *team) Withdraw(string, string, rights.Grantee) error { return nil }

// Agent implements rights.People.
func (t *team) Agent(string) (string, bool) { return "", false }
