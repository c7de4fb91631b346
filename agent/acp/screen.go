package acp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// richPause and textPause are how long the editor is left alone between two looks at a terminal that goes on printing. The first look is
	// at once.
	richPause = 30 * time.Millisecond
	textPause = 250 * time.Millisecond
	// frameBytes bounds the output in one line to the editor.
	frameBytes = 32 << 10
	// maxCalls bounds the tool calls that are remembered; the oldest go first.
	maxCalls = 1000
)

// screen shows the agent's terminals to the editor, which does not know their ids. An agent shows one by putting it into the content of a
// tool call.
//
// An editor with the capability _meta.terminal_output accepts the output of a terminal that another program runs: announced in a tool call
// by _meta.terminal_info, fed by _meta.terminal_output and _meta.terminal_exit in updates of that call. Editors learn of such a terminal
// only from a tool_call, not from an update, and agents create terminals after the call. So each call that executes something announces
// one, which is used if needed. For all other editors, the terminal is a text that is refreshed.
//
// Goroutines: one per shown terminal and call, until the terminal's end or ctx's.
type screen struct {
	// Set at construction.
	ctx   context.Context
	table *table
	cwd   func(session string) string
	out   *writer
	shows sync.WaitGroup

	refreshed atomic.Int32 // texts that are kept up to date

	mu    sync.Mutex
	calls map[callKey]*call
	order []callKey // the oldest first
}

type callKey struct{ session, id string }

// call is a tool call. It is guarded by screen.mu.
type call struct {
	announced string            // the editor's id for a terminal of this call, "" if it was told of none
	inside    string            // our id of the terminal that is shown under it
	content   []json.RawMessage // the agent's last, while it has a terminal that is shown as text
	texts     map[string]bool   // our ids of those that are being refreshed
}

func newScreen(ctx context.Context, tb *table, cwd func(string) string, out *writer) *screen {
	return &screen{ctx: ctx, table: tb, cwd: cwd, out: out, calls: map[callKey]*call{}}
}

// wait returns when nothing is shown any more.
func (s *screen) wait() { s.shows.Wait() }

// toolUpdate is the part of a tool_call or tool_call_update that matters here.
type toolUpdate struct {
	SessionUpdate string            `json:"sessionUpdate"`
	ToolCallID    string            `json:"toolCallId"`
	Kind          string            `json:"kind"`
	Content       []json.RawMessage `json:"content"`
}

// A large update is not decoded unless one of these is in it.
var (
	mentionsCall     = []byte(`"tool_call"`)
	mentionsUpdate   = []byte(`"tool_call_update"`)
	mentionsTerminal = []byte(`"terminal"`)
)

// matters reports whether the parameters of a session/update may have to do with terminals: they show one, they may have to announce one,
// or they may take one away.
func (s *screen) matters(params []byte, rich bool) bool {
	return bytes.Contains(params, mentionsTerminal) || rich && bytes.Contains(params, mentionsCall) ||
		s.refreshed.Load() > 0 && bytes.Contains(params, mentionsUpdate)
}

// update handles a session/update. It returns the parameters for the editor, nil to pass them unchanged, and a function to call after that.
func (s *screen) update(m message, rich bool) (params []byte, then func()) {
	if !s.matters(m.params, rich) {
		return nil, nil
	}
	var p struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	var u toolUpdate
	if json.Unmarshal(m.params, &p) != nil || json.Unmarshal(p.Update, &u) != nil || u.ToolCallID == "" {
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

// rewrite returns the update in a form that the editor understands, nil if that is the original, and the goroutines that keep it up to
// date.
func (s *screen) rewrite(key callKey, update []byte, u toolUpdate, rich bool) (changed []byte, shows []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := s.oursLocked(key, u.Content)
	c := s.calls[key]
	announce := rich && u.SessionUpdate == "tool_call" && (u.Kind == "execute" || len(ours) > 0) && (c == nil || c.announced == "")
	if len(ours) == 0 && !announce {
		if c != nil && u.Content != nil {
			c.content = nil // the agent shows something else now
		}
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
		c.content = content // with our ids where there is text
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

// oursLocked returns those of our terminals that the content holds, by their index in it.
func (s *screen) oursLocked(key callKey, content []json.RawMessage) map[int]*terminal {
	ours := map[int]*terminal{}
	for i, item := range content {
		if t := s.terminalIn(key.session, item); t != nil {
			ours[i] = t
		}
	}
	return ours
}

// terminalIn returns our terminal if the item of a content is one.
func (s *screen) terminalIn(session string, item json.RawMessage) *terminal {
	var v struct {
		Type       string `json:"type"`
		TerminalID string `json:"terminalId"`
	}
	if json.Unmarshal(item, &v) != nil || v.Type != "terminal" {
		return nil
	}
	return s.table.shown(session, v.TerminalID)
}

// withTexts returns the content with a text for each of our terminals that is still in it under our own id.
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
