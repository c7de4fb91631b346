package agenttools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tether/vocab"
)

// Bounds of a wait.
const (
	defaultWait = 30 * time.Second
	maxWait     = 10 * time.Minute
	// waitText bounds the output in the answer, in bytes.
	waitText = 8 << 10
	maxLine  = 4 << 10 // bytes of the matching line in the answer; no more than half of the output
	// defaultSettle is how long a line that may still change must stay the same to match.
	// Test runners and bundlers overwrite a status line several times a second until it
	// is final.
	defaultSettle = 200 * time.Millisecond
	maxSettle     = time.Minute
)

type waitArgs struct {
	target
	Pattern   string `json:"pattern"`
	Exit      bool   `json:"exit"`
	IdleMs    *int64 `json:"idleMs"`
	Command   bool   `json:"command"`
	Verified  bool   `json:"verified"`
	Port      *int64 `json:"port"`
	URL       string `json:"url"`
	Since     *int64 `json:"since"`
	SettleMs  *int64 `json:"settleMs"`
	TimeoutMs *int64 `json:"timeoutMs"`
}

// WaitAnswer is the answer of wait_terminal and of Wait.
type WaitAnswer struct {
	TerminalID string           `json:"terminalId"`
	Reason     Reason           `json:"reason"`
	ElapsedMs  int64            `json:"elapsedMs"`
	Line       string           `json:"line,omitempty"`    // line that matched the pattern
	Command    *Command         `json:"command,omitempty"` // command that has finished
	Address    string           `json:"address,omitempty"` // address at which the port was open
	Listener   string           `json:"listener,omitempty"`
	Status     int              `json:"status,omitempty"` // HTTP status of the last answer of the URL
	Detail     string           `json:"detail,omitempty"` // how the last try of the URL failed, or that another program has the port
	History    string           `json:"history"`          // end of the examined output
	Cursor     int64            `json:"cursor"`
	Masked     int              `json:"masked,omitempty"` // number of places in the examined output that are not shown as they were printed
	Exited     bool             `json:"exited"`
	ExitReason vocab.ExitReason `json:"exitReason,omitempty"` // exited, killed or timeout
	*ExitFields
}

// Reason says why a wait is over.
type Reason string

// Reasons for the end of a wait.
const (
	ReasonPattern Reason = "pattern"
	ReasonExit    Reason = "exit"
	ReasonIdle    Reason = "idle"
	ReasonCommand Reason = "command"
	ReasonPort    Reason = "port"
	ReasonURL     Reason = "url"
	ReasonTimeout Reason = "timeout"
)

// Error implements error, since the reason is the cause with which the context of a wait
// ends.
func (r Reason) Error() string { return string(r) }

func (s *Set) waitTool() tool {
	local, schema := "", ""
	if s.opts.Loopback {
		local = ", a TCP port of this machine open (port), an HTTP URL of this machine answered with 2xx (url)"
		schema = `"port":{"type":"integer","minimum":1,"maximum":65535,"description":"until this TCP port of the loopback interface is open, to a program of a terminal that you see; listener in the answer says whether this terminal or another program has it"},` +
			`"url":{"type":"string","description":"until this http or https URL of localhost answers with a status of 2xx"},`
	}
	return tool{Tool: Tool{
		Name: "wait_terminal", Title: "Wait for a terminal",
		Description: "Wait until the first of these happens: a line of output matches (pattern), nothing is printed for a while (idleMs), the shell's command has finished (command)" + local +
			", or the program exits, which always ends the wait. Returns the reason, which is \"timeout\" after timeoutMs, and the last output. Better than polling read_terminal.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` + terminalSchema + `,` +
			`"pattern":{"type":"string","description":"regular expression (RE2) that a line must match; (?i) ignores case. A line counts when the program has ended it, or when it has stood unchanged for 200 ms"},` +
			`"settleMs":{"type":"integer","minimum":0,"maximum":60000,"description":"with pattern: how long a line that may still change must stand, instead of 200 ms; 0 takes any line"},` +
			`"exit":{"type":"boolean","description":"wait only for the exit; this is the default when nothing else is given"},` +
			`"idleMs":{"type":"integer","minimum":1,"maximum":600000,"description":"until nothing was printed for this many milliseconds"},` +
			`"command":{"type":"boolean","description":"until the shell in the terminal runs no command, or one has finished after since; a command inside another one, as in ssh, does not count"},` +
			`"verified":{"type":"boolean","description":"as command, but ignores commands of shells that tether did not start: any program can print their marks"},` + schema +
			`"since":{"type":"integer","minimum":0,"description":"only look at output after this cursor; default: all there is"},` +
			`"timeoutMs":{"type":"integer","minimum":0,"maximum":600000,"description":"at most this long, default 30000"}},` +
			`"required":["terminalId"],"additionalProperties":false}`),
		ReadOnly: true, Idempotent: true,
		Hint: "wait until the server is ready, a port is open, a build or test has finished, a line is printed",
	}, call: reading(s, func(ctx context.Context, c call, in *waitArgs, t Terminal) (Result, error) {
		w, err := s.waitFor(in, t)
		if err != nil {
			return Result{}, err
		}
		w.text = min(c.Shows/2, waitText)
		select {
		case s.waits <- struct{}{}:
			defer func() { <-s.waits }()
		default:
			return Result{}, fmt.Errorf("%d calls of wait_terminal are waiting, the maximum", cap(s.waits))
		}
		defer c.Progress(ctx, "waiting")()
		r, err := w.run(ctx)
		return Result{Answer: r, Untrusted: true}, err
	})}
}

func (s *Set) waitFor(a *waitArgs, t Terminal) (*wait, error) {
	r := WaitRequest{Pattern: a.Pattern, Command: a.Command || a.Verified, Verified: a.Verified, URL: a.URL, Since: -1, Timeout: defaultWait}
	const ms = int64(time.Millisecond)
	if err := errors.Join(
		optional("idleMs", a.IdleMs, 1, int64(maxWait)/ms, func(v int64) { r.Idle = time.Duration(v * ms) }),
		optional("timeoutMs", a.TimeoutMs, 0, int64(maxWait)/ms, func(v int64) { r.Timeout = max(1, time.Duration(v*ms)) }),
		optional("settleMs", a.SettleMs, 0, int64(maxSettle)/ms, func(v int64) { r.Settle = cmp.Or(time.Duration(v*ms), -1) }),
		optional("since", a.Since, 0, 1<<53, func(v int64) { r.Since = v }),
		optional("port", a.Port, 1, 65535, func(v int64) { r.Port = int(v) })); err != nil {
		return nil, err
	}
	if (a.Port != nil || a.URL != "") && !s.opts.Loopback {
		return nil, errors.New("port and url are not available here: the terminals run on another machine")
	}
	locator, _ := s.opts.Terminals.(Locator)
	return newWait(t, locator, r)
}

// ready checks that the terminal supports the wait's conditions.
func (w *wait) ready() error {
	i := w.terminal.Info()
	switch {
	case w.since > i.End:
		return fmt.Errorf("since %d is beyond the end of the output, %d", w.since, i.End)
	case w.command && !i.Detection && i.Exit == nil:
		return errors.New("this terminal reports no commands: it runs no shell, or a shell without integration; wait for a pattern or idleMs instead")
	}
	w.result.TerminalID = i.ID
	return nil
}

// optional calls set with the number v if it is present. It returns an error if the
// number is out of range.
func optional(name string, v *int64, lo, hi int64, set func(int64)) error {
	if v == nil {
		return nil
	}
	if err := inRange(name, *v, lo, hi); err != nil {
		return err
	}
	set(*v)
	return nil
}
