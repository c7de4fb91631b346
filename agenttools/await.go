package agenttools

import (
	"cmp"
	"context"
	"time"
)

// WaitRequest lists the conditions of Wait, which ends at the first. The exit ends a wait in any case.
type WaitRequest struct {
	Pattern string        // RE2, that a line must match; "" for none
	Idle    time.Duration // no output for so long; 0 for none
	Command bool          // the shell runs no command, or one has finished after Since
	// Verified makes Command mean only commands whose marks carried the terminal's nonce.
	Verified bool
	Port     int           // of the loopback interface, open; 0 for none
	URL      string        // http or https, of the loopback interface, that answers with 2xx; "" for none
	Settle   time.Duration // how long a line that may still change must stand to match; 0 for 200 ms, negative for any line
	Since    int64         // raw offset after which output counts; negative means all that is kept
	Timeout  time.Duration // 0 means none
}

// never is longer than anybody waits.
const never = 365 * 24 * time.Hour

// Wait is wait_terminal for other doors than MCP: it waits in the same way. Its errors are ctx's and those of an invalid request. locator
// may be nil.
func Wait(ctx context.Context, t Terminal, locator Locator, r WaitRequest) (*WaitAnswer, error) {
	w := &wait{terminal: t, since: r.Since, idle: r.Idle, command: r.Command, verified: r.Verified, timeout: r.Timeout, settle: max(0, cmp.Or(r.Settle, defaultSettle))}
	if w.timeout <= 0 {
		w.timeout = never
	}
	var err error
	if w.pattern, err = pattern("pattern", r.Pattern); err != nil {
		return nil, err
	}
	if r.Port != 0 {
		if err := inRange("port", int64(r.Port), 1, 65535); err != nil {
			return nil, err
		}
		w.probes = append(w.probes, &portProbe{id: t.Info().ID, port: r.Port, locator: locator})
	}
	if r.URL != "" {
		if err := w.addURL(r.URL); err != nil {
			return nil, err
		}
	}
	if err := w.ready(); err != nil {
		return nil, err
	}
	return w.run(ctx)
}
