package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The members of _meta with which an editor shows a terminal that it does not run. They
// are not part of ACP; all editors that have the feature use these names.
type (
	terminalInfo struct {
		TerminalID string `json:"terminal_id"`
		Cwd        string `json:"cwd,omitempty"`
	}
	terminalOutput struct {
		TerminalID string `json:"terminal_id"`
		Data       string `json:"data"`
	}
	terminalExit struct {
		TerminalID string  `json:"terminal_id"`
		ExitCode   *uint32 `json:"exit_code"`
		Signal     *string `json:"signal"`
	}
	toolMeta struct {
		Output *terminalOutput `json:"terminal_output,omitempty"`
		Exit   *terminalExit   `json:"terminal_exit,omitempty"`
	}
)

// notificationParams are the parameters of a session/update with a tool_call_update that
// the proxy sends.
type notificationParams struct {
	SessionID string         `json:"sessionId"`
	Update    toolCallUpdate `json:"update"`
}

type toolCallUpdate struct {
	SessionUpdate string            `json:"sessionUpdate"`
	ToolCallID    string            `json:"toolCallId"`
	Status        string            `json:"status,omitempty"`
	Content       []json.RawMessage `json:"content,omitempty"`
	Meta          *toolMeta         `json:"_meta,omitempty"`
}

// line returns a session/update with the update of the call.
func (k callKey) line(u toolCallUpdate) []byte {
	u.SessionUpdate, u.ToolCallID = "tool_call_update", k.id
	return rpcLine("session/update", "", notificationParams{k.session, u})
}

// stream sends the output and the exit of t to the editor's terminal with the id shown.
// It returns after the exit, or when the proxy ends.
func (s *screen) stream(key callKey, shown string, t *terminal) {
	for at := int64(0); ; {
		data, next, exit, changed := t.look(at)
		if len(data) > 0 {
			meta := &toolMeta{Output: &terminalOutput{shown, string(data)}}
			if s.out.send(s.ctx, func() []byte { return key.line(toolCallUpdate{Meta: meta}) }) != nil {
				return
			}
		}
		at = next
		if exit != nil && len(data) == 0 {
			meta := &toolMeta{Exit: &terminalExit{shown, exit.ExitCode, exit.Signal}}
			_ = s.out.send(s.ctx, func() []byte { return key.line(toolCallUpdate{Meta: meta}) }) // fails only if the editor is gone
			t.update(func() { t.view = nil })
			return
		}
		if len(data) == 0 && !s.pause(t, changed, richPause) {
			return
		}
	}
}

// look returns the output from the offset at on, at most frameBytes, and the offset after
// it. It also returns the exit status, nil while the command runs, and a channel that is
// closed at the next change.
func (t *terminal) look(at int64) (data []byte, next int64, exit *exitStatus, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streamed = true
	exit, changed = statusOf(t.exit), t.changed.Next()
	if t.view == nil {
		return nil, at, exit, changed
	}
	lost := t.view.Start() - at
	if lost > 0 {
		at = t.view.Start()
		data = fmt.Appendf(nil, "\r\n[tether: %d bytes not shown]\r\n", lost)
	}
	a, b := t.view.Slices(at, frameBytes)
	text := bytes.Join([][]byte{a, b}, nil)
	next = at + int64(len(text))
	for lost > 0 && len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	if cut := partial(text); cut < len(text) && next < t.view.End() {
		next -= int64(len(text) - cut)
		text = text[:cut]
	}
	return append(data, text...), next, exit, changed
}

// partial returns the index of an incomplete character at the end of p, or len(p) if
// there is none.
func partial(p []byte) int {
	for i := len(p) - 1; i >= max(0, len(p)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				return len(p)
			}
			return i
		}
	}
	return len(p)
}

// pause waits until changed is closed or t has ended. If t has not ended, it then waits
// up to more, to gather further output. It returns false when the proxy ends.
func (s *screen) pause(t *terminal, changed <-chan struct{}, more time.Duration) bool {
	select {
	case <-changed:
	case <-t.ended:
	case <-s.ctx.Done():
		return false
	}
	select {
	case <-time.After(more):
		return true
	case <-t.ended:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// refresh sends the call's content again each time the terminal's text changes, until the
// terminal ends. changed is closed at the first change after the last content was sent.
// It was taken before the text was read, as later ones are here, so that no change is
// missed.
func (s *screen) refresh(key callKey, c *call, t *terminal, changed <-chan struct{}) {
	defer s.refreshed.Add(-1)
	for last := false; !last; {
		if !s.pause(t, changed, textPause) {
			return
		}
		t.mu.Lock()
		changed, last = t.changed.Next(), t.exit != nil
		t.mu.Unlock()
		if s.out.send(s.ctx, func() []byte { return s.contentLine(key, c) }) != nil {
			return
		}
	}
}

// contentLine returns the update with the call's current content, or nil if the agent no
// longer shows a terminal as text.
func (s *screen) contentLine(key callKey, c *call) []byte {
	s.mu.Lock()
	content := c.content
	s.mu.Unlock()
	if content == nil {
		return nil
	}
	return key.line(toolCallUpdate{Content: s.withTexts(key, content)})
}

// asText returns the terminal's newest output and its exit as a content block, in
// Markdown, which editors render.
func (t *terminal) asText() json.RawMessage {
	t.mu.Lock()
	text, ansi, exit := t.out.tail(tombBytes), t.out.ansi, t.exit
	t.mu.Unlock()
	if ansi {
		o := newOutput(nil, false)
		o.write(text)
		text = o.tail(tombBytes)
	}
	body := strings.TrimRight(string(text), "\n")
	switch {
	case body == "" && exit == nil:
		body = "(no output yet)"
	case body == "":
		body = "(no output)"
	default:
		body = fenced(body)
	}
	switch {
	case exit == nil || exit.Lost != "":
	case exit.Signal != "":
		body += "\n\nended by " + exit.Signal
	case exit.Code != 0:
		body += fmt.Sprintf("\n\nexit status %d", exit.Code)
	}
	return textBlock(body)
}

// fenced returns Markdown that shows text literally.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// textBlock returns text as a ToolCallContent of the schema.
func textBlock(text string) json.RawMessage {
	return encode(map[string]any{"type": "content", "content": map[string]string{"type": "text", "text": text}})
}
