package leader_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"tether/host/access"
	"tether/host/leader"
	"tether/internal/testkit"
)

// rig is two nodes with a service whose answers name the node.
type rig struct {
	*testkit.Nodes
	t     *testing.T
	log   strings.Builder
	place access.Place
	all   map[string]*service
}

type service struct {
	*leader.Service[string, string]
	kept  atomic.Pointer[access.Place] // while the node leads
	delay atomic.Int64
}

// newRig starts the nodes a and b. It is called in a bubble.
func newRig(t *testing.T) *rig {
	r := &rig{Nodes: testkit.NewNodes(t, "secret"), t: t, place: access.File(filepath.Join(t.TempDir(), "state", "document")), all: map[string]*service{}}
	r.add("a", "k")
	r.add("b", "k")
	synctest.Wait()
	return r
}

func (r *rig) add(name, key string) {
	log, s := zerolog.New(&r.log), &service{}
	var err error
	s.Service, err = leader.New(leader.Shared{Nodes: testkit.Node{Nodes: r.Nodes, Name: name}, Place: r.place, Key: []byte(strings.Repeat(key, 32)), Logger: &log}, "things", time.Minute,
		func(ctx context.Context, q string) (string, bool) {
			select {
			case <-time.After(time.Duration(s.delay.Load())):
			case <-ctx.Done():
			}
			return name + " answers " + q, s.kept.Load() != nil
		})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go s.Run(ctx, func(ctx context.Context, kept access.Place) error {
		s.kept.Store(&kept)
		<-ctx.Done()
		s.kept.Store(nil)
		return ctx.Err()
	})
	r.t.Cleanup(func() { cancel(); synctest.Wait() })
	r.all[name] = s
}

func keep(place access.Place, content string) error {
	return place.Change(func([]byte) ([]byte, error) { return []byte(content), nil })
}

// A question reaches the leader from every node. While no node leads, it waits for the next leader.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ask := func(of, question, want string) {
			t.Helper()
			if got, err := r.all[of].Ask(t.Context(), question); err != nil || got != want {
				t.Errorf("%s: %q, %v", of, got, err)
			}
		}
		if _, err := r.all["a"].Ask(t.Context(), "secret"); !errors.Is(err, leader.ErrNone) {
			t.Errorf("without a leader: %v", err)
		}
		r.Lead("a")
		synctest.Wait()
		ask("a", "secret", "a answers secret")
		ask("b", "secret", "a answers secret")
		if _, err := r.all["b"].Ask(t.Context(), strings.Repeat("x", 129<<10)); !errors.Is(err, leader.ErrTooLong) {
			t.Errorf("a long question: %v", err)
		}
		r.all["a"].delay.Store(int64(2 * time.Minute))
		if _, err := r.all["b"].Ask(t.Context(), "secret"); !errors.Is(err, leader.ErrNone) {
			t.Errorf("a leader that is too slow: %v", err)
		}
		r.all["a"].delay.Store(0)
		r.Stop("a") // the nodes still believe that it leads
		go func() {
			time.Sleep(5 * time.Second)
			r.Lead("b")
		}()
		ask("a", "secret", "b answers secret")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.Stop("b")
		if _, err := r.all["a"].Ask(ctx, "secret"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller that does not wait: %v", err)
		}
	})
}

// Without the key there is no answer, and an answer is accepted only for its own question.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.add("c", "x")
		synctest.Wait()
		r.Lead("a")
		synctest.Wait()
		if got, err := r.all["c"].Ask(t.Context(), "secret"); !errors.Is(err, leader.ErrNone) {
			t.Errorf("with another key: %q, %v", got, err)
		}
		b := testkit.Node{Nodes: r.Nodes, Name: "b"}
		for _, question := range []string{"", "x", strings.Repeat("x", 100)} {
			if answer, _ := b.Ask(t.Context(), "a", "", []byte(question)); answer != nil {
				t.Errorf("%q is answered", question)
			}
		}
		var first []byte // a's answer to the first question, which is replayed
		testkit.Node{Nodes: r.Nodes, Name: "between"}.Answer("", func(ctx context.Context, q []byte) []byte {
			if first == nil {
				first, _ = b.Ask(ctx, "a", "", q)
			}
			return first
		})
		r.Lead("between")
		if got, err := r.all["b"].Ask(t.Context(), "secret"); err != nil || got != "a answers secret" {
			t.Errorf("the first question: %q, %v", got, err)
		}
		if got, err := r.all["b"].Ask(t.Context(), "secret"); !errors.Is(err, leader.ErrNone) {
			t.Errorf("an answer to another question: %q, %v", got, err)
		}
	})
}

// The document is encrypted, and passes to the next leader. A former leader cannot change it.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if _, err := r.all["a"].Kept().Read(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("before the first leader: %v", err)
		}
		r.Lead("a")
		synctest.Wait()
		first := *r.all["a"].kept.Load()
		if _, err := first.Read(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nothing was kept: %v", err)
		}
		if err := keep(first, "secret"); err != nil {
			t.Fatal(err)
		}
		if data, err := r.place.Read(); err != nil || strings.Contains(string(data), "secret") {
			t.Errorf("the document can be read: %q, %v", data, err)
		}
		if data, err := r.all["b"].Kept().Read(); err != nil || string(data) != "secret" {
			t.Errorf("at the other node: %q, %v", data, err)
		}
		r.Lead("b") // a does not know that yet
		synctest.Wait()
		second := *r.all["b"].kept.Load()
		if data, err := second.Read(); err != nil || string(data) != "secret" {
			t.Errorf("at the next leader: %q, %v", data, err)
		}
		if err := keep(first, "late"); err == nil {
			t.Error("the former leader has kept something")
		}
		if err := keep(second, "new"); err != nil {
			t.Error(err)
		}
		if data, err := r.all["a"].Kept().Read(); err != nil || string(data) != "new" {
			t.Errorf("in the end: %q, %v", data, err)
		}
		if r.log.Len() > 0 {
			t.Errorf("logged: %s", &r.log)
		}
	})
}

// A document that cannot be decrypted is replaced. That is logged once.
func TestUnreadable(t *testing.T) {
	for _, content := range []string{"", "x", strings.Repeat("x", 1000)} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			if err := keep(r.place, content); err != nil {
				t.Fatal(err)
			}
			if _, err := r.all["a"].Kept().Read(); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%.9q is read: %v", content, err)
			}
			r.Lead("a")
			synctest.Wait()
			if err := keep(*r.all["a"].kept.Load(), "new"); err != nil {
				t.Error(err)
			}
			if data, err := r.all["b"].Kept().Read(); err != nil || string(data) != "new" {
				t.Errorf("after %.9q: %q, %v", content, data, err)
			}
			if strings.Count(r.log.String(), "is replaced") != 1 {
				t.Errorf("logged after %.9q: %s", content, &r.log)
			}
		})
	}
}
