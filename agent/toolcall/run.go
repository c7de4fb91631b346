package toolcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
)

// askedLocked takes a request of a session. It begins a new call; for a known call it
// sends the answer again if the host does not have it.
func (d *Desk) askedLocked(s *session, r ahp.InputRequest) {
	if !d.on || answerable(r, d.opts.ClientID) != nil {
		d.status.Ignored++
		return
	}
	k := keyOf(s.uri, r)
	if c := d.calls[k]; c != nil {
		c.id, c.void = r.ID, false
		if c.ended && c.sentOn != d.serving {
			d.queueLocked(c)
		}
		return
	}
	if !d.roomLocked() {
		d.status.Ignored++
		return
	}
	c := &call{key: k, session: s.uri, id: r.ID, chat: r.Chat, tool: r.ToolCall.ToolName, agent: ahp.FindAgent(r.ToolCall.Meta), input: *r.ToolCall, asked: time.Now(),
		ref: ahp.ToolCallRef{TurnID: r.TurnID, ToolCallID: r.ToolCall.ToolCallID}}
	d.calls[k] = c
	d.order = append(d.order, c)
	if why := d.refusalLocked(c); why != nil {
		d.endLocked(c, Answer{Failed: true, Text: why.Error()}, true)
		return
	}
	ctx, cancel := context.WithCancelCause(d.ctx)
	c.cancel = cancel
	d.running++
	d.runs.Go(func() { d.run(ctx, c) })
}

// roomLocked makes room for one more call by forgetting the oldest finished call. It does
// not forget calls that run or whose answers were not told yet.
func (d *Desk) roomLocked() bool {
	if len(d.order) < maxBegun {
		return true
	}
	for i, c := range d.order {
		if c.ended && !c.queued {
			delete(d.calls, c.key)
			d.order = append(d.order[:i:i], d.order[i+1:]...)
			return true
		}
	}
	return false
}

// refusalLocked returns why the call must not be carried out, nil if it may.
func (d *Desk) refusalLocked(c *call) error {
	switch {
	case d.titles[c.tool] == "":
		return fmt.Errorf("no such tool: %.40q", c.tool)
	case !d.limit.Allow():
		return fmt.Errorf("too many calls: the maximum is %d a minute; wait_terminal waits without polling", perMinute)
	case d.running >= maxRunning:
		return fmt.Errorf("%d calls are already running, the maximum", maxRunning)
	}
	_, err := arguments(c.input)
	return err
}

// run carries out a call that has not begun before.
func (d *Desk) run(ctx context.Context, c *call) {
	args, err := arguments(c.input)
	if err == nil {
		err = d.book.begin(c.key)
		d.noteBook(err)
	}
	answer, refused := Answer{Failed: true}, err != nil
	switch {
	case errors.Is(err, errBegun):
		answer.Text = lostText
	case err != nil:
		answer.Text = "the call was not carried out: " + err.Error()
	default:
		answer = d.opts.Run(ctx, Call{Session: Tag(c.session), Agent: c.agent, Tool: c.tool, Arguments: args}).bounded()
	}
	if cause := context.Cause(ctx); cause != nil && answer.Failed && d.ctx.Err() == nil {
		answer.Text = cause.Error()
	}
	c.cancel(nil)
	d.mu.Lock()
	d.running--
	d.endLocked(c, answer, refused)
	d.mu.Unlock()
	d.report()
	change.Wake(d.wake)
}

// noteBook stores the reason for which calls cannot be recorded in the book, until one
// can be.
func (d *Desk) noteBook(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unbooked = ""
	if err != nil && !errors.Is(err, errBegun) {
		d.unbooked = err.Error()
	}
}

// endLocked notes the answer, for the host and for the log.
func (d *Desk) endLocked(c *call, a Answer, refused bool) {
	c.ended, c.answer, c.input = true, a, ahp.ToolCall{}
	d.status.Ended++
	if refused {
		d.status.Refused++
	}
	d.records = append(d.records, Record{Session: Tag(c.session), Agent: c.agent, Tool: d.shownTool(c.tool), Failed: a.Failed, Void: c.void, Refused: refused, Took: time.Since(c.asked)})
	if c.void {
		d.voidLocked(c)
		return
	}
	d.queueLocked(c)
}

// report logs the records of ended calls and passes them to Options.Ended. The
// connection's read goroutine must not call it, because it may write to a disk.
func (d *Desk) report() {
	d.mu.Lock()
	records := d.records
	d.records = nil
	d.mu.Unlock()
	for _, r := range records {
		level := zerolog.InfoLevel
		if r.Refused {
			level = zerolog.DebugLevel // a flood of them must not push the rest of the log out
		}
		d.log.WithLevel(level).Str("session", r.Session).Str("tool", r.Tool).Bool("failed", r.Failed).Bool("refused", r.Refused).Dur("took", r.Took).Msg("tool called")
		if d.opts.Ended != nil {
			d.opts.Ended(r)
		}
	}
}

// shownTool returns the tool's name, or "unknown" for a name that the host has invented.
func (d *Desk) shownTool(name string) string {
	if d.titles[name] == "" {
		return "unknown"
	}
	return name
}

// voidLocked notes that nobody waits for the call's answer any more, or that the answer
// has arrived.
func (d *Desk) voidLocked(c *call) {
	c.void = true
	if c.ended {
		c.answer = Answer{Failed: true, Text: lostText} // in case the host asks again
		return
	}
	if c.cancel != nil {
		c.cancel(errVoid)
	}
}

// queueLocked queues the answer, to be told on this connection.
func (d *Desk) queueLocked(c *call) {
	if d.serving == 0 || c.queued {
		return
	}
	c.queued = true
	d.outbox = append(d.outbox, c)
	change.Wake(d.tell)
}

// teller sends answers until ctx or the connection ends. It has its own goroutine,
// because the one that follows sessions may be waiting for a snapshot.
func (d *Desk) teller(ctx context.Context, conn *client.Conn) {
	for {
		for {
			chat, action, more := d.next()
			if !more {
				break
			}
			d.report()
			if _, err := conn.Dispatch(ctx, chat, action); err != nil {
				return
			}
		}
		change.Wake(d.wake)
		select {
		case <-d.tell:
		case <-conn.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// next takes a call from the outbox and notes that it is told; more is false if there is
// none.
func (d *Desk) next() (chat string, action ahp.Action, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.telling = false
	for len(d.outbox) > 0 {
		c := d.outbox[0]
		d.outbox = d.outbox[1:]
		if c.queued = false; c.void {
			continue
		}
		d.telling, c.sentOn = true, d.serving
		return c.chat, c.action(cmp.Or(d.titles[c.tool], "unknown tool")), true
	}
	return "", nil, false
}
