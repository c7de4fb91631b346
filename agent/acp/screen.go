package acp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"tether/internal/jsonspan"
)

const (
	// richPause and textPause are the shortest times between two updates to the editor
	// about one terminal that keeps printing: richPause for terminals, textPause for
	// text. The first update is sent at once.
	richPause = 30 * time.Millisecond
	textPause = 250 * time.Millisecond
	// frameBytes bounds the output in one line to the editor, in bytes.
	frameBytes = 32 << 10
	// maxCalls bounds the tool calls that are remembered; the oldest are forgotten first.
	maxCalls = 1000
)

// screen shows the agent's terminals to the editor, which does not know their ids. An
// agent shows a terminal by putting its id into the content of a tool call.
//
// An editor with the capability _meta.terminal_output accepts the output of a terminal
// that another program runs. A tool_call announces the terminal with _meta.terminal_info;
// updates of the call carry _meta.terminal_output and _meta.terminal_exit. Editors accept
// the announcement only in a tool_call, not in an update, but agents create terminals
// after the tool_call. So the proxy announces a terminal in each call of kind "execute",
// before it knows whether the call needs one. For all other editors, screen replaces the
// terminal by text and refreshes the text.
//
// Goroutines: one per shown terminal and call. It ends when the terminal or ctx does.
type screen struct {
	// Set at construction.
	ctx   context.Context
	table *table
	cwd   func(session string) string
	out   *writer
	shows sync.WaitGroup

	refreshed atomic.Int32 // number of texts that are being refreshed

	mu    sync.Mutex
	calls map[callKey]*call
	order []callKey // the oldest first
}

type callKey struct{ session, id string }

// call is a tool call. It is guarded by screen.mu.
type call struct {
	announced string            // the id of the terminal that was announced to the editor, or ""
	inside    string            // our id of the terminal whose output goes to the announced one, or ""
	content   []json.RawMessage // the call's last content if it has a terminal that is shown as text, else nil
	texts     map[string]bool   // our ids of the terminals that are shown as text and refreshed
}

func newScreen(ctx context.Context, tb *table, cwd func(string) string, out *writer) *screen {
	return &screen{ctx: ctx, table: tb, cwd: cwd, out: out, calls: map[callKey]*call{}}
}

// wait returns when all goroutines of the screen have ended.
func (s *screen) wait() { s.shows.Wait() }

// toolUpdate is the part of a tool_call or tool_call_update that matters here.
type toolUpdate struct {
	SessionUpdate string            `json:"sessionUpdate"`
	ToolCallID    string            `json:"toolCallId"`
	Kind          string            `json:"kind"`
	Content       []json.RawMessage `json:"content"`
}

// An update is decoded only if it contains one of these.
var (
	mentionsCall     = []byte(`"tool_call"`)
	mentionsUpdate   = []byte(`"tool_call_update"`)
	mentionsTerminal = []byte(`"terminal"`)
)

// matters reports whether the parameters of a session/update may concern terminals: they
// may show one, need the announcement of one, or remove one from a call.
func (s *screen) matters(params []byte, rich bool) bool {
	return bytes.Contains(params, mentionsTerminal) || rich && bytes.Contains(params, mentionsCall) ||
		s.refreshed.Load() > 0 && bytes.Contains(params, mentionsUpdate)
}

// update handles a session/update. It returns the parameters for the editor, or nil to
// pass them unchanged, and a function to call after the line was written.
func (s *screen) update(m message, rich bool) (params []byte, then func()) {
	if !s.matters(m.params, rich) {
		return nil, nil
	}
	var p struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	var u toolUpdate
	if jsonspan.Unmarshal(m.params, &p) != nil || jsonspan.Unmarshal(p.Update, &u) != nil || u.ToolCallID == "" {
		return nil, nil // the editor reports the fault
	}
	if u.SessionUpdate != "tool_call" && u.SessionUpdate != "tool_call_update" {
		return nil, nil
	}
	changed, shows := s.rewrite(callKey{p.SessionID, u.ToolCallID}, p.Update, u, rich)
	if changed == nil {
		return nil, nil
	}
	return withMember(m.params, "update", set(changed)), func() {
		for _, show := range shows {
			s.shows.Go(show)
		}
	}
}

// rewrite returns the update in a form that the editor understands, or nil to pass it
// unchanged. It also returns the functions that keep the shown terminals up to date; each
// needs a goroutine.
func (s *screen) rewrite(key callKey, update []byte, u toolUpdate, rich bool) (changed []byte, shows []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := s.oursLocked(key, u.Content)
	c := s.calls[key]
	announce := rich && u.SessionUpdate == "tool_call" && (u.Kind == "execute" || len(ours) > 0) && (c == nil || c.announced == "")
	if c != nil && u.Content != nil {
		c.content = nil // set below if the new content has a terminal that is shown as text
	}
	if len(ours) == 0 && !announce {
		return nil, nil
	}
	if c == nil {
		c = s.rememberLocked(key)
	}
	changed = update
	if announce {
		c.announced = "tether-" + rand.Text()
		info := encode(terminalInfo{c.announced, s.cwd(key.session)})
		changed = withMember(changed, "_meta", func(meta []byte) []byte { return withMember(meta, "terminal_info", set(info)) })
	}
	if len(ours) == 0 {
		return changed, nil
	}
	content := make([]json.RawMessage, len(u.Content))
	copy(content, u.Content)
	for i := range content {
		t := ours[i]
		if t == nil {
			continue
		}
		if c.announced != "" && (c.inside == "" || c.inside == t.id) {
			content[i] = withMember(content[i], "terminalId", set(encode(c.announced)))
			if c.inside == "" {
				c.inside = t.id
				shows = append(shows, func() { s.stream(key, c.announced, t) })
			}
			continue
		}
		c.content = content // it keeps our ids where the editor gets text
		if !c.texts[t.id] {
			c.texts[t.id] = true
			s.refreshed.Add(1)
			t.mu.Lock()
			next := t.changed.Next()
			t.mu.Unlock()
			shows = append(shows, func() { s.refresh(key, c, t, next) })
		}
	}
	shown := s.withTexts(key, content)
	return withMember(changed, "content", set(encode(shown))), shows
}

// oursLocked returns our terminals in the content, by their index in it.
func (s *screen) oursLocked(key callKey, content []json.RawMessage) map[int]*terminal {
	ours := map[int]*terminal{}
	for i, item := range content {
		if t := s.terminalIn(key.session, item); t != nil {
			ours[i] = t
		}
	}
	return ours
}

// terminalIn returns the terminal of ours that a content item shows, or nil.
func (s *screen) terminalIn(session string, item json.RawMessage) *terminal {
	var v struct {
		Type       string `json:"type"`
		TerminalID string `json:"terminalId"`
	}
	if jsonspan.Unmarshal(item, &v) != nil || v.Type != "terminal" {
		return nil
	}
	return s.table.shown(session, v.TerminalID)
}

// withTexts returns a copy of the content with a text in place of each terminal that
// still has our own id.
func (s *screen) withTexts(key callKey, content []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, len(content))
	for i, item := range content {
		out[i] = item
		if t := s.terminalIn(key.session, item); t != nil {
			out[i] = t.asText()
		}
	}
	return out
}

// rememberLocked adds a call, and forgets the oldest if there are more than maxCalls.
func (s *screen) rememberLocked(key callKey) *call {
	c := &call{texts: map[string]bool{}}
	s.calls[key] = c
	s.order = append(s.order, key)
	if len(s.order) > maxCalls {
		delete(s.calls, s.order[0])
		s.order = s.order[1:]
	}
	return c
}
