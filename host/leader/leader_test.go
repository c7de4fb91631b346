package leader_test

import (
	"context"
	"errors"
	"fmt"
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
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
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
	must.Do(r.t, err)
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

// A question reaches the leader from every node. While no node leads, it waits for the
// next leader.
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

// Without the key there is no answer, and an answer is accepted only for its own
// question.
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
		r.Between("a", func(by func(context.Context, []byte) []byte) func(context.Context, []byte) []byte {
			return func(ctx context.Context, q []byte) []byte {
				if first == nil {
					first = by(ctx, q)
				}
				return first
			}
		})
		if got, err := r.all["b"].Ask(t.Context(), "secret"); err != nil || got != "a answers secret" {
			t.Errorf("the first question: %q, %v", got, err)
		}
		if got, err := r.all["b"].Ask(t.Context(), "secret"); !errors.Is(err, leader.ErrNone) {
			t.Errorf("an answer to another question: %q, %v", got, err)
		}
	})
}

// Whoever can publish can repeat a question, keep it back, and send it to another node or
// another service. It counts once, soon, and for the leader to which it was sent.
func TestQuestionsThatAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var sent [][]byte
		lost := false
		answers := map[string]func(context.Context, []byte) []byte{}
		for name := range r.all {
			r.Between(name, func(by func(context.Context, []byte) []byte) func(context.Context, []byte) []byte {
				answers[name] = by
				return func(ctx context.Context, q []byte) []byte {
					if sent = append(sent, q); lost {
						<-ctx.Done()
						return nil
					}
					return by(ctx, q)
				}
			})
		}
		ask := func(q string) []byte {
			t.Helper()
			if got, err := r.all["b"].Ask(t.Context(), q); err != nil || got != "a answers "+q {
				t.Fatalf("%q, %v", got, err)
			}
			return sent[len(sent)-1]
		}
		refused := func(what, by string, q []byte) {
			t.Helper()
			if answers[by](t.Context(), q) != nil {
				t.Errorf("%s: answered", what)
			}
		}
		r.Lead("a")
		synctest.Wait()
		first := ask("first")
		refused("at once", "a", first)
		refused("at a node that does not lead", "b", first)
		time.Sleep(30 * time.Second)
		refused("later", "a", first)
		for range 3 {
			time.Sleep(time.Minute)
			ask("another")
			refused("much later", "a", first)
		}

		lost = true // a question is kept back, and comes after its asker has given up
		if _, err := r.all["b"].Ask(t.Context(), "kept back"); !errors.Is(err, leader.ErrNone) {
			t.Errorf("a question without an answer: %v", err)
		}
		lost = false
		time.Sleep(time.Second)
		refused("kept back", "a", sent[len(sent)-1])
		if n := strings.Count(r.log.String(), "somebody repeats questions"); n < 1 || n > 3 {
			t.Errorf("logged %d times:\n%s", n, &r.log)
		}

		r.Lead("b")
		synctest.Wait()
		r.Stop("a")
		second := ask2(t, r)
		refused("of an earlier leader", "b", first)
		r.Lead("a") // again, with another epoch
		synctest.Wait()
		r.Stop("b")
		ask("third")
		refused("from the time when it led before", "a", first)
		refused("for another leader", "a", second)
		if answers["a"](t.Context(), sent[len(sent)-1]) != nil {
			t.Error("the newest one again: answered")
		}
	})
}

// ask2 asks b from a and returns the question as it was sent.
func ask2(t *testing.T, r *rig) (sent []byte) {
	t.Helper()
	r.Between("b", func(by func(context.Context, []byte) []byte) func(context.Context, []byte) []byte {
		return func(ctx context.Context, q []byte) []byte { sent = q; return by(ctx, q) }
	})
	if got, err := r.all["a"].Ask(t.Context(), "second"); err != nil || got != "b answers second" {
		t.Fatalf("%q, %v", got, err)
	}
	return sent
}

// However many questions there are, none is answered twice.
func TestQuestionsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := leader.Taken()
		now := time.Now()
		if !first("a", now) || first("a", now) || first("early", now.Add(-61*time.Second)) || first("late", now.Add(61*time.Second)) {
			t.Error("one question")
		}
		for i := range 3 * leader.MaxTaken {
			time.Sleep(time.Millisecond)
			if !first(fmt.Sprint(i), time.Now()) {
				t.Fatalf("question %d is refused", i)
			}
			if i%1000 == 0 && (first("a", now) || first(fmt.Sprint(i/2), time.Now().Add(-time.Duration(i-i/2)*time.Millisecond))) {
				t.Fatalf("a question is answered again after %d others", i)
			}
		}
	})
}

// The document is encrypted, and passes to the next leader. A former leader cannot change
// it.
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
		must.Do(t, keep(first, "secret"))
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
		check.OK(t, keep(second, "new"))
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
			must.Do(t, keep(r.place, content))
			if _, err := r.all["a"].Kept().Read(); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%.9q is read: %v", content, err)
			}
			r.Lead("a")
			synctest.Wait()
			check.OK(t, keep(*r.all["a"].kept.Load(), "new"))
			if data, err := r.all["b"].Kept().Read(); err != nil || string(data) != "new" {
				t.Errorf("after %.9q: %q, %v", content, data, err)
			}
			if strings.Count(r.log.String(), "is replaced") != 1 {
				t.Errorf("logged after %.9q: %s", content, &r.log)
			}
		})
	}
}
