package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// Output that an absent host lacks holds the child, up to ten minutes here, but does not
// delay its end.
func TestEndDespiteAHostThatIsGone(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	for _, c := range []struct {
		name string
		end  func(ctx context.Context, d *daemon, id string, left func() (agent.Ended, error)) error
	}{
		{"kill", func(ctx context.Context, d *daemon, id string, _ func() (agent.Ended, error)) error {
			_, err := d.client.Kill(ctx, id)
			return errors.Join(err, d.client.Shutdown(ctx)) // until then the host is to hear of it
		}},
		{"stop", func(ctx context.Context, d *daemon, _ string, _ func() (agent.Ended, error)) error {
			return d.client.Shutdown(ctx)
		}},
		{"stop without a daemon", func(_ context.Context, d *daemon, _ string, left func() (agent.Ended, error)) error {
			d.end()
			ended, err := left()
			if ended.Terminals != 1 || ended.Unread == 0 {
				d.t.Errorf("ended %+v, want one and what nobody has read", ended)
			}
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.Leaks(t)
			dirs := home(t)
			config := withHolders(t, dirs)
			config.Settings = patient()
			d := start(t, config)
			id := d.held()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			check.OK(t, c.end(ctx, d, id, func() (agent.Ended, error) { return agent.EndLeftRunning(ctx, dirs) }))
			d.end()
			if left, err := agent.LeftRunning(dirs); len(left) > 0 || err != nil {
				t.Errorf("left running: %v, %v", left, err)
			}
		})
	}
}

// patient are settings under which a host may be absent for long.
func patient() *config.Config {
	s := config.Default()
	s.Terminals.StallTime = config.Duration(10 * time.Minute)
	s.Terminals.LogBytes = 64 << 10
	return &s
}

// held is a terminal whose child stands still, for a host that had it and is gone.
func (d *daemon) held() (id string) {
	d.t.Helper()
	lab := host.New(host.Options{})
	d.t.Cleanup(lab.Close)
	url := serveHTTP(d.t, lab)
	must.Get(d.client.Pair(d.t.Context(), localapi.PairRequest{Name: "lab", URL: url}))(d.t)
	flood := must.Get(d.client.Spawn(d.t.Context(), localapi.SpawnRequest{Command: []string{"yes", "a line of the flood"}, Cwd: "/",
		Env: []string{"PATH=/bin:/usr/bin"}, OnSlow: "hold"}))(d.t)
	d.status("it is lent", func(s localapi.Status) bool {
		return len(s.Hosts) == 1 && len(s.Hosts[0].Lent) == 1 && s.Hosts[0].Lent[0].URI != ""
	})
	lab.Close()
	var bytes int64
	testkit.Eventually(d.t, patience, "the child stands still", func() bool {
		now := must.Get(d.client.Find(d.t.Context(), flood.ID))(d.t)
		before := bytes
		bytes = now.Bytes
		return before == bytes && bytes > 0
	})
	return flood.ID
}
