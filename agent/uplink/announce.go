package uplink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tether/agent/term"
	"tether/ahp"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
)

// ackTimeout bounds the wait for the host's first acknowledgement after an announcement,
// see place.
const ackTimeout = 5 * time.Second

// announce creates the terminal at the host, or resumes it there, and checks that the
// host treats it as a client-executed one.
func (p *publisher) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	seen, err := p.lookup(ctx)
	if err != nil {
		return err
	}
	if err := p.le.h.SaveLinkState(ctx, p.le.uri); err != nil { // before the host knows the URI
		return fmt.Errorf("keep the terminal's URI: %w", err)
	}
	info := p.info()
	meta, err := p.addAudience(ahp.AddCommands(ahp.AddTime(ahp.NewTerminalMeta(p.le.former, info.Holds), ahp.CreatedKey, info.Started), p.endedCommands()))
	if err != nil {
		return err
	}
	meta = ahp.AddCheckout(meta, p.checkout())
	if a := info.Adopted; a != nil {
		meta = ahp.AddAdopted(meta, a.Program, !a.Exact)
	}
	p.s.link.update(p.le, func(le *lending) { le.created, le.ackSeen, le.problem = true, false, "" })
	cols, rows := int64(info.Size.Cols), int64(info.Size.Rows)
	p.title, p.cwd, p.size = info.Title, ahp.FileURI(info.Cwd), info.Size
	replay := false
	err = p.s.conn.CreateTerminal(ctx, ahp.CreateTerminalParams{
		Channel: p.le.uri, Claim: ahp.ClientClaim(p.s.link.opts.ClientID), Name: info.Title,
		Cwd: ahp.FileURI(info.Cwd), Cols: &cols, Rows: &rows, ExecutionTarget: ahp.TargetClient, Meta: meta,
	})
	switch {
	case exists(err) && p.s.marker.Resume:
		p.rename() // another client has the URI
	case exists(err):
		err, replay = nil, true // an earlier attempt on this connection has announced it
	}
	_, refused := errors.AsType[*jsonrpc.Error](err)
	if refused && p.s.trial.turn != nil {
		err = errors.Join(err, p.remove(ctx, nil)) // it may exist although it was refused: hosts have several codes for that
	}
	if refused {
		p.s.link.update(p.le, func(le *lending) { le.created = false })
	}
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	state, err := p.guard(ctx, seen)
	if err != nil {
		return err
	}
	if p.s.marker.Resume && state.Lifecycle.Exited() && info.Exit != nil {
		p.over()
		return nil // the host has the exit, and so everything
	}
	p.takeState(state)
	if replay && !p.s.marker.Resume {
		if err := p.dispatch(ctx, ahp.TerminalCleared{}); err != nil {
			return err
		}
		p.open, p.known, p.detection = nil, nil, false
	}
	return nil
}

// endedCommands returns how many commands of the shell have ended.
func (p *publisher) endedCommands() int64 {
	all, err := p.le.h.Commands()
	if err != nil {
		return 0
	}
	last, open := 0, 0
	for _, c := range all {
		last = max(last, c.N)
		if c.Running {
			open++
		}
	}
	return int64(last - open)
}

// lookup returns the host's state of a terminal that an earlier connection announced, nil
// if unknown. If the host has ended the terminal, lookup gives it another URI, because
// everybody there was told that the old one has exited. A host that has merely forgotten
// everything has told nobody; there the terminal keeps its URI.
func (p *publisher) lookup(ctx context.Context) (*ahp.TerminalState, error) {
	p.s.link.mu.Lock()
	before := p.le.before
	p.s.link.mu.Unlock()
	switch {
	case !before:
		return nil, nil
	case !p.s.marker.Resume:
		p.replace()
		return nil, nil
	}
	state, err := p.read(ctx)
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case err == nil:
		return &state, nil
	case errors.Is(err, jsonrpc.ErrClosed), ctx.Err() != nil:
		return nil, err
	case !ok || !ahp.IsGone(int64(refused.Code)):
		return nil, nil // if something is wrong, the announcement will fail
	}
	_, knows := p.s.conn.Resumed()
	grace := time.Duration(p.s.marker.GraceMs) * time.Millisecond
	ended := knows || p.s.left.IsZero() || p.s.began.Sub(p.s.left) >= grace
	p.s.link.update(p.le, func(le *lending) {
		le.before = false
		if ended {
			le.renewLocked(le.uri)
		}
	})
	return nil, nil
}

