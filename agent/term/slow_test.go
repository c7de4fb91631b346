package term_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit/must"
)

// How long a reader that never reads may keep a child waiting follows from the terminal's
// owner, unless it is set.
func TestSlowReadersByOwner(t *testing.T) {
	const stall, brief = 5 * time.Second, 200 * time.Millisecond
	for _, c := range []struct {
		name    string
		owner   term.Actor
		options term.Options
		spec    term.OnSlow
		want    time.Duration
	}{
		{"the person's", term.User, term.Options{}, term.ByOwner, brief},
		{"an agent's", term.Agent("a"), term.Options{}, term.ByOwner, stall},
		{"the person's, said", term.User, term.Options{}, term.Hold, stall},
		{"an agent's, said", term.Agent("a"), term.Options{}, term.Lag, brief},
		{"the person's, configured", term.User, term.Options{OnSlowUser: term.Hold}, term.ByOwner, stall},
		{"an agent's, configured", term.Agent("a"), term.Options{OnSlowAgent: term.Lag}, term.ByOwner, brief},
		{"said against the configuration", term.User, term.Options{OnSlowUser: term.Hold}, term.Lag, brief},
		{"configured for the others", term.User, term.Options{OnSlowAgent: term.Hold, OnSlowUser: term.Lag}, term.ByOwner, brief},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.options.LogBytes, c.options.Stall = 64<<10, stall
				pool := newFakePool(t, c.options)
				h, child := pool.spawn(c.owner, term.Spec{OnSlow: c.spec})
				reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true}) // as an uplink has it
				began := time.Now()
				for n := range 8 {
					child.Print(chunk(n))
				}
				child.End(0)
				<-h.Done()
				if took := time.Since(began); took != c.want {
					t.Errorf("the child waited for %v, want %v", took, c.want)
				}
			})
		})
	}
}

func TestTextEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, child, pool := start(t, term.Options{}, term.Spec{})
		prints(child, "a\xff\x1b[cb")
		if got := h.TextEnd(); got != int64(len("a\uFFFDb")) {
			t.Errorf("the text ends at %d", got)
		}
		must.Do(t, h.Lend("lab"))
		if seen := pool.As(term.Host("other")).List(); len(seen) != 0 {
			t.Fatalf("another host sees %d terminals", len(seen))
		}
		seen := pool.As(term.Host("lab")).List()
		must.Do(t, h.Unlend("lab"))
		if got := seen[0].TextEnd(); got != 0 {
			t.Errorf("a host that may not read hears of %d bytes", got)
		}
	})
}
