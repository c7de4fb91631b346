package conform_test

import (
	"strings"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/host/conform"
	"tether/host/rights"
	"tether/internal/testkit"
)

// apart is a host with audiences, for Ann, whose machine lends, and for Bob, who watches.
type apart struct{ roles }

func (a apart) Authenticate(token string) (rights.Principal, bool) {
	p, ok := a.roles.Authenticate(token)
	p.Owner = map[string]string{"lend": "p-ann", "watch": "p-bob"}[token]
	return p, ok
}

func (a apart) Known(token string) (rights.Principal, bool) { return a.Authenticate(token) }

func (apart) Look() *rights.Roster { return together }

// Withdraw implements rights.People. These tests do not call it.
func (apart) Withdraw(string, string, rights.Grantee) error { return nil }

func (apart) Agent(string) (string, bool) { return "", false }

var together = &rights.Roster{On: true, People: map[string]string{"p-ann": "ann", "p-bob": "bob"}, Groups: map[string][]string{}}

func TestOwnHostKeepsAudiencesApart(t *testing.T) {
	h := host.New(host.Options{Access: apart{}, People: apart{}})
	t.Cleanup(h.Close)
	owner, observer := at(t, h), at(t, h)
	owner.Token, observer.Token = "lend", "watch"
	r, by := check(t, conform.Options{Endpoint: owner, Observer: observer, Timeout: testkit.Patience})
	if r.Failed() {
		t.Errorf("broken rules:\n%s", strings.Join(by[conform.Fail], "\n"))
	}
	passed := 0
	for _, rule := range by[conform.Pass] {
		if strings.HasPrefix(rule, "audience: ") {
			passed++
		}
	}
	if passed != 7 {
		t.Errorf("%d rules were kept", passed)
	}
	if r, by := check(t, conform.Options{Endpoint: owner, Timeout: testkit.Patience}); !strings.Contains(strings.Join(by[conform.Skip], "\n"), "audience: ") {
		t.Errorf("with one token: %+v", r)
	}
}

// A host whose marker has audiences, but which shows every terminal to everybody, breaks
// the rules.
func TestHostsThatDoNotKeepAudiencesApart(t *testing.T) {
	boasting := wrong{say: func(x *twist, m message) bool {
		if x.about != nil && x.about["method"] == ahp.MethodInitialize {
			if marker, ok := dig(m, "result", "_meta", ahp.MarkerKey).(message); ok {
				marker["audiences"] = message{"version": 1}
			}
		}
		return true
	}}
	h := host.New(host.Options{})
	t.Cleanup(h.Close)
	o := conform.Options{Endpoint: at(t, h), Timeout: testkit.Patience, Connect: boasting.connect(h)}
	o.Observer = o.Endpoint
	o.Observer.Token = "another"
	_, by := check(t, o)
	failed := strings.Join(by[conform.Fail], "\n")
	for _, rule := range []string{"granted to nobody", "unknown names", "only the owner", "withdrawn ends", "a grant with from", "announced again"} {
		if !strings.Contains(failed, rule) {
			t.Errorf("%s is not among what is broken:\n%s", rule, failed)
		}
	}
}
