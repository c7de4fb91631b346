package agenttools

import (
	"cmp"
	"context"
	"time"
)

// WaitRequest lists the conditions of Wait, which ends when the first of them is met. The
// terminal's exit always ends a wait.
type WaitRequest struct {
	Pattern string        // RE2 regular expression that a line must match; "" for none
	Idle    time.Duration // how long nothing must be printed; 0 for no such condition
	Command bool          // the shell runs no command, or one has finished after Since
	// Verified makes Command mean only commands whose marks carried the terminal's nonce.
	Verified bool
	Port     int           // TCP port of the loopback interface that must be open; 0 for none
	URL      string        // http or https URL of the loopback interface that must answer with 2xx; "" for none
	Settle   time.Duration // how long a line that may still change must stay the same to match; 0 for 200 ms, negative for no time at all
	Since    int64         // raw offset after which output counts; negative means all that is kept
	Timeout  time.Duration // 0 means none
}

// never is longer than anybody waits.
const never = 365 * 24 * time.Hour

// Wait waits as wait_terminal does, for doors other than MCP. It returns ctx's error when
// ctx ends, and an error for an invalid request. locator is nil if the daemon itself
// waits.
func Wait(ctx context.Context, t Terminal, locator Locator, r WaitRequest) (*WaitAnswer, error) {
	w, err := newWait(t, locator, r)
	if err != nil {
		return nil, err
	}
	return w.run(ctx)
}

// newWait checks a request. Its error is for whoever asks.
func newWait(t Terminal, locator Locator, r WaitRequest) (*wait, error) {
	w := &wait{terminal: t, since: r.Since, idle: r.Idle, command: r.Command, verified: r.Verified, timeout: r.Timeout, settle: max(0, cmp.Or(r.Settle, defaultSettle))}
	if w.timeout <= 0 {
		w.timeout = never
	}
	var err error
	if w.pattern, err = pattern("pattern", r.Pattern); err != nil {
		return nil, err
	}
	if r.Port != 0 {
		if err := w.addPort(locator, t.Info().ID, r.Port); err != nil {
			return nil, err
		}
	}
	if r.URL != "" {
		if err := w.addURL(locator, r.URL); err != nil {
			return nil, err
		}
	}
	return w, w.ready()
}
