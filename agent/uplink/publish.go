package uplink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"tether/agent/term"
	"tether/ahp"
	"tether/jsonrpc"
)

const (
	// window is how much text of one terminal may be on its way, in bytes.
	// It decides how long another terminal's echo waits behind a flood.
	window = 64 << 10
	// frame is the most text in one action, in bytes.
	frame = 32 << 10
	// little is what may be on its way, or have been sent within the last
	// pause, for the next text to go out at once, in bytes: echo and prompts.
	// Beyond it text gathers to gather bytes until an acknowledgement comes
	// and the pause is over: a near host answers each read of the pty before
	// the next one, and tiny frames cost a flood twice the CPU.
	little = 2 << 10
	gather = 32 << 10
	pause  = 2 * time.Millisecond
	// ackTimeout bounds the wait for the position after an announcement.
	ackTimeout = 5 * time.Second
)

// publisher streams one terminal over one connection. Its fields are owned by
// the goroutine that calls run.
type publisher struct {
	s      *session
	le     *lending
	reader *term.Reader
	text   [frame]byte
	msg    []byte

	due    bool      // the reader has something that need not gather
	burst  int       // bytes of text sent without a pause
	sentAt time.Time // when the last of them went
	timer  *time.Timer

	// What the host shows, to send only changes after an interruption.
	open  int // number of the command that is open there, 0 for none
	title string
	cwd   string
	size  term.Size
	known map[string]bool // commands the host has; value: complete
}

func newPublisher(s *session, le *lending) *publisher {
	return &publisher{s: s, le: le}
}

// run announces the terminal and streams it until its exit has arrived, ctx
// ends or the host refuses it.
func (p *publisher) run(ctx context.Context) error {
	if p.finishedBefore() {
		return nil
	}
	if err := p.announce(ctx); err != nil || p.finishedBefore() {
		return err
	}
	reader, err := p.le.h.Reader(term.ReaderOptions{View: term.ViewText, Hold: true})
	if err != nil {
		return err
	}
	defer reader.Close()
	p.reader = reader
	if err := p.place(ctx); err != nil {
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

// finishedBefore reports whether nothing is left to be said.
func (p *publisher) finishedBefore() bool {
	p.s.link.mu.Lock()
	defer p.s.link.mu.Unlock()
	return p.le.over
}

// announce creates the terminal at the host, or takes it up again, and checks
// that the host understood.
func (p *publisher) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info := p.le.h.Info()
	p.s.link.update(p.le, func(le *lending) { le.created, le.ackSeen, le.problem = true, false, "" })
	cols, rows := int64(info.Size.Cols), int64(info.Size.Rows)
	p.title, p.cwd, p.size = info.Title, fileURI(info.Cwd), info.Size
	replay := false
	err := p.s.conn.CreateTerminal(ctx, ahp.CreateTerminalParams{
		Channel: p.le.uri, Claim: ahp.ClientClaim(p.s.link.opts.ClientID), Name: info.Title,
		Cwd: fileURI(info.Cwd), Cols: &cols, Rows: &rows, ExecutionTarget: ahp.TargetClient,
	})
	switch {
	case exists(err) && p.s.marker.Resume:
		p.rename() // somebody else has the URI
	case exists(err):
		err, replay = nil, true // a host that has not noticed the loss
	}
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused {
		p.s.link.update(p.le, func(le *lending) { le.created = false })
	}
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	state, err := p.guard(ctx)
	if err != nil {
		return err
	}
	if p.s.marker.Resume && state.Lifecycle.Exited() && info.Exit != nil {
		p.s.link.update(p.le, func(le *lending) { le.over, le.exited = true, true })
		return nil // the exit was the last that we sent
	}
	p.adopt(state)
	if replay && !p.s.marker.Resume {
		if err := p.dispatch(ctx, ahp.TerminalCleared{}); err != nil {
			return err
		}
		p.open, p.known = 0, nil
	}
	return nil
}

// rename gives the terminal another URI for the next attempt.
func (p *publisher) rename() {
	p.s.link.update(p.le, func(le *lending) {
		le.uri, le.created = ahp.NewTerminalURI(newUUID()), false
		le.acked, le.sent = 0, 0
	})
}

func exists(err error) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e) && e.Code == ahp.CodeAlreadyExists
}

