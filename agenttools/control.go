package agenttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tether/vocab"
)

// maxInput bounds one write, in bytes.
const maxInput = 64 << 10

// Written is the answer of write_terminal. Cursor is the offset of the output before the
// input was written.
type Written struct {
	TerminalID string `json:"terminalId"`
	Written    int    `json:"written"` // bytes
	Cursor     int64  `json:"cursor"`
}

type writeArgs struct {
	target
	Input string `json:"input"`
	Enter bool   `json:"enter"`
}

func (s *Set) writeTool() tool {
	return tool{Tool: Tool{
		Name: "write_terminal", Title: "Write to a terminal",
		Description: "Type into a background terminal of your own: answer a prompt, use a REPL or a shell. The user's terminals take no input from you. Returns the cursor from before the input: read_terminal or wait_terminal with it as since show what came of it.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"terminalId":{"type":"string","description":"id or name of a terminal that you have spawned"},"input":{"type":"string","description":"text, as typed; control characters are allowed, such as \\u0003 for Ctrl-C; at the prompt of a shell, type whole lines without editing keys"},"enter":{"type":"boolean","description":"press Enter after it; default false"}},"required":["terminalId","input"],"additionalProperties":false}`),
		Destructive: true, OpenWorld: true,
	}, denied: "Cannot write to visible or user-owned terminals", call: reading(s, func(ctx context.Context, _ call, in *writeArgs, t Terminal) (Result, error) {
		if in.Enter {
			in.Input += "\r"
		}
		if in.Input == "" || len(in.Input) > maxInput {
			return Result{}, fmt.Errorf("input has %d bytes, it must be 1 to %d", len(in.Input), maxInput)
		}
		before := t.Info().End
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		err := s.control.Write(ctx, in.TerminalID, []byte(in.Input))
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("terminal %s does not read its input", in.TerminalID)
		}
		return Result{Answer: Written{in.TerminalID, len(in.Input), before}}, err
	})}
}

// writeTimeout is how long a write waits for a child that does not read.
const writeTimeout = 10 * time.Second

// signals are the allowed signals: they end, interrupt, stop or notify a process.
var signals = []string{"SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP", "SIGKILL", "SIGTSTP", "SIGSTOP", "SIGCONT", "SIGUSR1", "SIGUSR2", "SIGWINCH"}

// Signaled is the answer of signal_terminal.
type Signaled struct {
	TerminalID string `json:"terminalId"`
	Signal     string `json:"signal"`
}

type signalArgs struct {
	target
	Signal string `json:"signal"`
}

func (s *Set) signalTool() tool {
	return tool{Tool: Tool{
		Name: "signal_terminal", Title: "Send a signal",
		Description: "Send a signal to what runs in the foreground of a background terminal of your own, for example SIGINT like Ctrl-C. kill_terminal ends the whole terminal.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"terminalId":{"type":"string","description":"id or name of a terminal that you have spawned"},"signal":{"type":"string","enum":["` + strings.Join(signals, `","`) + `"]}},"required":["terminalId","signal"],"additionalProperties":false}`),
		Destructive: true,
	}, denied: "Cannot send signals to visible or user-owned terminals", call: on(s, func(_ context.Context, _ call, in *signalArgs) (Result, error) {
		if err := oneOf("signal", in.Signal, signals...); err != nil {
			return Result{}, err
		}
		return Result{Answer: Signaled{in.TerminalID, in.Signal}}, s.control.Signal(in.TerminalID, in.Signal)
	})}
}

// killTimeout is how long a call waits until the killed terminal has ended.
const killTimeout = 20 * time.Second

// Killed is the answer of kill_terminal. Terminated is always true.
type Killed struct {
	Terminated bool   `json:"terminated"`
	ID         string `json:"id"`
}

