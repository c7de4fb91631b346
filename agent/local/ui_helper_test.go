package local_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/coder/websocket"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/testkit/must"
)

// ui is a user interface on its WebSocket.
type ui struct {
	t    *testing.T
	conn *websocket.Conn
}

// ui connects as the person.
func (w *world) ui() *ui { return w.uiOf(w.client) }

// uiOf connects as whoever c is.
func (w *world) uiOf(c *localclient.Client) *ui {
	w.t.Helper()
	conn, _, err := websocket.Dial(w.t.Context(), "ws://"+localapi.Host+"/pty", &websocket.DialOptions{HTTPClient: c.HTTP()})
	must.Do(w.t, err)
	conn.SetReadLimit(8 << 20)
	w.t.Cleanup(func() { conn.CloseNow() })
	return &ui{w.t, conn}
}

// said is a message of the server's; a field that was absent is nil or zero.
type said map[string]any

func (u *ui) send(text string) {
	u.t.Helper()
	must.Do(u.t, u.conn.Write(u.t.Context(), websocket.MessageText, []byte(text)))
}

// ask sends a message made of type, id and further fields.
func (u *ui) ask(kind, id string, fields ...any) {
	u.t.Helper()
	m := said{"type": kind, "id": id}
	for f := range slices.Chunk(fields, 2) {
		m[f[0].(string)] = f[1]
	}
	data := must.Get(json.Marshal(m))(u.t)
	u.send(string(data))
}

// next waits for the next message.
func (u *ui) next() said {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	_, data, err := u.conn.Read(ctx)
	must.Do(u.t, err)
	var m said
	if err := json.Unmarshal(data, &m); err != nil {
		u.t.Fatalf("%q: %v", data, err)
	}
	return m
}

// nextOf waits for a message of a type and drops those before it.
func (u *ui) nextOf(kind string) said {
	u.t.Helper()
	for {
		if m := u.next(); m["type"] == kind {
			return m
		}
	}
}

// event waits for an event of a terminal.
func (u *ui) event(kind string) said {
	u.t.Helper()
	for {
		if m := u.nextOf("terminal"); m["event"] == kind {
			return m
		}
	}
}

// settled returns what arrived until everything sent so far was dealt with.
func (u *ui) settled() (all []said) {
	u.t.Helper()
	u.send(`{"type":"ping"}`)
	for {
		m := u.next()
		if m["type"] == "pong" {
			return all
		}
		all = append(all, m)
	}
}

// streamed leaves out the events of terminals.
func streamed(all []said) (out []said) {
	for _, m := range all {
		if m["type"] != "terminal" {
			out = append(out, m)
		}
	}
	return out
}

// drawn is a history: what draws the screen before it, and the text.
func (m said) drawn() (screen, text string) {
	text, _ = m["history"].(string)
	n := 0
	if _, ok := m["screenBytes"]; ok {
		n = m.at("screenBytes")
	}
	return text[:n], text[n:]
}

// text joins histories and outputs: an attached message begins anew.
func text(all []said) string {
	out := ""
	for _, m := range all {
		switch m["type"] {
		case "pty:attached":
			_, out = m.drawn()
		case "pty:output":
			out += m["data"].(string)
		}
	}
	return out
}

// shows reads messages until what they show is want.
func (u *ui) shows(want string) []said {
	u.t.Helper()
	var all []said
	for text(all) != want {
		all = append(all, u.next())
	}
	return all
}
