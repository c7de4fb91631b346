package access_test

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// company is a place for tokens and people.
func company(t *testing.T) (*access.People, *access.Tokens, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	must.Do(t, secret.Dir(dir))
	tokens := must.Get(access.Open(access.File(filepath.Join(dir, "tokens.json"))))(t)
	people := must.Get(access.OpenPeople(access.File(filepath.Join(dir, "people.json")), tokens))(t)
	return people, tokens, dir
}

func TestPeople(t *testing.T) {
	p, tokens, dir := company(t)
	before := p.Look()
	ann, bob := must.Get(p.Ensure("ann"))(t), must.Get(p.Ensure("bob"))(t)
	if again := must.Get(p.Ensure("ann"))(t); again.ID != ann.ID {
		t.Errorf("ann is %v and %v", ann, again)
	}
	for _, name := range []string{"Ann", "everyone", "a b", ""} {
		if _, err := p.Ensure(name); err == nil {
			t.Errorf("%q is a person", name)
		}
	}
	tokens.OwnedBy(ann.ID)
	agent, _, err := tokens.Create("ci", rights.RoleAgent, 0)
	must.Do(t, err)
	if _, _, err := tokens.CreatePairing("laptop", 0); err != nil {
		t.Fatal(err)
	}
	if who, _ := tokens.Authenticate(agent); who.Owner != ann.ID {
		t.Errorf("the agent is %+v", who)
	}
	for _, err := range []error{p.Join("web", "ann", "bob"), p.Grant("laptop", "bob", "group:web", "agent:ci", "everyone"), p.Switch(true)} {
		check.OK(t, err)
	}
	for _, err := range []error{p.Join("web", "carol"), p.Leave("db"), p.Leave("web", "carol"), p.Grant("laptop", "carol"), p.Grant("desk", "bob"),
		p.Grant("laptop", "group:db"), p.Grant("laptop", "agent:ann")} {
		if err == nil {
			t.Error("what is unknown was taken")
		}
	}
	r := p.Look()
	if r == before || !r.On || r.People[bob.ID] != "bob" || len(r.Groups["web"]) != 2 || len(r.Grants) != 4 || p.Look() != r {
		t.Errorf("the roster is %+v", r)
	}
	if g, ok := rights.Resolve(p, r, "bob"); !ok || g != r.Grants[0].To {
		t.Errorf("bob is %+v, granted was %+v", g, r.Grants[0].To)
	}
	if g, ok := rights.Resolve(p, r, "agent:ci"); !ok || g != r.Grants[2].To {
		t.Errorf("the agent is %+v, granted was %+v", g, r.Grants[2].To)
	}
	must.Get(p.End("bob"))(t)
	if _, ok := rights.Resolve(p, p.Look(), "bob"); ok || len(p.Look().Groups["web"]) != 1 || len(p.Look().Grants) != 3 {
		t.Errorf("bob has left, and the roster is %+v", p.Look())
	}
	if _, err := p.Ensure("bob"); err == nil {
		t.Error("a name was given twice")
	}
	if n, err := p.EndGrant("laptop", ""); n != 3 || err != nil {
		t.Errorf("%d grants were ended, %v", n, err)
	}
	if _, err := p.EndGrant("laptop", ""); !errors.Is(err, access.ErrNoGrant) {
		t.Errorf("a grant was ended twice: %v", err)
	}
	again, err := access.OpenPeople(access.File(filepath.Join(dir, "people.json")), tokens) // after a restart
	if err != nil || !again.Look().On || again.Look().People[ann.ID] != "ann" || len(again.Look().Groups["web"]) != 1 {
		t.Errorf("after a restart: %+v, %v", again.Look(), err)
	}
}

