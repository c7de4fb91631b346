package mcp

import (
	"cmp"
	"context"
	"time"
)

// WaitRequest is what Wait waits for: the first of what is given. The exit ends
// a wait in any case.
type WaitRequest struct {
	Pattern string        // RE2, that a line must match; "" for none
	Idle    time.Duration // no output for so long; 0 for none
	Command bool          // the shell runs no command, or one has finished after Since
	Port    int           // of the loopback interface, open; 0 for none
	URL     string        // http or https, of the loopback interface, that answers with 2xx; "" for none
	Settle  time.Duration // how long a line that may still change must stand to match; 0 for 200 ms, negative for any line
	Since   int64         // raw offset after which output counts; negative means all that is kept
	Timeout time.Duration // 0 means none
}

// WaitResult says what has come.
type WaitResult struct {
	Reason   string        // pattern, idle, command, port, url, exit or timeout
	Took     time.Duration // from the call to the answer
	Line     string        // that matched
	Command  *Command      // that finished
	Address  string        // that the port was open at
	Listener string        // "this terminal" or "another program", where that is known
	Status   int           // of HTTP, of the last answer of the URL; 0 if there was none
	Detail   string        // why the URL did not answer with 2xx, after a timeout
	History  string        // the last of the output that was looked at, rendered
	Cursor   int64         // raw offset up to which output was looked at
}

// never is longer than anybody waits.
const never = 365 * 24 * time.Hour

// Wait is wait_terminal for a door beside MCP: it waits in the same way. Its
// own errors are ctx's and those of a request that makes no sense. locator may be
// nil.
func Wait(ctx context.Context, t Terminal, locator Locator, r WaitRequest) (WaitResult, error) {
	w := &wait{terminal: t, since: r.Since, idle: r.Idle, command: r.Command, timeout: r.Timeout, settle: max(0, cmp.Or(r.Settle, defaultSettle))}
	if w.timeout <= 0 {
		w.timeout = never
	}
	var err error
	if w.pattern, err = pattern("pattern", r.Pattern); err != nil {
		return WaitResult{}, err
	}
	if r.Port != 0 {
		if err := inRange("port", int64(r.Port), 1, 65535); err != nil {
			return WaitResult{}, err
		}
		w.probes = append(w.probes, &portProbe{id: t.Info().ID, port: r.Port, locator: locator})
	}
	if r.URL != "" {
		if err := w.addURL(r.URL); err != nil {
			return WaitResult{}, err
		}
	}
	if err := w.ready(); err != nil {
		return WaitResult{}, err
	}
	got, err := w.run(ctx)
	if err != nil {
		return WaitResult{}, err
	}
	return WaitResult{
		Reason: string(got.Reason), Took: time.Duration(got.ElapsedMs) * time.Millisecond, Line: got.Line, Command: got.Command,
		Address: got.Address, Listener: got.Listener, Status: got.Status, Detail: got.Detail, History: got.History, Cursor: got.Cursor,
	}, nil
}
