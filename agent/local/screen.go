package local

import (
	"context"
	"net/http"

	"tether/agent/localapi"
	"tether/agenttools"
)

// screen answers with the terminal's present screen, however long ago it was drawn.
func (s *Server) screen(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	is, masked, err := agenttools.Showing(r.Context(), mcpTerminal{h})
	if err != nil {
		return err
	}
	shown := localapi.Screen{SchemaVersion: localapi.SchemaVersion, Text: is.Text(), Truncated: is.Doubtful(), Masked: masked}
	shown.Cols, shown.Rows = is.Size()
	shown.CursorCol, shown.CursorRow = is.Cursor()
	if r.URL.Query().Get("colours") == "1" {
		shown.Coloured = is.Coloured()
	}
	return reply(w, shown)
}

// Screen returns a terminal's present screen, its rows also with colours if requested.
func (c *Client) Screen(ctx context.Context, ref string, colours bool) (localapi.Screen, error) {
	path := terminalPath(ref, "/screen")
	if colours {
		path += "?colours=1"
	}
	var s localapi.Screen
	return s, c.do(ctx, http.MethodGet, path, nil, &s)
}