// An unreadable file changes nothing: nobody sees more because a file is damaged.
func TestDamagedPeople(t *testing.T) {
	p, tokens, dir := company(t)
	must.Get(p.Ensure("ann"))(t)
	must.Do(t, p.Switch(true))
	path := filepath.Join(dir, "people.json")
	before := p.Look()
	for _, damaged := range []string{"{", `{"version":2}`, `{"version":1,"people":[{"id":"p","name":"a b"}]}`,
		`{"version":1,"people":[{"id":"p","name":"a"},{"id":"q","name":"A"}]}`, `{"version":1,"grants":[{"machine":"a","to":"b c"}]}`} {
		must.Do(t, secret.WriteFile(path, []byte(damaged)))
		if p.Look() != before || p.Err() == nil {
			t.Errorf("%s: %+v, %v", damaged, p.Look(), p.Err())
		}
		if _, err := access.OpenPeople(access.File(path), tokens); err == nil {
			t.Errorf("%s: a host starts with it", damaged)
		}
		if p.Switch(false) == nil {
			t.Errorf("%s was written over", damaged)
		}
	}
	var told []error
	p.OnError(func(err error) { told = append(told, err) })
	must.Do(t, os.Remove(path))
	if p.Look() != before || p.Err() == nil {
		t.Errorf("without the file: %+v, %v", p.Look(), p.Err())
	}
	must.Do(t, secret.WriteFile(path, []byte(`{"version":1}`)))
	if p.Look() == before || p.Look().On || len(told) != 1 || told[0] != nil {
		t.Errorf("with the file again: %+v, %v", p.Look(), told)
	}
}

// An owner belongs to a name, not to one token; connections of another owner end, and
// reconnect as the new one's.
func TestOwnersOfTokens(t *testing.T) {
	p, tokens, _ := company(t)
	ann, bob := must.Get(p.Ensure("ann"))(t), must.Get(p.Ensure("bob"))(t)
	old, _, err := tokens.Create("laptop", rights.RoleMachine, 0)
	must.Do(t, err)
	was, _ := tokens.Authenticate(old)
	tokens.OwnedBy(ann.ID)
	if _, _, err := tokens.Create("laptop", rights.RoleMachine, 0); err != nil {
		t.Fatal(err)
	}
	if now, _ := tokens.Authenticate("x" + old); now.Owner != "" {
		t.Error("a wrong token has an owner")
	}
	if now, ok := tokens.Authenticate(old); !ok || now.Owner != ann.ID || was.Live.Err() == nil {
		t.Errorf("the machine is %+v; before, %v", now, was.Live.Err())
	}
	public, _, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	must.Get(tokens.AddDevice("desk", public, nil))(t)
	once, _, err := tokens.CreatePairing("box", time.Hour)
	must.Do(t, err)
	other, _, _ := ed25519.GenerateKey(nil)
	must.Get(tokens.Redeem(once, other))(t)
	for _, key := range []ed25519.PublicKey{public, other} {
		if p, ok := tokens.Device(key); !ok || p.Owner != ann.ID {
			t.Errorf("a machine that was paired is %+v", p)
		}
	}
	tokens.OwnedBy(bob.ID)
	if _, _, err := tokens.Create("laptop", rights.RoleMachine, 0); err == nil {
		t.Error("a name has two owners")
	}
	must.Do(t, tokens.SetOwner("laptop", bob.ID))
	if err := tokens.SetOwner("nothing", bob.ID); !errors.Is(err, access.ErrNoToken) {
		t.Errorf("a machine that is not there: %v", err)
	}
	all, err := tokens.List()
	all = slices.DeleteFunc(all, func(i access.Info) bool { return i.Principal != "laptop" })
	if err != nil || len(all) != 2 || all[0].Owner != bob.ID || all[1].Owner != bob.ID {
		t.Errorf("%+v, %v", all, err)
	}
}

