package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
