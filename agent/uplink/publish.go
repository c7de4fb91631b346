package uplink

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"tether/agent/flow"
	"tether/agent/output"
	"tether/agent/term"
	"tether/ahp"
)

// publisher streams one terminal over one connection. All its fields belong to the
// goroutine that calls run. The lending to which le points is shared: Link.mu guards it,
// and other goroutines advance its acknowledged offset.
type publisher struct {
	s      *session
	le     *lending
	reader *output.Reader

	due    bool // the reader has as much as wait asked for: send it without gathering more
	gather flow.Gather
	timer  *time.Timer
	acked  int64     // the acknowledged offset as of the last inflight
	heard  time.Time // when acked last grew, or text was sent while none was in transit

	window     int64     // bytes that may be in transit, see measure
	measured   time.Time // when window was last measured
	measuredAt int64     // acked at that time

	// What the host shows of the terminal, so that only changes are sent after an
	// interruption.
	open      []int // numbers of the commands that are open at the host, the outer one first
	detection bool  // the host knows that the terminal has command boundaries
	title     string
	cwd       string
	size      term.Size
	known     map[string]bool // commands that the host has, by id; true: complete

	retitled bool      // the title has changed since the host was told
	titled   time.Time // when the host was last told a title
	input    inputReport
}

func newPublisher(s *session, le *lending) *publisher {
	return &publisher{s: s, le: le, gather: flow.Gather{Little: little}, window: windowLeast}
}

// run announces the terminal and streams it. It returns nil when the exit has arrived at
// the host. Otherwise it returns an error: ctx's, the connection's, the host's refusal,
// or errSilent.
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
		var lagged *output.LaggedError
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

// begin opens p.reader, which run closes, and announces the terminal. It blocks while
// another publisher has the trial.
func (p *publisher) begin(ctx context.Context) (err error) {
	done, err := p.s.trial.wait(ctx)
	if err != nil {
		return err
	}
	defer func() { done(err == nil) }()
	// The reader comes before the announcement: from now on the holder keeps, for the
	// next daemon, the output that this one has taken and the host lacks.
	if p.reader, err = p.le.h.Reader(output.ReaderOptions{View: output.ViewOutward, Hold: true, Screens: p.s.marker.Screens}); err != nil {
		return err
	}
	return p.announce(ctx)
}

// finishedBefore reports whether nothing is left to send: on this connection, or because
// an earlier one has sent the exit.
func (p *publisher) finishedBefore() bool {
	p.s.link.mu.Lock()
	defer p.s.link.mu.Unlock()
	return p.le.finished || p.le.exited && !p.s.marker.Resume // without resume, hosts forget it with the connection
}

// step sends the next piece of text, mark or screen. If there is none, or the window has
// no room, it waits and returns nil without sending.
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

// buffer holds one piece of text and the message with it. A publisher takes one only
// while it has something to send, because most terminals wait most of the time.
type buffer struct {
	text [frame]byte
	msg  []byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// output sends one piece of text, which is in buf. It blocks while the connection's queue
// is full.
func (p *publisher) output(ctx context.Context, ev output.Event, buf *buffer) error {
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

// mark sends the action for a mark, unless the host has it already.
func (p *publisher) mark(ctx context.Context, m *output.Mark) error {
	if m.Kind == output.MarkTitle {
		p.retitled = true
		return p.tellTitle(ctx, false)
	}
	m = shown(p.le.h, m)
	switch m.Kind {
	case output.MarkCommandExecuted:
		if _, has := p.known[commandID(m.Command.N)]; has || slices.Contains(p.open, m.Command.N) {
			return nil
		}
		p.open = append(p.open, m.Command.N)
	case output.MarkCommandFinished:
		if p.known[commandID(m.Command.N)] {
			return nil
		}
		p.open = slices.DeleteFunc(p.open, func(n int) bool { return n == m.Command.N })
		p.input.moved = true // it may have changed the branch
	case output.MarkDetection:
		p.detection = true
	case output.MarkExited:
		if err := p.tellTitle(ctx, true); err != nil {
			return err
		}
	case output.MarkCwd:
		p.cwd = ahp.FileURI(m.Text)
		p.input.moved = true
	case output.MarkResized:
		p.size = m.Size
	}
	if a := actionFor(m, p.s.conn.Result().ProtocolVersion, p.s.marker.CommandActions); a != nil {
		return p.dispatch(ctx, a)
	}
	return nil
}

// dispatch sends an action after all output that was sent before.
func (p *publisher) dispatch(ctx context.Context, a ahp.Action) error {
	_, err := p.s.conn.Dispatch(ctx, p.le.uri, a)
	return err
}

// confirmExit waits until the exit, which was just sent, has arrived. It fails if the
// host has refused the exit or anything before it.
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