// guard reads the terminal back. A host that does not know executionTarget
// ignores it and starts a shell of its own: that must not live on.
func (p *publisher) guard(ctx context.Context) (ahp.TerminalState, error) {
	var state ahp.TerminalState
	r, err := p.s.conn.Subscribe(ctx, p.le.uri)
	if err == nil && r.Snapshot != nil {
		err = json.Unmarshal(r.Snapshot.State, &state)
	}
	if err == nil && state.ExecutionTarget == ahp.TargetClient {
		return state, nil
	}
	if e := p.s.conn.DisposeTerminal(ctx, p.le.uri); e != nil {
		return state, fmt.Errorf("dispose of a terminal that the host runs itself: %w", e)
	}
	p.s.link.update(p.le, func(le *lending) { le.created = false })
	if err != nil {
		return state, fmt.Errorf("read back: %w", err)
	}
	p.s.fail(errWrongTarget)
	return state, errWrongTarget
}

// adopt learns from the snapshot what the host shows already.
func (p *publisher) adopt(state ahp.TerminalState) {
	p.known = map[string]bool{}
	for _, part := range state.Content {
		if part.Type != ahp.PartCommand {
			continue
		}
		p.known[part.CommandID] = part.IsComplete
		if !part.IsComplete {
			fmt.Sscanf(part.CommandID, "cmd-%d", &p.open)
		}
	}
	if state.Title != "" {
		p.title = state.Title
	}
	if state.Cwd != "" {
		p.cwd = state.Cwd
	}
}

