package host_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// joined connects a principal in memory.
func joined(t testing.TB, h *host.Host, p rights.Principal, o viewOptions) *viewer {
	t.Helper()
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = host.ServeAs(h, far, p) }()
	v := newViewer(t, near, string(p.Role)+p.Name)
	v.forget()
	t.Cleanup(func() { v.close(); <-served })
	v.initialize(o)
	return v
}

// enterprise is a host with machines, people who watch the list, and terminals. The first
// machine's are seen by five people, the others' by one.
func enterprise(t testing.TB, machines, people, each int) (*host.Host, []*host.Page) {
	t.Helper()
	s := newStaff(true)
	s.change(func(r *rights.Roster) {
		for n := range max(machines, people) {
			r.People[fmt.Sprint("p-", n)] = fmt.Sprint("n", n)
		}
	})
	h := steadyHost(t, host.Options{People: s, MaxConnections: 8192})
	for n := range machines {
		v := joined(t, h, rights.Principal{Role: rights.RoleMachine, Name: fmt.Sprint("m", n), Owner: fmt.Sprint("p-", n%people)}, viewOptions{resume: true, subs: []string{ahp.RootURI}})
		for i := range each {
			p := clientTerminal(fmt.Sprintf("ahp-terminal:/%d-%d", n, i), v.id)
			if n == 0 {
				p.Meta = ahp.AddAudience(nil, to("n1", "n2", "n3", "n4"))
			}
			must.Do(t, v.call(ahp.MethodCreateTerminal, p, nil))
		}
	}
	var pages []*host.Page
	for n := range people {
		p := rights.Principal{Role: rights.RoleObserver, Name: fmt.Sprint("n", n), Owner: fmt.Sprint("p-", n)}
		joined(t, h, p, viewOptions{subs: []string{ahp.RootURI}})
		if page := h.NewPage(p); n < 5 {
			pages = append(pages, page)
		}
	}
	return h, pages
}

// A change of the catalogue that five people see costs at a host with a thousand machines
// and hundreds of people no more than twice its cost at a host with those five. Both are
// measured in turn, and the best of each counts, so that other load does not.
func TestAChangeCostsOnlyItsViewers(t *testing.T) {
	large, allPages := enterprise(t, testkit.Load(1000, 200), testkit.Load(500, 100), 5)
	small, fewPages := enterprise(t, 10, 5, 5) // as many terminals for each of the five
	best := func(h *host.Host, pages []*host.Page, round int) time.Duration {
		least := time.Hour
		for n := range 20 {
			due, took := h.Change("ahp-terminal:/0-0", fmt.Sprint("title", round, "-", n), pages)
			if due != 11 { // the machine and five people have the list, and the pages the row
				t.Fatalf("%d are told", due)
			}
			least = min(least, took)
		}
		return least
	}
	var ratios []float64
	for round := range testkit.Load(15, 7) {
		few := best(small, fewPages, round)
		ratios = append(ratios, float64(best(large, allPages, round))/float64(few))
	}
	slices.Sort(ratios)
	t.Logf("ratios %.2f", ratios)
	if ratio := ratios[len(ratios)/2]; ratio > 2 {
		t.Errorf("it costs %.2f times as much (%.2f)", ratio, ratios)
	}
}

// With any changes in any order, each lister shows the result of the decision.
func TestListersMatchTheDecision(t *testing.T) {
	for seed := range testkit.Rounds(t, 5, 100) {
		random := rand.New(rand.NewPCG(uint64(seed), 5))
		s := newStaff(false)
		names := []string{"ann", "bob", "cat", "dan"}
		s.change(func(r *rights.Roster) {
			for _, n := range names {
				r.People["p-"+n] = n
			}
			r.Groups["web"] = []string{"p-ann"}
		})
		h := steadyHost(t, host.Options{People: s})
		machines := map[string]*viewer{}
		connectMachine := func(owner string) {
			machines[owner] = joined(t, h, rights.Principal{Role: rights.RoleMachine, Name: "m" + owner, Owner: owner}, viewOptions{resume: true, subs: []string{ahp.RootURI}})
		}
		owners := []string{"p-ann", "p-bob", ""}
		for _, o := range owners {
			connectMachine(o)
		}
		grantees := []string{"ann", "bob", "group:web", "everyone"}
		some := func() (a ahp.Audience) {
			for _, g := range grantees {
				if random.IntN(3) == 0 {
					a.Grants = append(a.Grants, ahp.Grant{To: g})
				}
			}
			if a.HostGrants, a.GuestsOnly = random.IntN(2) == 0, random.IntN(8) == 0; random.IntN(4) == 0 {
				a.Denied = []string{"bob"}
			}
			return a
		}
		pages := map[string]*host.Page{}
		for range 200 {
			owner := owners[random.IntN(3)]
			v, uri := machines[owner], fmt.Sprintf("ahp-terminal:/%s-%d", owner, random.IntN(6))
			select {
			case <-v.done: // audiences were switched
				connectMachine(owner)
				continue
			default:
			}
			switch random.IntN(7) {
			case 0:
				p := clientTerminal(uri, v.id)
				p.Meta = ahp.AddAudience(nil, some())
				_ = v.call(ahp.MethodCreateTerminal, p, nil) // it may be there
			case 1:
				_ = v.audience(uri, some()) // it may not be there
			case 2:
				_ = v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil) // likewise
			case 3:
				s.change(func(r *rights.Roster) { r.Groups["web"] = []string{"p-" + names[random.IntN(4)]} })
				h.LookAtPeople()
			case 4:
				s.change(func(r *rights.Roster) {
					r.Grants = []rights.MachineGrant{{Machine: "mp-ann", Owner: "p-ann", To: rights.KeptGrantee("dan", "p-dan")}}
				})
				h.LookAtPeople()
			case 5:
				if random.IntN(8) == 0 {
					s.change(func(r *rights.Roster) { r.On = !r.On })
					h.LookAtPeople()
				}
			case 6:
				name := names[random.IntN(4)]
				role := []rights.Role{rights.RoleObserver, rights.RoleAgent, rights.RoleAdmin}[random.IntN(3)]
				if key := name + string(role); pages[key] == nil {
					pages[key] = h.NewPage(rights.Principal{Role: role, Name: key, Owner: "p-" + name})
					pages[key].Anew()
				}
			}
			if wrong := h.Misindexed(); len(wrong) > 0 {
				t.Fatalf("seed %d: %v", seed, wrong)
			}
			for key, page := range pages {
				if random.IntN(3) > 0 {
					continue // it looks later
				}
				if wrong := h.Astray(page); len(wrong) > 0 {
					t.Fatalf("seed %d: the page of %s: %v", seed, key, wrong)
				}
			}
		}
	}
}

