package term_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// acts collects an observer's events, as short texts.
type acts struct {
	mu  sync.Mutex
	all []string
}

func (a *acts) hear(x term.Act) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprintf("%s %s", x.Actor, x.Kind)
	for _, more := range []string{x.Host, x.Detail} {
		if more != "" {
			text += " " + more
		}
	}
	if x.Err != nil {
		text += " !"
	}
	a.all = append(a.all, text)
}

func (a *acts) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

func TestObserver(t *testing.T) {
	ctx := context.Background()
	agent, other := term.Agent("a"), term.Agent("b")
	for _, c := range []struct {
		name string
		do   func(t *testing.T, pool *term.Pool, own, persons term.Handle)
		want []string
	}{
		{"kill twice", func(_ *testing.T, _ *term.Pool, own, _ term.Handle) {
			own.Kill(ctx)
			own.Kill(ctx)
		}, []string{"nobody exit", "agent a kill"}},
		{"lend and withdraw", func(_ *testing.T, _ *term.Pool, _, persons term.Handle) {
			persons.Lend("h")
			persons.Unlend("h")
			persons.Unlend("h")
		}, []string{"user lend h", "user unlend h"}},
		{"dispose", func(t *testing.T, pool *term.Pool, _, persons term.Handle) {
			persons.Lend("h")
			h := must.Get(pool.As(term.Host("h")).Find(string(persons.ID())))(t)
			h.Dispose(ctx, term.DisposeUnlend)
		}, []string{"user lend h", "host h dispose h the terminal runs on here"}},
		{"promote twice, then kill", func(_ *testing.T, _ *term.Pool, own, _ term.Handle) {
			own.Promote()
			own.Promote()
			own.Kill(ctx)
		}, []string{"agent a promote", "agent a refusal agent a may not promote terminal pty-own !", "agent a refusal agent a may not kill terminal pty-own !"}},
		{"type into the person's", func(t *testing.T, pool *term.Pool, _, persons term.Handle) {
			h := must.Get(pool.As(agent).Find(string(persons.ID())))(t)
			var denied *term.DeniedError
			if err := h.Write(ctx, []byte("x")); !errors.As(err, &denied) {
				t.Errorf("write: %v", err)
			}
		}, []string{"agent a refusal agent a may not type into terminal pty-persons !"}},
		{"another agent's does not exist", func(t *testing.T, pool *term.Pool, own, _ term.Handle) {
			if _, err := pool.As(other).Find(string(own.ID())); !errors.Is(err, term.ErrNotFound) {
				t.Errorf("find: %v", err)
			}
		}, nil},
		{"idle", func(*testing.T, *term.Pool, term.Handle, term.Handle) {
			time.Sleep(time.Hour)
			synctest.Wait()
		}, []string{"nobody exit", "nobody kill the terminal was idle"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var heard acts
				pool := term.NewPool(term.Options{Observe: heard.hear, Start: func(term.ID, pty.Command) (term.PTY, error) { return testkit.NewChild(), nil }})
				own := must.Get(pool.As(agent).Spawn(term.Spec{ID: "pty-own", Command: []string{"x"}, Cwd: testkit.Abs("/"), IdleTimeout: time.Minute}))(t)
				persons := must.Get(pool.As(term.User).Spawn(term.Spec{ID: "pty-persons", Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
				c.do(t, pool, own, persons)
				synctest.Wait()
				got := heard.list()
				if i := slices.Index(got, "nobody exit"); i > 0 { // it is told just before the kill has returned, or just after
					got = slices.Insert(slices.Delete(slices.Clone(got), i, i+1), 0, "nobody exit")
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("-want +heard:\n%s", d)
				}
				check.OK(t, pool.Close(ctx))
			})
		})
	}
}
