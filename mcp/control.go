package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxInput bounds one write, in bytes.
const maxInput = 64 << 10

func (s *Server) writeTool() tool {
	return tool{
		name: "write_terminal", title: "Write to a terminal",
		description: "Type into a background terminal of your own: answer a prompt, use a REPL or a shell. The user's terminals take no input from you. Returns the cursor from before the input: read_terminal or wait_terminal with it as since show what came of it.",
		schema:      `{"type":"object","properties":{"terminalId":{"type":"string","description":"id or name of a terminal that you have spawned"},"input":{"type":"string","description":"text, as typed; control characters are allowed, such as \\u0003 for Ctrl-C; at the prompt of a shell, type whole lines without editing keys"},"enter":{"type":"boolean","description":"press Enter after it; default false"}},"required":["terminalId","input"],"additionalProperties":false}`,
		hints:       sdk.ToolAnnotations{DestructiveHint: yes(), OpenWorldHint: yes()},
		call: func(ctx context.Context, c call) (result, error) {
			var in struct {
				target
				Input string `json:"input"`
				Enter bool   `json:"enter"`
			}
			if err := c.decode(&in); err != nil {
				return result{}, err
			}
			if err := s.resolve(&in.target); err != nil {
				return result{}, err
			}
			if in.Enter {
				in.Input += "\r"
			}
			if in.Input == "" || len(in.Input) > maxInput {
				return result{}, fmt.Errorf("input has %d bytes, it must be 1 to %d", len(in.Input), maxInput)
			}
			t, err := s.opts.Terminals.Open(in.TerminalID)
			if err != nil {
				return result{}, about(in.TerminalID, err)
			}
			before := t.Info().End
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			if err := s.control.Write(ctx, in.TerminalID, []byte(in.Input)); err != nil {
				return result{}, writeError(in.TerminalID, err)
			}
			return result{text: struct {
				TerminalID string `json:"terminalId"`
				Written    int    `json:"written"`
				Cursor     int64  `json:"cursor"`
			}{in.TerminalID, len(in.Input), before}}, nil
		},
	}
}

// writeTimeout is how long a write waits for a child that does not read.
const writeTimeout = 10 * time.Second

func writeError(id string, err error) error {
	switch {
	case errors.Is(err, ErrDenied):
		return said("Cannot write to visible or user-owned terminals")
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("terminal %s does not read its input", id)
	}
	return about(id, err)
}

// signals are those that end, interrupt, stop or poke.
var signals = []string{"SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP", "SIGKILL", "SIGTSTP", "SIGSTOP", "SIGCONT", "SIGUSR1", "SIGUSR2", "SIGWINCH"}

func (s *Server) signalTool() tool {
	return tool{
		name: "signal_terminal", title: "Send a signal",
		description: "Send a signal to what runs in the foreground of a background terminal of your own, for example SIGINT like Ctrl-C. kill_terminal ends the whole terminal.",
		schema:      `{"type":"object","properties":{"terminalId":{"type":"string","description":"id or name of a terminal that you have spawned"},"signal":{"type":"string","enum":["` + strings.Join(signals, `","`) + `"]}},"required":["terminalId","signal"],"additionalProperties":false}`,
		hints:       sdk.ToolAnnotations{DestructiveHint: yes(), OpenWorldHint: no()},
		call: func(_ context.Context, c call) (result, error) {
			var in struct {
				target
				Signal string `json:"signal"`
			}
			if err := c.decode(&in); err != nil {
				return result{}, err
			}
			if err := s.resolve(&in.target); err != nil {
				return result{}, err
			}
			if err := oneOf("signal", in.Signal, signals...); err != nil {
				return result{}, err
			}
			switch err := s.control.Signal(in.TerminalID, in.Signal); {
			case errors.Is(err, ErrDenied):
				return result{}, said("Cannot send signals to visible or user-owned terminals")
			case err != nil:
				return result{}, about(in.TerminalID, err)
			}
			return result{text: struct {
				TerminalID string `json:"terminalId"`
				Signal     string `json:"signal"`
			}{in.TerminalID, in.Signal}}, nil
		},
	}
}

// killTimeout is how long a call waits for the end of what it kills.
const killTimeout = 20 * time.Second

// errKill is the answer to killing what is not the agent's, in the words of
// the tools' contract.
const errKill = said("Cannot kill visible or user-owned terminals")

func (s *Server) killTool() tool {
	return tool{
		name: "kill_terminal", title: "Kill a terminal",
		description: "Kill a background terminal owned by you, with everything that runs in it. Cannot kill visible or user-owned terminals. Killing a terminal that does not exist succeeds.",
		schema:      targetSchema,
		hints:       sdk.ToolAnnotations{DestructiveHint: yes(), IdempotentHint: true, OpenWorldHint: no()},
		call: func(ctx context.Context, c call) (result, error) {
			var in target
			if err := s.decodeTarget(c, &in); err != nil {
				return result{}, err
			}
			ctx, cancel := context.WithTimeout(ctx, killTimeout)
			defer cancel()
			switch err := s.control.Kill(ctx, in.TerminalID); {
			case errors.Is(err, ErrDenied):
				return result{}, errKill
			case err != nil && !errors.Is(err, ErrNotFound):
				return result{}, fmt.Errorf("kill %s: %w", in.TerminalID, err)
			}
			return result{text: struct {
				Terminated bool   `json:"terminated"`
				ID         string `json:"id"`
			}{true, in.TerminalID}}, nil
		},
	}
}

func (s *Server) promoteTool() tool {
	return tool{
		name: "promote_terminal", title: "Promote a terminal",
		description: "Promote a background terminal of yours to visible, for example when a dev server is ready. Transfers ownership to the user for good: it no longer times out, and you can read it but no longer type into it or kill it.",
		schema:      targetSchema,
		hints:       sdk.ToolAnnotations{DestructiveHint: no(), OpenWorldHint: no()},
		call: func(_ context.Context, c call) (result, error) {
			var in target
			if err := s.decodeTarget(c, &in); err != nil {
				return result{}, err
			}
			i, err := s.control.Promote(in.TerminalID)
			switch {
			case errors.Is(err, ErrDenied):
				return result{}, said("Terminal is already visible to the user")
			case err != nil:
				return result{}, about(in.TerminalID, err)
			}
			return result{text: metadataOf(i), structured: detailsOf(i)}, nil
		},
	}
}
