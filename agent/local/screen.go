package local

import (
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
