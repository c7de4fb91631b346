package adoptions_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/adopt"
	"tether/agent/adoptions"
	"tether/agent/config"
	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/vocab"
)

// world is a multiplexer with panes, and a pool in which their readers are fake children.
// Times are those of the test's bubble.
type world struct {
	t      *testing.T
	pool   *term.Pool
	keeper *adoptions.Keeper
	keep   string
	stop   context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	panes    map[string]adopt.Pane
	children map[term.ID]*testkit.Child
	starts   int
	again    int
	paired   map[string]bool
	trouble  string
}

func newWorld(t *testing.T, rules ...config.Adopt) *world {
	t.Helper()
	w := &world{t: t, keep: filepath.Join(t.TempDir(), "adopted.json"), panes: map[string]adopt.Pane{}, children: map[term.ID]*testkit.Child{}, paired: map[string]bool{"host": true, "other": true}}
	w.pool = term.NewPool(term.Options{
		Start: func(id term.ID, _ pty.Command) (term.PTY, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			c := testkit.NewChild()
			go c.Print("picture")
			w.children[id] = c
			return c, nil
		},
		Lendable: func(host string) bool { w.mu.Lock(); defer w.mu.Unlock(); return w.paired[host] },
	})
	t.Cleanup(func() { must.Do(t, w.pool.Close(context.Background())) })
	w.begin(rules...)
	return w
}

// begin is the start of a daemon.
func (w *world) begin(rules ...config.Adopt) {
	w.keeper = adoptions.New(adoptions.Options{
		Access: w.pool.As(term.User), Start: w.start, Find: w.find, Rules: rules, Keep: w.keep,
		List: func(context.Context) (all []adopt.Pane, errs []error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, p := range w.panes {
				all = append(all, p)
			}
			return all, nil
		},
		Report: func(trouble string) { w.mu.Lock(); defer w.mu.Unlock(); w.trouble = trouble },
	})
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop, w.done = stop, make(chan struct{})
	go func() { w.keeper.Run(ctx); close(w.done) }()
}

func (w *world) end() { w.stop(); <-w.done }

func (w *world) start(_ context.Context, p adopt.Pane, r adoptions.Request) (term.Handle, error) {
	w.mu.Lock()
	w.starts++
	if r.Again {
		w.again++
	}
	w.mu.Unlock()
	name := r.Name
	if name == "" {
		name = "n" + p.Target.Pane
	}
	return w.pool.As(term.User).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/"), Name: name, Private: r.Private,
		Adopted: &vocab.Adopted{From: p.Target.String(), Program: "tmux", Exact: true, Types: r.Types, Rule: r.Rule}})
}

func (w *world) find(_ context.Context, t adopt.Target) (adopt.Pane, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.panes[t.String()]
	if !ok {
		return p, &adopt.UnknownError{Target: t}
	}
	return p, nil
}

// pane makes a pane, or replaces the one of that number.
func (w *world) pane(n, pid int, command string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	target := adopt.Target{Program: "tmux", Pane: fmt.Sprintf("%%%d", n)}
	w.panes[target.String()] = adopt.Pane{Target: target, Command: command, Dir: testkit.Abs("/"), Pid: pid, Server: proc.ID{Pid: 7, Start: 1}, Exact: true}
}

func (w *world) closes(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.panes, fmt.Sprintf("tmux:%%%d", n))
}

// running returns the running terminals that are adopted, oldest first.
func (w *world) running() (all []term.Handle) {
	synctest.Wait()
	for _, h := range w.pool.As(term.User).List() {
		if i := h.Info(); i.Adopted != nil && i.Exit == nil {
			all = append(all, h)
		}
	}
	return all
}

// dies ends the reader of a terminal, whose pane lives.
func (w *world) dies(h term.Handle) {
	w.mu.Lock()
	c := w.children[h.ID()]
	w.mu.Unlock()
	c.End(1)
	synctest.Wait()
}

// A reader that has ended though its pane lives is followed by another one: same name,
// same sharing, and the first thing it says is that output is missing. Guests and those
// who were to see only later output are left out, and so are hosts that are not paired
// any more.
func TestAPaneIsAdoptedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		w.pane(3, 100, "npm run dev")
		h := must.Get(w.keeper.Adopt(t.Context(), adoptions.Request{Pane: "tmux:%3", Name: "web"}))(t)
		if lent := h.Info().LentTo; len(lent) > 0 {
			t.Fatalf("adopting has lent it to %v", lent)
		}
		must.Do(t, h.LendTo("host", loans.Change{Audience: loans.AudienceChange{Grant: []string{"ann"}, Deny: []string{"eve"}}}))
		must.Do(t, h.LendTo("host", loans.Change{Audience: loans.AudienceChange{Grant: []string{"later"}, FromNow: true}}))
		must.Do(t, h.Lend("other"))
		synctest.Wait()
		w.mu.Lock()
		w.paired["other"] = false
		w.mu.Unlock()
		w.dies(h)
		all := w.running()
		if len(all) != 1 || all[0].ID() == h.ID() || w.again != 1 {
			t.Fatalf("%d terminals run, %d starts said that it is again", len(all), w.again)
		}
		i := all[0].Info()
		if i.Name != "web" || !slices.Equal(i.LentTo, []string{"host"}) || len(i.Loans[0].Audience.Grants) != 1 || i.Loans[0].Audience.Grants[0].To != "ann" || !slices.Equal(i.Loans[0].Audience.Denied, []string{"eve"}) {
			t.Errorf("%+v", i)
		}
	})
}

