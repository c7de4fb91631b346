package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/notify"
)

// An agent's question is shown on the desktop once, without secrets: neither text that
// looks like a credential, nor a token of a known form, nor values of variables. With
// policy.notify = false it is not shown.
func TestQuestionsAreNotified(t *testing.T) {
	t.Setenv("DEPLOY_PASSWORD", "correct horse battery")
	for _, on := range []bool{true, false} {
		c := config.Default()
		c.Policy.Notify = on
		told := make(chan string, 16)
		d := start(t, agent.Config{Dirs: home(t), Settings: &c, Notify: func(_ context.Context, title, body string) error {
			told <- title + ": " + body
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = d.client.As("bob").Spawn(ctx, localapi.SpawnRequest{Command: []string{"python3", "-c", "1\n\x1b[2J", "--password=hunter2", "correct horse battery", "shpat_" + strings.Repeat("a1", 16)}, Cwd: testkit.Abs("/")})
		}()
		if on {
			if got := <-told; got != "tether approvals: agent bob asks to run: python3 -c 1 [2J --password=[hidden] *** shpat_********************************" {
				t.Errorf("the desktop was told %q", got)
			}
		}
		testkit.Eventually(t, patience, "the question", func() bool {
			l, err := d.client.Approvals(t.Context(), nil)
			return err == nil && len(l.Approvals) == 1
		})
		cancel()
		<-ended
		if len(told) > 0 {
			t.Errorf("notifications on %t: one more, %q", on, strings.TrimSpace(<-told))
		}
	}
}

// The button that the person presses answers the question. Approving is offered if
// everything is shown, and notifications of answered questions are withdrawn.
func TestQuestionsAreAnsweredAtTheDesktop(t *testing.T) {
	type shown struct {
		body, keys string
		trust      func(pid int) error
		press      chan<- string
		ended      <-chan struct{}
	}
	for _, c := range []struct {
		name, offered, press string
		request              localapi.SpawnRequest
		allowed              bool
	}{
		{"approved", "approve deny", "approve", localapi.SpawnRequest{Command: []string{"python3", "-c", "1"}}, true},
		{"denied", "approve deny", "deny", localapi.SpawnRequest{Command: []string{"python3", "-c", "1"}}, false},
		{"with a variable", "deny", "deny", localapi.SpawnRequest{Command: []string{"python3", "-c", "1"}, Env: []string{"LD_PRELOAD=/x"}}, false},
		{"pressed what was not offered", "deny", "approve", localapi.SpawnRequest{Command: []string{"python3", "-c", "1"}, Env: []string{"LD_PRELOAD=/x"}}, false},
		{"words that could be others", "deny", "deny", localapi.SpawnRequest{Command: []string{"python3", "-c", "1 + 2"}}, false},
		{"cut", "deny", "deny", localapi.SpawnRequest{Command: []string{"python3", "-c", strings.Repeat("1", 1000)}}, false},
		{"answered elsewhere", "approve deny", "", localapi.SpawnRequest{Command: []string{"python3", "-c", "1"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			told, texts := make(chan shown, 4), make(chan string, 4)
			d := start(t, agent.Config{Dirs: home(t), Notify: func(_ context.Context, _, body string) error { texts <- body; return nil },
				AskDesktop: func(ctx context.Context, _, body string, buttons []notify.Button, trust func(int) error) (string, error) {
					keys := ""
					for _, b := range buttons {
						keys += " " + b.Key
					}
					press := make(chan string)
					told <- shown{body, strings.TrimSpace(keys), trust, press, ctx.Done()}
					select {
					case key := <-press:
						return key, nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.request.Cwd = testkit.Abs("/")
			came := make(chan error, 1)
			go func() { _, err := d.client.As("bob").Spawn(ctx, c.request); came <- err }()
			var at shown
			select {
			case at = <-told:
			case err := <-came:
				t.Fatalf("nothing was asked: %v", err)
			}
			if at.keys != c.offered || !strings.HasPrefix(at.body, "agent bob asks to run: python3 -c 1") || strings.Contains(at.body, "\nin ") != (c.offered == "approve deny") {
				t.Errorf("shown: %q with %s, want %s", at.body, at.keys, c.offered)
			}
			check.OK(t, at.trust(os.Getpid()))
			if err := at.trust(1 << 30); err == nil {
				t.Error("a process that is not there may show it")
			}
			deny := func() {
				l, err := d.client.Approvals(t.Context(), nil)
				if err != nil || len(l.Approvals) != 1 {
					t.Fatalf("%+v, %v", l, err)
				}
				must.Get(d.client.Approve(t.Context(), l.Approvals[0].ID, false, 0))(t)
			}
			if c.press != "" {
				at.press <- c.press
			}
			if c.press == "" || !strings.Contains(c.offered, c.press) {
				deny()
			}
			if err := <-came; (err == nil || !strings.Contains(err.Error(), "denied by the user")) != c.allowed { // the program may not be there
				t.Errorf("the agent is told %v", err)
			}
			if c.press == "" {
				<-at.ended
			}
			if len(texts) > 0 {
				t.Errorf("it was shown twice: %s", <-texts)
			}
		})
	}
}

// Where the desktop has no buttons the text is shown without.
func TestQuestionsWithoutButtons(t *testing.T) {
	told := make(chan string, 4)
	d := start(t, agent.Config{Dirs: home(t), Notify: func(_ context.Context, _, body string) error { told <- body; return nil },
		AskDesktop: func(context.Context, string, string, []notify.Button, func(int) error) (string, error) {
			return "", notify.ErrUnsupported
		}})
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan error, 1)
	go func() {
		_, err := d.client.As("bob").Spawn(ctx, localapi.SpawnRequest{Command: []string{"python3", "-c", "1"}, Cwd: testkit.Abs("/")})
		came <- err
	}()
	if got := <-told; got != "agent bob asks to run: python3 -c 1" {
		t.Error(got)
	}
	cancel()
	<-came
}
