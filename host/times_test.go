package host_test

import (
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
)

// Agents are told when a terminal was started and has ended by its owner's clock, unless that cannot be.
func TestTimesOfOwners(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot")})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	agent, err := overHTTP(t, url, "agent-bot", nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, c := range []struct {
		name                       string
		created, exited            time.Time // as the owner says
		createdArrival, exitedHere bool      // the host believes its own clock
	}{
		{"yesterday", now.Add(-24 * time.Hour), now.Add(-time.Hour), false, false},
		{"said nothing", time.Time{}, time.Time{}, true, true},
		{"ahead", now.Add(time.Hour), now.Add(2 * time.Hour), true, true},
		{"before its beginning", now.Add(-time.Hour), now.Add(-2 * time.Hour), false, true},
		{"the last century", time.Unix(1, 0), now.Add(-time.Minute), true, true},
	} {
		p := clientTerminal("ahp-terminal:/times", "laptop")
		p.Meta = ahp.AddTime(nil, ahp.CreatedKey, c.created)
		if err := laptop.call(ahp.MethodCreateTerminal, p, nil); err != nil {
			t.Fatal(err)
		}
		laptop.dispatch(p.Channel, ahp.TerminalExited{ExitCode: new(int64(3)), Meta: ahp.AddTime(nil, ahp.ExitedKey, c.exited)})
		laptop.ping()
		var all []struct{ CreatedAt, ExitedAt int64 }
		use(t, agent, "list_terminals", nil, &all)
		if len(all) != 1 {
			t.Fatalf("%s: %d terminals", c.name, len(all))
		}
		check := func(what string, got int64, said time.Time, arrival bool) {
			at := time.UnixMilli(got)
			if arrival && (at.Before(now.Add(-time.Second)) || at.After(time.Now().Add(time.Second))) || !arrival && got != said.UnixMilli() {
				t.Errorf("%s: %s %s, the owner said %s", c.name, what, at, said)
			}
		}
		check("created", all[0].CreatedAt, c.created, c.createdArrival)
		check("exited", all[0].ExitedAt, c.exited, c.exitedHere)
		if err := laptop.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: p.Channel}, nil); err != nil {
			t.Fatal(err)
		}
	}
}
