package uplink

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tether/agent/output"
	"tether/agent/term"
	"tether/ahp"
	"tether/vocab"
)

// skipped handles a gap: it makes the gap visible at the host, and updates what the host
// shows besides the text.
func (p *publisher) skipped(ctx context.Context, e *output.LaggedError) error {
	p.s.link.update(p.le, func(le *lending) {
		le.lost += e.Lost
		if e.Lost > 0 {
			p.s.link.status.Gaps++
			p.s.link.status.GapBytes += e.Lost
		}
		if !p.s.marker.Resume {
			le.sent, le.acked = e.At, e.At
		}
	})
	var actions []ahp.Action
	info := p.info()
	if info.CommandDetection && !p.detection {
		p.detection = true
		actions = append(actions, ahp.TerminalCommandDetectionAvailable{})
	}
	actions = append(actions, p.reopened(e.Open)...)
	if !p.s.marker.CommandActions {
		actions = nil
	}
	if info.Title != p.title {
		p.title = info.Title
		actions = append(actions, ahp.TerminalTitleChanged{Title: info.Title})
	}
	if cwd := ahp.FileURI(info.Cwd); cwd != p.cwd && cwd != "" {
		p.cwd = cwd
		actions = append(actions, ahp.TerminalCwdChanged{Cwd: cwd})
	}
	if err := p.tellSize(ctx, p.reader.Size()); err != nil {
		return err
	}
	for _, a := range actions {
		if err := p.dispatch(ctx, a); err != nil {
			return err
		}
	}
	if p.s.marker.Resume || e.Lost == 0 {
		return nil // the next offset says how much is missing
	}
	line := fmt.Sprintf("\x1b\\\x1b[0m\r\n[tether: %d bytes were not kept]\r\n", e.Lost)
	return p.s.conn.Peer().SendRaw(ctx, ahp.AppendOutput(nil, p.le.uri, p.s.conn.NextSeq(), []byte(line), -1))
}

// tellSize tells the host the terminal's size at the output that is sent next. That may
// differ from the present size, which was announced.
func (p *publisher) tellSize(ctx context.Context, z term.Size) error {
	if z == p.size {
		return nil
	}
	p.size = z
	return p.dispatch(ctx, resized(z))
}

// draw sends the host the screen at an offset, because the host lacks the output before.
// It skips a screen that is too large.
func (p *publisher) draw(ctx context.Context, ev output.Event) error {
	if err := p.tellSize(ctx, ev.Screen.Size); err != nil {
		return err
	}
	at := ahp.Screen{Cols: int64(ev.Screen.Size.Cols), Rows: int64(ev.Screen.Size.Rows), Data: strings.ToValidUTF8(string(ev.Screen.Replay), "\uFFFD"), Truncated: !ev.Screen.Exact}
	if raw, err := json.Marshal(at); err != nil || len(raw) > ahp.MaxOutputScreen {
		return nil
	}
	p.s.link.update(p.le, func(le *lending) { le.sent = max(le.sent, ev.Off) })
	return p.dispatch(ctx, ahp.TerminalOutput{Offset: &ev.Off, Screen: &at})
}

// reopened returns the actions that finish commands which ended in a gap, and start
// commands which began in it and still run.
func (p *publisher) reopened(open []vocab.Command) (actions []ahp.Action) {
	isOpen := func(n int) bool { return slices.ContainsFunc(open, func(c vocab.Command) bool { return c.N == n }) }
	for _, n := range slices.Backward(p.open) {
		if !isOpen(n) {
			actions = append(actions, p.closing(n))
		}
	}
	for _, c := range open {
		if !slices.Contains(p.open, c.N) {
			actions = append(actions, executed(shownCommand(p.le.h, c)))
		}
	}
	p.open = p.open[:0]
	for _, c := range open {
		p.open = append(p.open, c.N)
	}
	return actions
}

// closing returns the action that finishes a command which ended in a gap.
func (p *publisher) closing(n int) ahp.Action {
	last := vocab.Command{N: n}
	if commands, err := p.le.h.Commands(); err == nil {
		for _, c := range commands {
			if c.N == n {
				last = c
			}
		}
	}
	return finished(last)
}
