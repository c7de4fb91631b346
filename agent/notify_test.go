package agent_test

import (
	"context"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/local"
	"tether/internal/testkit"
)

// What an agent asks is told to the desktop once, without secrets: neither what looks like a credential, nor a token of a known form, nor
// values of variables. With policy.notify = false it is not.
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
			_, _ = d.client.As("bob").Spawn(ctx, local.SpawnRequest{Command: []string{"python3", "-c", "1\n\x1b[2J", "--password=hunter2", "correct horse battery", "shpat_" + strings.Repeat("a1", 16)}, Cwd: testkit.Abs("/")})
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
