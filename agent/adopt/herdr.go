package adopt

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tether/platform/proc"
	"tether/platform/pty"
)

// herdr is a server of herdr, which answers one request on each connection:
// https://herdr.dev/docs/socket-api/
type herdr struct{ socket, server string } // server: see Target

// herdrs returns the server of the person, if there is one.
func herdrs(o Options) []teller {
	path := o.getenv("HERDR_SOCKET_PATH")
	if path == "" {
		dir := o.getenv("XDG_CONFIG_HOME")
		if dir == "" {
			dir = filepath.Join(o.getenv("HOME"), ".config")
		}
		path = filepath.Join(dir, "herdr", "herdr.sock")
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []teller{herdr{socket: path}}
}

// ask sends a request and decodes its result. It returns who answered.
func (h herdr) ask(ctx context.Context, method string, params, result any) (from proc.ID, err error) {
	conn, from, err := dial(ctx, h.socket)
	if err != nil {
		return from, err
	}
	defer conn.Close()
	request := map[string]any{"id": "tether", "method": method, "params": params}
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		return from, err
	}
	line, err := readTo(conn, "\n")
	if err != nil {
		return from, err
	}
	answer := struct {
		Result any `json:"result"`
		Error  *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}{Result: result}
	if err := json.Unmarshal(line, &answer); err != nil {
		return from, fmt.Errorf("herdr at %s: %w", h.socket, err)
	}
	if answer.Error != nil {
		return from, fmt.Errorf("herdr at %s: %s", h.socket, printable(answer.Error.Message, maxText))
	}
	return from, nil
}

func (h herdr) panes(ctx context.Context) (all []Pane, err error) {
	var list struct {
		Panes []struct {
			ID    string `json:"pane_id"`
			Tab   string `json:"tab_id"`
			Dir   string `json:"cwd"`
			Front string `json:"foreground_cwd"`
			Label string `json:"label"`
			Title string `json:"terminal_title"`
		} `json:"panes"`
	}
	server, err := h.ask(ctx, "pane.list", struct{}{}, &list)
	if err != nil {
		return nil, err
	}
	for _, p := range list.Panes {
		pane := Pane{
			Target: Target{Program: "herdr", Server: h.server, Pane: strings.ReplaceAll(p.ID, ":", ".")}, Socket: h.socket,
			Title: printable(p.Title, maxText), Dir: directory(p.Front), Server: server, Size: h.size(ctx, p.ID),
		}
		if pane.Dir == "" {
			pane.Dir = directory(p.Dir)
		}
		if pane.Title == "" {
			pane.Title = printable(p.Label, maxText)
		}
		all = append(all, pane)
	}
	return all, nil
}

// size returns the size of a pane: that of its place in the layout.
func (h herdr) size(ctx context.Context, id string) pty.Size {
	var answer struct {
		Layout struct {
			Panes []struct {
				ID   string `json:"pane_id"`
				Rect struct {
					Width  int `json:"width"`
					Height int `json:"height"`
				} `json:"rect"`
			} `json:"panes"`
		} `json:"layout"`
	}
	size := pty.DefaultSize
	if _, err := h.ask(ctx, "pane.layout", map[string]any{"pane_id": id}, &answer); err != nil {
		return size
	}
	for _, p := range answer.Layout.Panes {
		if p.ID == id {
			size = sizeOf(p.Rect.Width, p.Rect.Height)
		}
	}
	return size
}

func (h herdr) text(ctx context.Context, p Pane, past bool) (picture, error) {
	params := map[string]any{"pane_id": strings.ReplaceAll(p.Target.Pane, ".", ":"), "source": "visible", "format": "ansi", "strip_ansi": false}
	if past {
		params["source"], params["lines"] = "recent", maxPast
	}
	var answer struct {
		Read struct {
			Text string `json:"text"`
		} `json:"read"`
	}
	_, err := h.ask(ctx, "pane.read", params, &answer)
	return picture{text: []byte(answer.Read.Text)}, err
}