// A pane that has ended, or another one of its number, is not adopted, nor is one that
// the person has unadopted or killed.
func TestAPaneIsNotAdoptedAgain(t *testing.T) {
	for name, do := range map[string]func(w *world, h term.Handle){
		"ended":     func(w *world, h term.Handle) { w.closes(3); w.dies(h) },
		"another":   func(w *world, h term.Handle) { w.pane(3, 101, "npm run dev"); w.dies(h) },
		"unadopted": func(w *world, h term.Handle) { must.Do(w.t, h.Kill(w.t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.end()
				w.pane(3, 100, "npm run dev")
				h := must.Get(w.keeper.Adopt(t.Context(), adoptions.Request{Pane: "tmux:%3"}))(t)
				do(w, h)
				time.Sleep(time.Hour)
				if n := len(w.running()); n > 0 || w.starts != 1 {
					t.Errorf("%d terminals run after %d starts", n, w.starts)
				}
			})
		})
	}
}

// A reader that ends again and again is given up after some attempts, and the person is
// told.
func TestAdoptingAgainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		w.pane(3, 100, "npm run dev")
		must.Get(w.keeper.Adopt(t.Context(), adoptions.Request{Pane: "tmux:%3"}))(t)
		for range 100 {
			for _, h := range w.running() {
				w.dies(h)
			}
			time.Sleep(time.Second)
		}
		if w.starts != 6 || !strings.Contains(w.trouble, "tether adopt tmux:%3") {
			t.Errorf("%d starts, and the person is told %q", w.starts, w.trouble)
		}
		if _, err := w.keeper.Adopt(t.Context(), adoptions.Request{Pane: "tmux:%3"}); err != nil {
			t.Errorf("the person cannot try it again: %v", err)
		}
	})
}

// One pane is one terminal, however many ask at once; a wrong pane is an error.
func TestAPaneIsAdoptedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		w.pane(3, 100, "npm run dev")
		var wg sync.WaitGroup
		var already sync.Map
		for n := range 20 {
			wg.Go(func() {
				_, err := w.keeper.Adopt(t.Context(), adoptions.Request{Pane: "tmux:%3"})
				if _, ok := errors.AsType[*adoptions.AdoptedError](err); ok {
					already.Store(n, true)
				}
			})
		}
		wg.Wait()
		n := 0
		already.Range(func(any, any) bool { n++; return true })
		if len(w.running()) != 1 || n != 19 {
			t.Errorf("%d terminals, %d were told that it is adopted", len(w.running()), n)
		}
		if _, err := w.keeper.Adopt(t.Context(), adoptions.Request{Pane: "tmux:%4"}); err == nil {
			t.Error("a pane that is not there was adopted")
		}
	})
}

// A rule adopts what it matches, says so, and leaves alone what the person has unadopted,
// also as the next daemon, until the pane is another one.
func TestRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := config.Adopt{Tmux: true, Match: "npm|vite"}
		w := newWorld(t, rule)
		w.pane(1, 100, "vim notes")
		w.pane(2, 200, "npm run dev")
		time.Sleep(6 * time.Second)
		all := w.running()
		if len(all) != 1 || all[0].Info().Adopted.From != "tmux:%2" || all[0].Info().Adopted.Rule != rule.Match {
			t.Fatalf("%d are adopted: %+v", len(all), all)
		}
		must.Do(t, all[0].Kill(t.Context()))
		time.Sleep(time.Minute)
		w.end()
		w.begin(rule)
		time.Sleep(time.Minute)
		if n := len(w.running()); n > 0 {
			t.Errorf("%d are adopted although the person has unadopted them", n)
		}
		w.pane(2, 201, "npm run dev")
		time.Sleep(6 * time.Second)
		if n := len(w.running()); n != 1 {
			t.Errorf("another pane of the same number: %d are adopted", n)
		}
		w.end()
	})
}

// The next daemon finds a pane again whose holder has ended with the daemon, and none
// after an end of the daemon that ends the terminals.
func TestTheNextDaemonAdoptsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pane(3, 100, "npm run dev")
		h := must.Get(w.keeper.Adopt(t.Context(), adoptions.Request{Pane: "tmux:%3", Name: "web", Private: true, Types: true}))(t)
		w.running()
		w.end()
		w.dies(h)
		w.begin()
		all := w.running()
		if len(all) != 1 || all[0].Info().Name != "web" || !all[0].Info().Private || !all[0].Info().Adopted.Types {
			t.Fatalf("%d are adopted", len(all))
		}
		w.end()
		w.keeper.Forget()
		w.dies(all[0])
		w.begin()
		time.Sleep(time.Minute)
		if n := len(w.running()); n > 0 {
			t.Errorf("%d are adopted", n)
		}
		w.end()
	})
}
