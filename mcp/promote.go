package mcp

import (
	"context"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
