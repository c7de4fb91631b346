package local

import (
	"context"
	"net/http"

	"tether/agenttools"
)

// Screen is a terminal's screen.
type Screen struct {
	SchemaVersion int      `json:"schema_version"`
	Cols          int      `json:"cols"`
	Rows          int      `json:"rows"`
	CursorCol     int      `json:"cursor_col"`         // from 0
	CursorRow     int      `json:"cursor_row"`         // from 0
	Text          string   `json:"text"`               // its rows, without blanks at their ends and empty rows at the bottom
	Coloured      []string `json:"coloured,omitempty"` // the same rows with SGR sequences, if they were asked for
	Truncated     bool     `json:"truncated"`          // a part of it is not known: output before it is lost
	Masked        int      `json:"masked"`             // as in ProblemList
}

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
	shown := Screen{SchemaVersion: SchemaVersion, Text: is.Text(), Truncated: is.Doubtful(), Masked: masked}
	shown.Cols, shown.Rows = is.Size()
	shown.CursorCol, shown.CursorRow = is.Cursor()
	if r.URL.Query().Get("colours") == "1" {
		shown.Coloured = is.Coloured()
	}
	return reply(w, shown)
}

// Screen returns a terminal's present screen, its rows also with colours if requested.
func (c *Client) Screen(ctx context.Context, ref string, colours bool) (Screen, error) {
	path := terminalPath(ref, "/screen")
	if colours {
		path += "?colours=1"
	}
	var s Screen
	return s, c.do(ctx, http.MethodGet, path, nil, &s)
}
