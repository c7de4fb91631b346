package uplink

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"tether/agent/flow"
	"tether/agent/term"
	"tether/ahp"
)

// publisher streams one terminal over one connection. Its fields are owned by the goroutine that calls run; what le points to is shared,
// see lending.
type publisher struct {
	s      *session
	le     *lending
	reader *term.Reader

	due    bool // the reader has something that need not gather
	gather flow.Gather
	timer  *time.Timer
	acked  int64     // the host's last acknowledgement
	heard  time.Time // when that changed, or text was sent with none on its way

	window     int64     // see measure
	measured   time.Time // when it was measured last,
	measuredAt int64     // the acknowledged offset then

	// The host's display, to send only changes after an interruption.
	open      []int // numbers of the commands that are open there, the outer one first
	detection bool  // that there are command boundaries
	title     string
	cwd       string
	size      term.Size
	known     map[string]bool // commands the host has; value: complete

	retitled bool      // the title has changed since the host was told
	titled   time.Time // when it was told last
	input    inputReport
}

func newPublisher(s *session, le *lending) *publisher {
	return &publisher{s: s, le: le, gather: flow.Gather{Little: little}, window: windowLeast}
}

// run announces the terminal and streams it until its exit has arrived, ctx ends or the host refuses it.
func (p *publisher) run(ctx context.Context) error {
	if p.finishedBefore() {
		return nil
	}
	err := p.begin(ctx)
	if p.reader != nil {
		defer p.reader.Close()
	}
	if err != nil || p.finishedBefore() {
		return err
	}
	p.s.link.noteAnnounced(p.le)
	if err := p.place(ctx); err != nil {
		return err
	}
	if err := p.tellSize(ctx, p.reader.Size()); err != nil {
		return err
	}
	for {
		err := p.step(ctx)
		var lagged *term.LaggedError
		switch {
		case err == nil:
		case errors.As(err, &lagged):
			err = p.skipped(ctx, lagged)
		case errors.Is(err, io.EOF):
			return p.confirmExit(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// begin announces the terminal when it may, with a reader that run closes.
func (p *publisher) begin(ctx context.Context) (err error) {
	done, err := p.s.trial.wait(ctx)
	if err != nil {
		return err
	}
	defer func() { done(err == nil) }()
	// Before the host hears of the terminal: from now on its holder keeps what this daemon takes, for the next one.
	if p.reader, err = p.le.h.Reader(term.ReaderOptions{View: term.ViewOutward, Hold: true, Screens: p.s.marker.Screens}); err != nil {
		return err
	}
	return p.announce(ctx)
}

// finishedBefore reports whether nothing is left to send.
func (p *publisher) finishedBefore() bool {
	p.s.link.mu.Lock()
	defer p.s.link.mu.Unlock()
	return p.le.finished || p.le.exited && !p.s.marker.Resume // such a host has forgotten it with the connection on which it heard
}

// step sends the next piece or mark, waiting for it or for room.
func (p *publisher) step(ctx context.Context) error {
	inflight, problem, stale := p.inflight()
	if problem != "" {
		return errors.New(problem)
	}
	if stale {
		if err := p.s.tellAudience(ctx, p.le); err != nil {
			return err
		}
	}
	if err := p.tellTitle(ctx, false); err != nil {
		return err
	}
	if err := p.tellInput(ctx); err != nil {
		return err
	}
	p.measure()
	room := p.room(inflight)
	size, _ := p.bounds()
	least, pause := p.gather.Least(inflight, size)
	if room <= 0 || least > 1 && !p.due && p.reader.Pending() < least {
		return p.wait(ctx, inflight, least, pause)
	}
	p.due = false
	buf := buffers.Get().(*buffer)
	ev, ok, err := p.reader.TryNext(buf.text[:max(room, 64)])
	if err == nil && ok && ev.Mark == nil && ev.Screen == nil {
		err = p.output(ctx, ev, buf)
		buffers.Put(buf)
		return err
	}
	buffers.Put(buf)
	switch {
	case err != nil:
		return err
	case !ok:
		return p.wait(ctx, inflight, 1, 0)
	case ev.Screen != nil:
		return p.draw(ctx, ev)
	}
	return p.mark(ctx, ev.Mark)
}

// buffer holds one piece of text and the message that it becomes. It is taken while there is something to send: most terminals wait most of
// the time.
type buffer struct {
	text [frame]byte
	msg  []byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// output sends one piece of text, which lies in buf.
func (p *publisher) output(ctx context.Context, ev term.Event, buf *buffer) error {
	offset := int64(-1)
	if p.s.marker.Resume {
		offset = ev.Off
	}
	buf.msg = ahp.AppendOutput(buf.msg[:0], p.le.uri, p.s.conn.NextSeq(), ev.Data, offset)
	now := time.Now()
	p.s.link.update(p.le, func(le *lending) {
		if le.sent == le.acked {
			p.heard = now
		}
		le.sent = ev.Off + int64(len(ev.Data))
	})
	p.gather.Sent(len(ev.Data), now)
	return p.s.conn.Peer().SendRaw(ctx, buf.msg)
}

// mark sends a mark's action, unless the host shows it already.
func (p *publisher) mark(ctx context.Context, m *term.Mark) error {
	if m.Kind == term.MarkTitle {
		p.retitled = true
		return p.tellTitle(ctx, false)
	}
	m = shown(p.le.h, m)
	switch m.Kind {
	case term.MarkCommandExecuted:
		if _, has := p.known[commandID(m.Command.N)]; has || slices.Contains(p.open, m.Command.N) {
			return nil
		}
		p.open = append(p.open, m.Command.N)
	case term.MarkCommandFinished:
		if p.known[commandID(m.Command.N)] {
			return nil
		}
		p.open = slices.DeleteFunc(p.open, func(n int) bool { return n == m.Command.N })
	case term.MarkDetection:
		p.detection = true
	case term.MarkExited:
		if err := p.tellTitle(ctx, true); err != nil {
			return err
		}
	case term.MarkCwd:
		p.cwd = ahp.FileURI(m.Text)
	case term.MarkResized:
		p.size = m.Size
	}
	if a := actionFor(m, p.s.conn.Result().ProtocolVersion, p.s.marker.CommandActions); a != nil {
		return p.dispatch(ctx, a)
	}
	return nil
}

// dispatch sends an action behind the output before it.
func (p *publisher) dispatch(ctx context.Context, a ahp.Action) error {
	_, err := p.s.conn.Dispatch(ctx, p.le.uri, a)
	return err
}

// confirmExit waits until the exit, which was just sent, has arrived, and the host has refused neither it nor anything before it.
func (p *publisher) confirmExit(ctx context.Context) error {
	if err := p.barrier(ctx); err != nil {
		return err
	}
	if _, problem, _ := p.inflight(); problem != "" {
		return errors.New(problem)
	}
	p.over()
	return nil
}

// over records that the host has the exit: nothing is left to send for this terminal.
func (p *publisher) over() {
	p.s.link.update(p.le, func(le *lending) { le.finished, le.exited = true, true })
	p.le.h.Heard()
}