// A file with as much as there may be can be read again, and no person and no grant takes
// more than 1 KiB.
func TestFullPeople(t *testing.T) {
	_, tokens, dir := company(t)
	long := func(i int) string { return fmt.Sprintf("%060d", i) }
	text := `{"version":1,"on":true,"people":[`
	for i := range 2000 {
		text += fmt.Sprintf(`{"id":"p-%s","name":"%s","created":"2026-01-02T03:04:05Z"},`, "abcdefghijklmn"+fmt.Sprint(i), long(i))
	}
	text = text[:len(text)-1] + `],"groups":[],"grants":[`
	for i := range 1000 {
		text += fmt.Sprintf(`{"machine":"%s","owner":"p-abcdefghijklmnop","to":"%s","id":"p-abcdefghijklmnop","created":"2026-01-02T03:04:05Z"},`, long(i), long(i))
	}
	text = text[:len(text)-1] + `]}`
	path := filepath.Join(dir, "people.json")
	must.Do(t, secret.WriteFile(path, []byte(text)))
	p := must.Get(access.OpenPeople(access.File(path), tokens))(t)
	must.Do(t, p.Switch(false))
	if info, err := os.Stat(path); err != nil || info.Size() > 3000<<10 || p.Look().On {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// Any file is refused with an error, or people can be added to it.
func FuzzPeopleFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"on":true,"people":[{"id":"p-1","name":"ann","created":"2026-01-02T03:04:05Z"}],"groups":[{"name":"web","members":["p-1"]}],` +
		`"grants":[{"machine":"laptop","to":"group:web","created":"2026-01-02T03:04:05Z"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := filepath.Join(t.TempDir(), "state")
		path := filepath.Join(dir, "people.json")
		must.Do(t, errors.Join(secret.Dir(dir), secret.WriteFile(path, data)))
		tokens := must.Get(access.Open(access.File(filepath.Join(dir, "tokens.json"))))(t)
		p, err := access.OpenPeople(access.File(path), tokens)
		if err != nil {
			return
		}
		one, err := p.Ensure("fuzz-made-this")
		if err == nil && p.Look().People[one.ID] != one.Name {
			t.Fatalf("%+v is not there", one)
		}
	})
}

// People and grants take at most 1 KiB of memory each.
func TestMemoryOfPeople(t *testing.T) {
	p, tokens, dir := company(t)
	ann := must.Get(p.Ensure("ann"))(t)
	tokens.OwnedBy(ann.ID)
	if _, _, err := tokens.CreatePairing("laptop", 0); err != nil {
		t.Fatal(err)
	}
	f := struct {
		Version int                   `json:"version"`
		On      bool                  `json:"on"`
		People  []access.Person       `json:"people"`
		Groups  []any                 `json:"groups"`
		Grants  []access.MachineGrant `json:"grants"`
	}{Version: 1, On: true, Groups: []any{}}
	const people, grants = 1500, 900
	for n := range people {
		f.People = append(f.People, access.Person{ID: fmt.Sprintf("p-%016d", n), Name: fmt.Sprintf("%064d", n)})
	}
	for n := range grants {
		f.Grants = append(f.Grants, access.MachineGrant{Machine: fmt.Sprintf("%064d", n), Owner: ann.ID, To: fmt.Sprintf("%064d", n), ID: fmt.Sprintf("p-%016d", n)})
	}
	data := must.Get(json.Marshal(f))(t)
	must.Do(t, secret.WriteFile(filepath.Join(dir, "people.json"), data))
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the first one's findings
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	r := p.Look()
	after := heap()
	runtime.KeepAlive(data)
	runtime.KeepAlive(f)
	each := (after - before) / (people + grants)
	t.Logf("%d bytes for each", each)
	if len(r.People) != people || len(r.Grants) != grants || each > 1<<10 {
		t.Errorf("%d people and %d grants take %d bytes each", len(r.People), len(r.Grants), each)
	}
}

// What administrators have ended outlives the host: the newest, each once.
func TestWithdrawn(t *testing.T) {
	p, tokens, dir := company(t)
	bob := must.Get(p.Ensure("bob"))(t)
	to := rights.KeptGrantee("bob", bob.ID)
	path := filepath.Join(dir, "people.json")
	data := must.Get(os.ReadFile(path))(t)
	full := strings.Repeat(`{"terminal":"ahp-terminal:/old","to":"bob"},`, 998) // and two more is as many as there may be
	text := strings.Replace(string(data), `"grants":`, `"withdrawn":[`+strings.TrimSuffix(full, ",")+`],"grants":`, 1)
	must.Do(t, secret.WriteFile(path, []byte(text)))
	for n := range 12 {
		must.Do(t, p.Withdraw(fmt.Sprint("ahp-terminal:/", n), "bob", to))
	}
	must.Do(t, p.Withdraw("ahp-terminal:/0", "bob", to))
	again := must.Get(access.OpenPeople(access.File(path), tokens))(t)
	if got := again.Look().Withdrawn; len(got) != 13 || len(got["ahp-terminal:/old"]) != 988 || len(got["ahp-terminal:/0"]) != 1 || got["ahp-terminal:/11"][0] != to {
		t.Errorf("%d terminals, %d of the old one", len(got), len(got["ahp-terminal:/old"]))
	}
	if err := p.Withdraw("no uri", "bob", to); err == nil {
		t.Error("a terminal without a URI is taken")
	}
}
