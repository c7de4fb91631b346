package term_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// named starts a terminal with a suggested name, which is not taken if the terminal has a
// name.
func named(t *testing.T, p *term.Pool, name, where, what string) term.Handle {
	t.Helper()
	s := term.Spec{Name: name, Command: []string{"npm"}, Cwd: testkit.Abs("/src/" + where)}
	if name == "" {
		s.Suggest(term.NameParts{Where: where, What: what})
	}
	return must.Get(p.As(term.User).Spawn(s))(t)
}

// Suggested names are unique among terminals that run, and no name changes afterwards.
func TestSuggestedNamesAreUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, last := fakes(t, term.Options{})
		var all []term.Handle
		for _, c := range [][4]string{
			{"", "app", "dev", "app-dev"}, {"", "app", "dev", "app-dev-2"}, {"app-dev-3", "", "", "app-dev-3"}, {"", "app", "dev", "app-dev-4"},
			{"app-dev", "", "", "app-dev"}, {"", "", "dev", "dev-4"}, {"", "web", "dev", "web-dev"},
		} {
			h := named(t, p, c[0], c[1], c[2])
			if got := h.Info().Name; got != c[3] {
				t.Errorf("%q: %q, want %q", c[:3], got, c[3])
			}
			all = append(all, h)
		}
		last().End(0)
		synctest.Wait()
		if h := named(t, p, "", "web", "dev"); h.Info().Name != "web-dev" {
			t.Errorf("when the first has exited: %q", h.Info().Name)
		}
		if got := all[0].Info().Name; got != "app-dev" {
			t.Errorf("the first is called %q now", got)
		}
		var together sync.WaitGroup
		for range 20 {
			together.Go(func() { named(t, p, "", "many", "dev") })
		}
		together.Wait()
		var names []string
		for _, h := range p.As(term.User).List() {
			names = append(names, h.Info().Name)
		}
		for n := 2; n <= 20; n++ {
			if !slices.Contains(names, fmt.Sprintf("many-dev-%d", n)) {
				t.Errorf("of 20 that start together none is number %d: %q", n, names)
			}
		}
	})
}

// The next daemon knows which part of a name is the directory's.
func TestSuggestedNamesOutliveTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := must.Get(redact.Compile(redact.Options{Patterns: []string{"held"}}))(t)
		v := newVault(1 << 20)
		var s term.Spec
		s.Suggest(term.NameParts{Where: "held", What: "dev"})
		first, h, l := keeping(t, v, term.Options{}, s)
		if got := h.Info().Name; got != "held-dev" {
			t.Errorf("first: %q", got)
		}
		synctest.Wait()
		l.cut()
		synctest.Wait()
		first.Close(context.Background())
		next, h, l := adopting(t, v, term.Options{})
		defer func() { l.cut(); next.Close(context.Background()) }()
		i := h.Info()
		if i.HideDirectory(rules); i.Name != "held-dev" || i.Title != "held-dev" {
			t.Errorf("where the directory is told: %q, %q", i.Name, i.Title)
		}
		i.StartCwd = testkit.Abs("/held")
		if i.HideDirectory(rules); i.Name != "dev" || i.Title != "dev" {
			t.Errorf("where it is masked: %q, %q", i.Name, i.Title)
		}
	})
}
