package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The members of _meta by which an editor shows a terminal that it does not run. Editors with this feature share the names.
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

// notificationParams is a session/update with a tool_call_update of ours.
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

func (k callKey) line(u toolCallUpdate) []byte {
	u.SessionUpdate, u.ToolCallID = "tool_call_update", k.id
	return rpcLine("session/update", "", notificationParams{k.session, u})
}

// stream feeds the editor's terminal called shown with the output of t, and its end. It returns after that, or when nobody takes it any
// more.
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
			_ = s.out.send(s.ctx, func() []byte { return key.line(toolCallUpdate{Meta: meta}) }) // nobody is left to be told
			t.update(func() { t.view = nil })
			return
		}
		if len(data) == 0 && !s.pause(t, changed, richPause) {
			return
		}
	}
}

// look returns the output from an offset on, at most frameBytes, and its end; the exit if there is one; and a channel that is closed at the
// next change.
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

// partial is where the character begins that p ends within, else its length.
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

// pause waits for changed, which t closes, or t's end, and then a little for more, unless that was its end. It returns false when the proxy
// ends.
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

// refresh sends the call's content with the terminal's text while that changes and the agent shows it. changed is closed at the first
// change after the last content was sent: it is taken before the text, as the later ones are here, so that no change is missed.
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

// contentLine is the update with the call's current content, nil if the agent shows something else.
func (s *screen) contentLine(key callKey, c *call) []byte {
	s.mu.Lock()
	content := c.content
	s.mu.Unlock()
	if content == nil {
		return nil
	}
	return key.line(toolCallUpdate{Content: s.withTexts(key, content)})
}

// asText is the terminal as a block of text, in the Markdown that editors render.
func (t *terminal) asText() json.RawMessage {
	t.mu.Lock()
	text, ansi, exit := t.out.tail(tombBytes), t.out.ansi, t.exit
	t.mu.Unlock()
	if ansi {
		var p plain
		text = append(p.write(nil, text), p.line...)
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

// fenced is text as Markdown that shows it literally.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// textBlock is a ToolCallContent of the schema.
func textBlock(text string) json.RawMessage {
	return encode(map[string]any{"type": "content", "content": map[string]string{"type": "text", "text": text}})
}