// The decision allocates nothing, and the cost of output does not depend on how many may
// see it.
func TestTheDecisionAllocatesNothing(t *testing.T) {
	h, _ := enterprise(t, 3, 5, 1)
	p := rights.Principal{Role: rights.RoleObserver, Name: "n4", Owner: "p-4"}
	if n := testing.AllocsPerRun(100, func() { h.Decides(p, "ahp-terminal:/0-0") }); n > 0 || !h.Decides(p, "ahp-terminal:/0-0") || h.Decides(p, "ahp-terminal:/2-0") {
		t.Errorf("%v allocations", n)
	}
}

// Output costs as many allocations whether audiences are in force or not, and however
// many names the terminal is granted to: with nobody who watches exactly, with observers
// but for what their connections do in the meantime.
func TestOutputAllocatesNothingForAudiences(t *testing.T) {
	line := strings.Repeat("x", 79) + "\n"
	allocations := func(on bool, grants, observers int) float64 {
		s := newStaff(on)
		s.change(func(r *rights.Roster) {
			for n := range ahp.MaxGrants {
				r.People[fmt.Sprint("p-", n)] = fmt.Sprint("n", n)
			}
		})
		h := steadyHost(t, host.Options{People: s, Scrollback: 64 << 10, LogBytes: 64 << 10})
		f := host.NewFeed(h, uri)
		a := ahp.Audience{}
		for n := range grants {
			a.Grants = append(a.Grants, ahp.Grant{To: fmt.Sprint("n", n)})
		}
		f.Lend(a)
		for n := range observers {
			joined(t, h, rights.Principal{Role: rights.RoleObserver, Name: fmt.Sprint("n", n), Owner: fmt.Sprint("p-", n)}, viewOptions{subs: []string{uri}})
		}
		for range 1 << 12 { // until the kept data is as large as it gets
			f.Text(line)
		}
		least := math.Inf(1) // the machine's other work makes the connections send more often
		for range 20 {
			least = min(least, testing.AllocsPerRun(100, func() { f.Text(line) }))
		}
		return least
	}
	off, on := allocations(false, 0, 0), allocations(true, ahp.MaxGrants, 0)
	t.Logf("without observers: %.0f off, %.0f on", off, on)
	if on > off {
		t.Errorf("%.0f allocations for a line, without audiences %.0f", on, off)
	}
	off, on = allocations(false, 5, 5), allocations(true, ahp.MaxGrants, 5)
	t.Logf("with five observers: %.0f off, %.0f on", off, on)
	if on > off+2 {
		t.Errorf("%.0f allocations for a line with five observers, without audiences %.0f", on, off)
	}
}

// At a running host a person takes at most 1 KiB of memory, and so does a grant of a
// terminal.
func TestMemoryOfPeopleAndGrants(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the first one's findings
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const people, terminals = 2000, 200
	s := newStaff(true)
	h := steadyHost(t, host.Options{People: s})
	var feeds []*host.Feed
	for n := range terminals {
		feeds = append(feeds, host.NewFeed(h, fmt.Sprint(uri, n)))
	}
	before := heap()
	s.change(func(r *rights.Roster) {
		for n := range people {
			id := fmt.Sprintf("p-%016d", n)
			r.People[id] = fmt.Sprintf("%032d", n)
			for _, group := range []string{fmt.Sprint("team", n/10), fmt.Sprint("floor", n/100)} {
				r.Groups[group] = append(r.Groups[group], id)
			}
		}
	})
	h.LookAtPeople()
	person := (heap() - before) / people
	before = heap()
	for n, f := range feeds {
		a := ahp.Audience{}
		for i := range ahp.MaxGrants {
			a.Grants = append(a.Grants, ahp.Grant{To: fmt.Sprintf("%032d", (n+i)%people)})
		}
		f.Lend(a)
	}
	grant := (heap() - before) / (terminals * ahp.MaxGrants)
	t.Logf("%d bytes for a person, %d for a grant", person, grant)
	if person > 1<<10 || grant > 1<<10 {
		t.Errorf("a person takes %d bytes, a grant %d", person, grant)
	}
	runtime.KeepAlive(h)
}
