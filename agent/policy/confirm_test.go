package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/policy"
	"tether/internal/testkit/must"
)

// A change of a setting is asked about until it is answered, also when nobody answers for
// days and as long as agents' questions fill the queue.
func TestConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := must.Get(policy.New(policy.Options{}))(t)
		const change = `[identity] mine = ["x"], agents = []`
		type result struct {
			allow bool
			err   error
		}
		ask := func(ctx context.Context) <-chan result {
			done := make(chan result, 1)
			go func() {
				allow, err := e.Confirm(ctx, "identity", change, "/etc/tether", "it changes who is who")
				done <- result{allow, err}
			}()
			return done
		}
		waiting := func() (q policy.Question) {
			synctest.Wait()
			asked, _, _ := e.Questions()
			for _, one := range asked {
				if !one.Expired {
					q = one
				}
			}
			return q
		}
		for _, allow := range []bool{true, false} {
			done := ask(t.Context())
			first := waiting()
			if !first.Request.Setting || first.Request.Line != change || !e.Plain(first) || !strings.HasSuffix(e.Summary(first.Request), "configuration has changed: "+change) {
				t.Errorf("%+v", first)
			}
			time.Sleep(49 * time.Hour) // of the bubble: nobody answers, and it is asked again
			again := waiting()
			if again.ID == "" || again.ID == first.ID {
				t.Fatalf("after two days: %+v", again)
			}
			if _, _, err := e.Answer(again.ID, policy.Answer{Allow: allow}); err != nil {
				t.Fatal(err)
			}
			if got := <-done; got.allow != allow || got.err != nil {
				t.Errorf("answered with %t: %+v", allow, got)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := ask(ctx)
		waiting()
		cancel()
		if got := <-done; got.allow || !errors.Is(got.err, context.Canceled) || waiting().ID != "" {
			t.Errorf("cancelled: %+v", got)
		}
	})
}
