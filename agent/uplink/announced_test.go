package uplink_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit/must"
)

// A terminal has a URI to be named by as soon as the host has it, and not before.
func TestAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.cut(true)
		h, _ := w.spawn(term.Spec{Name: "dev"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if uri, _, ok := w.link.Announced(ctx, h.ID()); ok {
			t.Errorf("without a link it has the URI %s", uri)
		}
		found := make(chan string, 1)
		go func() {
			uri, title, ok := w.link.Announced(t.Context(), h.ID())
			if !ok || title != "dev" {
				uri = "none, titled " + title
			}
			found <- uri
		}()
		w.cut(false)
		time.Sleep(time.Minute) // a link that is down may wait for its next attempt
		want := w.link.Status().Terminals[0].URI
		if got := <-found; got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		must.Do(t, h.Unlend("lab"))
		synctest.Wait()
		if uri, _, ok := w.link.Announced(ctx, h.ID()); ok {
			t.Errorf("withdrawn, it still is %s", uri)
		}
	})
}

// tools records the messages that a link passes on.
type tools struct {
	mu     sync.Mutex
	served int
	heard  []string
}

func (s *tools) Serve(ctx context.Context, conn *client.Conn) {
	locked(&s.mu, func() { s.served++ })
	conn.Subscribe(ctx, ahp.RootURI)
	<-ctx.Done()
}

func (s *tools) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, what)
}

// soFar is its record up to now.
func (s *tools) soFar() (served int, heard []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served, slices.Clone(s.heard)
}

func (s *tools) Subscriptions() []string              { return []string{ahp.RootURI} }
func (s *tools) Envelope(v ahp.EnvelopeView)          { s.note(v.Kind) }
func (s *tools) Notification(method string, _ []byte) { s.note(method) }

// A link passes to the tools everything that does not concern terminals lent on it, over
// each of its connections.
func TestToolsGetOtherMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tools{}
		w := newWorld(t, host.Options{}, func(o *uplink.Options) { o.Tools = s })
		w.online()
		w.spawn(term.Spec{})
		served, heard := s.soFar()
		if served != 1 || len(heard) == 0 {
			t.Errorf("served %d connections, heard %v", served, heard)
		}
		for _, kind := range heard {
			if kind != ahp.ActionRootTerminalsChanged {
				t.Errorf("it heard of %s", kind)
			}
		}
		w.cut(false)
		time.Sleep(time.Minute)
		if served, _ := s.soFar(); served != 2 {
			t.Errorf("after a cut, %d connections were served", served)
		}
	})
}

// The host hears when a terminal was started and when it has ended, not only that it is
// told so now: after a restart of the host, or an hour without a network, arrival says
// nothing.
func TestTimesAreTheOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: ahp.ClientTerminals{Version: 1}.Meta()} // without resume all is announced anew
		w := fakeWorld(t, f, nil)
		started := time.Now()
		_, child := w.spawn(term.Spec{})
		synctest.Wait()
		time.Sleep(time.Hour)
		w.cut(true)
		ended := time.Now()
		child.End(3)
		time.Sleep(time.Hour)
		w.cut(false)
		pass(2 * time.Minute)
		if len(f.born) < 2 {
			t.Fatalf("it was announced %d times", len(f.born))
		}
		for _, said := range f.born {
			if !said.Equal(started) {
				t.Errorf("announced as started at %s, it was at %s", said, started)
			}
		}
		if !f.ended.Equal(ended) {
			t.Errorf("told that it ended at %s, it was at %s", f.ended, ended)
		}
	})
}