func (s *Set) killTool() tool {
	return tool{Tool: Tool{
		Name: "kill_terminal", Title: "Kill a terminal",
		Description: "Kill a background terminal owned by you, with everything that runs in it. Cannot kill visible or user-owned terminals. Killing a terminal that does not exist succeeds.",
		InputSchema: json.RawMessage(targetSchema),
		Destructive: true, Idempotent: true,
	}, denied: "Cannot kill visible or user-owned terminals", call: on(s, func(ctx context.Context, _ call, in *target) (Result, error) {
		ctx, cancel := context.WithTimeout(ctx, killTimeout)
		defer cancel()
		if err := s.control.Kill(ctx, in.TerminalID); err != nil && !errors.Is(err, ErrNotFound) {
			return Result{}, fmt.Errorf("kill %s: %w", in.TerminalID, err)
		}
		return Result{Answer: Killed{true, in.TerminalID}}, nil
	})}
}

// Promoted is the answer of promote_terminal: the terminal, which now belongs to the
// user.
type Promoted struct{ Metadata }

func (s *Set) promoteTool() tool {
	return tool{Tool: Tool{
		Name: "promote_terminal", Title: "Promote a terminal",
		Description: "Promote a background terminal of yours to visible, for example when a dev server is ready. Transfers ownership to the user for good: it no longer times out, and you can read it but no longer type into it or kill it.",
		InputSchema: json.RawMessage(targetSchema),
	}, denied: "Terminal is already visible to the user", call: on(s, func(_ context.Context, _ call, in *target) (Result, error) {
		i, err := s.control.Promote(in.TerminalID)
		return Result{Answer: Promoted{metadataOf(i)}, Structured: detailsOf(i)}, err
	})}
}

// restartTimeout is how long a call waits until the running program has ended and was
// started again.
const restartTimeout = time.Minute

// Restarter is a Terminals whose principal may be allowed by the user to restart some
// declared terminals.
type Restarter interface {
	Terminals
	// MayRestart reports whether there is a terminal that the principal may restart.
	MayRestart() bool
	// Restart ends the program in the terminal with that id or declared name, and starts
	// it again. It returns ErrNotFound also for a terminal that the principal may not
	// know of, and ErrDenied for a terminal that it sees but may not restart. The text of
	// other errors is for the model.
	Restart(ctx context.Context, ref string) (Restarted, error)
}

// Restarted is the answer of restart_terminal.
type Restarted struct {
	ID    string           `json:"id,omitempty"` // id of the terminal that runs now; "" while the start waits for other terminals
	Name  string           `json:"name"`
	State string           `json:"state"`              // running, or blocked
	Ready vocab.ReadyState `json:"ready,omitempty"`    // starting, if the user has said when the terminal is ready
	Waits string           `json:"waitsFor,omitempty"` // the terminals that are not ready yet, while blocked
}

func (s *Set) restartTool(r Restarter) tool {
	return tool{Tool: Tool{
		Name: "restart_terminal", Title: "Restart a terminal",
		Description: "End what runs in a terminal of the user's and start it again, for example a dev server that hangs. Only for terminals whose configuration lets agents do that. The new terminal has another id; where ready is \"starting\", list_terminals or the event terminal.ready tells when it is ready.",
		InputSchema: json.RawMessage(targetSchema),
		Destructive: true,
	}, denied: "Cannot restart this terminal: its configuration does not let agents do that", call: func(ctx context.Context, c call) (Result, error) {
		var in target
		if err := c.decode(&in); err != nil {
			return Result{}, err
		}
		if err := in.check(); err != nil {
			return Result{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, restartTimeout)
		defer cancel()
		got, err := r.Restart(ctx, in.TerminalID) // a declared name has priority over the names of exited terminals
		if given := in.TerminalID; errors.Is(err, ErrNotFound) {
			if err := s.resolve(&in); err != nil {
				return Result{}, err
			}
			if in.TerminalID != given {
				got, err = r.Restart(ctx, in.TerminalID)
			}
		}
		return Result{Answer: got}, about(in.TerminalID, err)
	}}
}
