package runs_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/history"
	"tether/agent/loans"
	"tether/agent/runs"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// at is somebody at a host.
func at(host string, names ...string) runs.Asker {
	return runs.Asker{Actor: term.Host(host), Host: host, Names: names}
}

// Somebody at a host sees what was printed while the terminal was lent there and a grant
// covered them, as long as both are so. Whatever is in doubt was not lent.
func TestLent(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{})
		id := string(h.ID())
		sees := func(a runs.Asker, want string) {
			t.Helper()
			settle()
			if got := read(t, w.runs.As(a), id); got != want {
				t.Errorf("%s %v (owner %t) sees %q, want %q", a.Host, a.Names, a.Owner, got, want)
			}
			if n := len(slices.Collect(w.runs.As(a).List(history.Query{}))); (n > 0) != (want != "none") {
				t.Errorf("%v lists %d runs", a.Names, n)
			}
		}
		grant := func(c loans.AudienceChange) {
			t.Helper()
			check.OK(t, h.LendTo("lab", loans.Change{Audience: c}))
		}
		owner := at("lab")
		owner.Owner = true
		prints(f, "before")
		sees(owner, "none")
		grant(loans.AudienceChange{Grant: []string{"bob"}})
		prints(f, "lent")
		grant(loans.AudienceChange{Grant: []string{"ann"}, FromNow: true})
		prints(f, "more")
		sees(owner, gap("before")+"lentmore")
		sees(at("lab", "bob"), gap("before")+"lentmore")
		sees(at("lab", "group:a", "ann"), gap("beforelent")+"more")
		sees(at("lab", "eve"), "none")
		sees(at("other", "bob"), "none")
		grant(loans.AudienceChange{Deny: []string{"bob"}})
		sees(at("lab", "bob"), "none")
		check.OK(t, h.Unlend("lab"))
		prints(f, "alone")
		sees(owner, "none")
		grant(loans.AudienceChange{Grant: []string{"ann"}})
		prints(f, "again")
		sees(owner, gap("before")+"lentmore"+gap("alone")+"again")
		f.End(0)
		sees(owner, gap("before")+"lentmore"+gap("alone")+"again")
		check.OK(t, h.Unlend("lab"))
		sees(owner, "none")
		if got := read(t, w.person(), id); got != "beforelentmorealoneagain" {
			t.Errorf("the person sees %q", got)
		}
	})
}

// The next daemon knows what was lent; a host that was paired anew under the same name
// has nothing of the former one's, and nobody has what is in a directory that must not be
// lent any more.
func TestLentByAnEarlierDaemon(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		h, f := w.spawn(term.Spec{LendTo: []string{"lab"}})
		owner := at("lab")
		owner.Owner = true
		prints(f, "one\r\n"+moved+escaped(testkit.Abs("/secret"))+";n0nce\atwo\r\n")
		settle()
		sees := func(o runs.Options, want string) {
			t.Helper()
			w.stop(time.Minute)
			w.record(dir, o)
			settle()
			if got := read(t, w.runs.As(owner), string(h.ID())); got != want {
				t.Errorf("the owner sees %q, want %q", got, want)
			}
		}
		sees(runs.Options{}, "one\r\ntwo\r\n")
		prints(f, "three")
		sees(runs.Options{}, "one\r\ntwo\r\nthree")
		sees(runs.Options{HostID: func(host string) string { return host + "2" }}, gap("one\r\ntwo\r\nthree"))
		sees(runs.Options{HostID: func(string) string { return "" }}, "none")
		sees(never(testkit.Abs("/secret")), "one\r\n")
	})
}

// Agents here see their own runs and the person's.
func TestAgentsSee(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dir, runs.Options{})
		person, f := w.spawn(term.Spec{})
		of := must.Get(w.pool.As(term.Agent("ann")).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
		synctest.Wait()
		prints(f, "person")
		prints(w.children[of.ID()], "ann")
		settle()
		for name, want := range map[string]string{"ann": "person ann", "bob": "person none"} {
			v := w.runs.As(runs.Asker{Actor: term.Agent(name)})
			if got := read(t, v, string(person.ID())) + " " + read(t, v, string(of.ID())); got != want {
				t.Errorf("%s sees %q, want %q", name, got, want)
			}
			if n := len(slices.Collect(v.List(history.Query{}))); n != 2-strings.Count(want, "none") {
				t.Errorf("%s lists %d runs", name, n)
			}
		}
		w.children[of.ID()].End(0)
		settle()
	})
}