// place moves the reader to what the host does not have yet.
func (p *publisher) place(ctx context.Context) error {
	if !p.s.marker.Resume {
		p.s.link.update(p.le, func(le *lending) { le.acked, le.sent = 0, 0 })
		p.reader.SeekText(0)
		return nil
	}
	timeout := time.NewTimer(ackTimeout)
	defer timeout.Stop()
	for {
		p.s.link.mu.Lock()
		seen, at := p.le.ackSeen, p.le.acked
		if seen {
			p.le.sent = at
		}
		p.s.link.mu.Unlock()
		if seen && !p.reader.SeekText(at) {
			return p.disown(ctx, at)
		}
		if seen {
			return nil
		}
		select {
		case <-p.le.acks:
		case <-timeout.C:
			return errors.New("the host did not say how much it has")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// disown leaves a terminal at a host that claims to have more of it than was
// ever printed: what is sent there would be dropped as known already.
func (p *publisher) disown(ctx context.Context, claimed int64) error {
	err := p.s.conn.DisposeTerminal(ctx, p.le.uri)
	p.rename()
	return errors.Join(fmt.Errorf("the host claims to have %d bytes, more than were printed; it gets them anew", claimed), err)
}

// step sends the next piece or mark, waiting for it or for room.
func (p *publisher) step(ctx context.Context) error {
	inflight, problem := p.inflight()
	if problem != "" {
		return errors.New(problem)
	}
	room := min(window-inflight, frame, p.maxData())
	least, rest := p.least(inflight)
	if room <= 0 || least > 1 && !p.due && p.reader.Pending() < least {
		return p.wait(ctx, inflight, least, rest)
	}
	p.due = false
	ev, ok, err := p.reader.TryNext(p.text[:max(room, 64)])
	switch {
	case err != nil:
		return err
	case !ok:
		return p.wait(ctx, inflight, 1, 0)
	case ev.Mark != nil:
		return p.mark(ctx, ev.Mark)
	}
	return p.output(ctx, ev)
}

func (p *publisher) inflight() (int64, string) {
	p.s.link.mu.Lock()
	defer p.s.link.mu.Unlock()
	return p.le.sent - p.le.acked, p.le.problem
}

func (p *publisher) maxData() int64 {
	if n := p.s.marker.MaxDataBytes; n > 0 {
		return n
	}
	return frame
}

// least is how many bytes are worth a frame now. If that changes by itself,
// it does so after rest.
func (p *publisher) least(inflight int64) (n int64, rest time.Duration) {
	if inflight > little {
		return gather, 0
	}
	if p.burst <= little {
		return 1, 0
	}
	if rest = pause - time.Since(p.sentAt); rest > 0 {
		return gather, rest
	}
	return 1, 0
}

// wait returns when there may be something to do again: least bytes, a mark
// or room, or after rest if that is not 0.
func (p *publisher) wait(ctx context.Context, inflight, least int64, rest time.Duration) error {
	if inflight > 0 && !p.s.marker.Resume {
		return p.barrier(ctx) // no acknowledgement comes by itself
	}
	var ready <-chan struct{}
	if inflight < window {
		ready = p.reader.Ready(int(least))
	}
	var rested <-chan time.Time
	if rest > 0 {
		rested = p.after(rest)
		defer p.timer.Stop()
	}
	select {
	case <-ready:
		p.due = true
	case <-p.le.acks:
	case <-rested:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// after is time.After with one timer for all.
func (p *publisher) after(d time.Duration) <-chan time.Time {
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	return p.timer.C
}

// barrier proves by a ping that everything sent has arrived, for hosts that
// do not acknowledge. The ping goes the same way as the output.
func (p *publisher) barrier(ctx context.Context) error {
	p.s.link.mu.Lock()
	sent := p.le.sent
	p.s.link.mu.Unlock()
	if err := p.s.conn.Peer().CallBulk(ctx, ahp.MethodPing, ahp.PingParams{Channel: ahp.RootURI}, nil); err != nil {
		return err
	}
	p.s.link.update(p.le, func(le *lending) { le.acked = sent })
	return nil
}

// output sends one piece of text.
func (p *publisher) output(ctx context.Context, ev term.Event) error {
	offset := int64(-1)
	if p.s.marker.Resume {
		offset = ev.Off
	}
	p.msg = ahp.AppendOutput(p.msg[:0], p.le.uri, p.s.conn.NextSeq(), ev.Data, offset)
	p.s.link.update(p.le, func(le *lending) { le.sent = ev.Off + int64(len(ev.Data)) })
	now := time.Now()
	if now.Sub(p.sentAt) >= pause {
		p.burst = 0
	}
	p.burst, p.sentAt = p.burst+len(ev.Data), now
	return p.s.conn.Peer().SendRaw(ctx, p.msg)
}

// mark sends what a mark means, unless the host shows it already.
func (p *publisher) mark(ctx context.Context, m *term.Mark) error {
	switch m.Kind {
	case term.MarkCommandExecuted:
		if _, has := p.known[commandID(m.Command.N)]; has || m.Command.N == p.open {
			return nil
		}
		p.open = m.Command.N
	case term.MarkCommandFinished:
		if p.known[commandID(m.Command.N)] {
			return nil
		}
		p.open = 0
	case term.MarkTitle:
		p.title = m.Text
	case term.MarkCwd:
		p.cwd = fileURI(m.Text)
	case term.MarkResized:
		p.size = m.Size
	}
	if a := actionFor(m, p.s.marker.CommandActions); a != nil {
		return p.dispatch(ctx, a)
	}
	return nil
}

// dispatch sends an action behind the output before it.
func (p *publisher) dispatch(ctx context.Context, a ahp.Action) error {
	_, err := p.s.conn.Dispatch(ctx, p.le.uri, a)
	return err
}

// skipped makes a loss visible and brings the host's view of everything that
// is not text up to date.
func (p *publisher) skipped(ctx context.Context, e *term.LaggedError) error {
	p.s.link.update(p.le, func(le *lending) {
		le.lost += e.Lost
		if !p.s.marker.Resume {
			le.sent, le.acked = e.At, e.At
		}
	})
	var actions []ahp.Action
	if p.open != 0 && (e.Open == nil || e.Open.N != p.open) {
		actions = append(actions, p.closing())
	}
	if e.Open != nil && e.Open.N != p.open {
		p.open = e.Open.N
		actions = append(actions, executed(*e.Open))
	}
	if !p.s.marker.CommandActions {
		actions = nil
	}
	info := p.le.h.Info()
	if info.Title != p.title {
		p.title = info.Title
		actions = append(actions, ahp.TerminalTitleChanged{Title: info.Title})
	}
	if cwd := fileURI(info.Cwd); cwd != p.cwd && cwd != "" {
		p.cwd = cwd
		actions = append(actions, ahp.TerminalCwdChanged{Cwd: cwd})
	}
	if info.Size != p.size {
		p.size = info.Size
		actions = append(actions, resized(info.Size))
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
	p.msg = ahp.AppendOutput(p.msg[:0], p.le.uri, p.s.conn.NextSeq(), []byte(line), -1)
	return p.s.conn.Peer().SendRaw(ctx, p.msg)
}

// closing finishes the command that is open at the host but ended in the
// part that was lost.
func (p *publisher) closing() ahp.Action {
	last := term.Command{N: p.open}
	p.open = 0
	if commands, err := p.le.h.Commands(); err == nil {
		for _, c := range commands {
			if c.N == last.N {
				last = c
			}
		}
	}
	return finished(last)
}

// confirmExit waits until the exit, which was just sent, has arrived.
func (p *publisher) confirmExit(ctx context.Context) error {
	if err := p.barrier(ctx); err != nil {
		return err
	}
	p.s.link.update(p.le, func(le *lending) { le.over, le.exited = true, true })
	return nil
}