// replace gives the terminal another URI at a host without resume, and arranges the
// disposal of the old one. Such a host ends the terminals of an earlier connection when
// it discovers that the connection is dead, perhaps minutes later. So the end of the old
// URI says nothing about the terminal, while the end of the new one is a disposal.
func (p *publisher) replace() {
	p.s.link.mu.Lock()
	p.s.link.retired = append(p.s.link.retired, p.le.uri)
	p.le.renewLocked(p.le.uri)
	p.s.link.mu.Unlock()
	p.s.rouse()
}

// rename gives the terminal another URI for the next attempt.
func (p *publisher) rename() {
	p.s.link.update(p.le, func(le *lending) { le.renewLocked(le.former) })
}

func exists(err error) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e) && e.Code == ahp.CodeAlreadyExists
}

// read returns the host's present state of the terminal.
func (p *publisher) read(ctx context.Context) (state ahp.TerminalState, err error) {
	r, err := p.s.conn.Subscribe(ctx, p.le.uri)
	if err == nil && r.Snapshot != nil {
		err = jsonspan.Unmarshal(r.Snapshot.State, &state)
	}
	return state, err
}

// guard reads the announced terminal's state, unless a host with resume has just reported
// it (seen). A host that does not know executionTarget ignores it and starts a shell of
// its own, which guard removes.
func (p *publisher) guard(ctx context.Context, seen *ahp.TerminalState) (ahp.TerminalState, error) {
	if seen != nil && p.s.marker.Resume && seen.ExecutionTarget == ahp.TargetClient {
		return *seen, nil
	}
	state, err := p.read(ctx)
	if err == nil && state.ExecutionTarget == ahp.TargetClient {
		return state, nil
	}
	removed := p.remove(ctx, &state)
	if err != nil {
		return state, errors.Join(fmt.Errorf("read back: %w", err), removed)
	}
	p.s.fail(errWrongTarget)
	return state, errWrongTarget
}

// takeState records what the host shows of the terminal, from a snapshot.
func (p *publisher) takeState(state ahp.TerminalState) {
	p.open, p.known, p.detection = nil, map[string]bool{}, state.SupportsCommandDetection
	for _, part := range state.Content {
		if part.Type != ahp.PartCommand {
			continue
		}
		p.known[part.CommandID] = part.IsComplete
		if !part.IsComplete {
			var n int
			fmt.Sscanf(part.CommandID, "cmd-%d", &n)
			p.open = append(p.open, n)
		}
	}
	if state.Title != "" {
		p.title = state.Title
	}
	// Send the title again. Titles wait for titlePause while output does not, so the
	// title's mark may be before the text that the host has. Or the host may have kept
	// the title of the announcement.
	p.retitled = true
	if state.Cwd != "" {
		p.cwd = state.Cwd
	}
}

// place moves the reader to the output that the host lacks.
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

// disown disposes of a terminal at a host that claims to have more of it than was ever
// printed, and gives it another URI. Otherwise the host would drop later output as
// already known.
func (p *publisher) disown(ctx context.Context, claimed int64) error {
	err := p.s.conn.DisposeTerminal(ctx, p.le.uri)
	p.s.link.update(p.le, func(le *lending) { le.renewLocked(le.uri) })
	return errors.Join(fmt.Errorf("the host acknowledged %d bytes, more than were printed; all are sent again", claimed), err)
}

// noteAnnounced records that the host has the terminal under its URI.
func (l *Link) noteAnnounced(le *lending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	le.shown, le.there = true, true
	l.roseLocked()
}

// Announced returns the URI under which the host has the terminal, and its title there.
// It waits until the host has it; ok is false if ctx ends before.
func (l *Link) Announced(ctx context.Context, id term.ID) (uri, title string, ok bool) {
	for {
		l.mu.Lock()
		le, next := l.lendings[id], l.announced.Next()
		if le != nil && le.shown {
			uri = le.uri
		}
		l.mu.Unlock()
		if uri != "" {
			return uri, outward(le.h).Title, true
		}
		select {
		case <-next:
		case <-ctx.Done():
			return "", "", false
		}
	}
}
