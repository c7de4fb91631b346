package adopt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tether/platform/proc"
)

// kitty is a kitty whose remote control is on, at a socket. It speaks the protocol of
// https://sw.kovidgoyal.net/kitty/rc_protocol/, since kitty's own command takes half a
// second of processor time for each question.
type kitty struct{ socket, server string } // server: see Target

// kitties returns the kitty in which the environment was made.
func kitties(o Options) []teller {
	socket, ok := strings.CutPrefix(o.getenv("KITTY_LISTEN_ON"), "unix:")
	if !ok {
		return nil
	}
	return []teller{kitty{socket: socket}}
}

// kittyVersion is that of the protocol's first description, which all later ones accept.
var kittyVersion = [3]int{0, 14, 2}

// ask sends a command and returns the data of its answer, and who answered.
func (k kitty) ask(ctx context.Context, command string, payload any) (data string, from proc.ID, err error) {
	conn, from, err := dial(ctx, k.socket)
	if err != nil {
		return "", from, err
	}
	defer conn.Close()
	const begin, end = "\x1bP@kitty-cmd", "\x1b\\"
	request, err := json.Marshal(map[string]any{"cmd": command, "version": kittyVersion, "payload": payload})
	if err != nil {
		return "", from, err
	}
	if _, err := io.WriteString(conn, begin+string(request)+end); err != nil {
		return "", from, err
	}
	text, err := readTo(conn, end)
	if err != nil {
		return "", from, err
	}
	var answer struct {
		OK    bool   `json:"ok"`
		Data  string `json:"data"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte(begin)), &answer); err != nil {
		return "", from, fmt.Errorf("kitty at %s: %w", k.socket, err)
	}
	switch {
	case answer.OK:
		return answer.Data, from, nil
	case strings.HasPrefix(answer.Error, "No matching windows"):
		return "", from, errEnded
	}
	return "", from, fmt.Errorf("kitty at %s: %s", k.socket, printable(answer.Error, maxText))
}

func (k kitty) panes(ctx context.Context) (all []Pane, err error) {
	data, server, err := k.ask(ctx, "ls", nil)
	if err != nil {
		return nil, err
	}
	type process struct {
		Argv []string `json:"cmdline"`
		Dir  string   `json:"cwd"`
	}
	var windows []struct {
		Tabs []struct {
			Panes []struct {
				ID    int       `json:"id"`
				Pid   int       `json:"pid"`
				Cols  int       `json:"columns"`
				Rows  int       `json:"lines"`
				Title string    `json:"title"`
				Dir   string    `json:"cwd"`
				Argv  []string  `json:"cmdline"`
				Front []process `json:"foreground_processes"`
			} `json:"windows"`
		} `json:"tabs"`
	}
	if err := json.Unmarshal([]byte(data), &windows); err != nil {
		return nil, fmt.Errorf("kitty at %s: %w", k.socket, err)
	}
	for _, w := range windows {
		for _, t := range w.Tabs {
			for _, p := range t.Panes {
				front := process{p.Argv, p.Dir}
				if len(p.Front) > 0 {
					front = p.Front[0]
				}
				all = append(all, Pane{
					Target: Target{Program: "kitty", Server: k.server, Pane: strconv.Itoa(p.ID)}, Socket: k.socket,
					Title: printable(p.Title, maxText), Command: printable(strings.Join(front.Argv, " "), maxText), Dir: directory(front.Dir),
					Pid: p.Pid, Server: server, Size: sizeOf(p.Cols, p.Rows),
				})
			}
		}
	}
	return all, nil
}

func (k kitty) text(ctx context.Context, p Pane, past bool) (picture, error) {
	extent := "screen"
	if past {
		extent = "all"
	}
	data, _, err := k.ask(ctx, "get-text", map[string]any{"match": "id:" + p.Target.Pane, "ansi": true, "extent": extent, "cursor": !past, "wrap_markers": true})
	return picture{text: []byte(data), cursor: !past}, err
}
