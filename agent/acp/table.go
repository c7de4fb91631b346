package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tether/agent/ring"
)

const (
	// maxTerminals bounds the terminals that an agent has not released. To create one
	// more, the proxy releases the oldest one that has ended.
	maxTerminals = 256
	// maxTombs bounds the released terminals that are remembered. Agents show a released
	// terminal again at the end of its tool call.
	maxTombs = 256
	// tombBytes bounds the text that is kept of each released terminal, in bytes.
	tombBytes = 16 << 10
	// killWithin bounds the wait for a kill. The daemon needs time for its grace period
	// and for its search for remaining processes.
	killWithin = 15 * time.Second
	// hearWithin bounds the wait for the exit event after a kill.
	hearWithin = 2 * time.Second
	// closeWithin bounds the wait for all kills in close.
	closeWithin = 10 * time.Second
)

// table holds the agent's terminals.
//
// Goroutines: one per terminal, which follows it. close waits for all of them.
type table struct {
	// Set at construction.
	terminals Terminals
	ansi      bool
	ctx       context.Context // for the followers
	cancel    context.CancelFunc
	followers sync.WaitGroup

	mu     sync.Mutex
	made   int                  // terminals so far
	live   map[string]*terminal // not released
	tombs  map[string]*terminal // released, see maxTombs
	order  []string             // keys of tombs, the oldest first
	closed bool
	making sync.WaitGroup // spawns under way
}

func newTable(t Terminals, ansi bool) *table {
	ctx, cancel := context.WithCancel(context.Background())
	return &table{terminals: t, ansi: ansi, ctx: ctx, cancel: cancel, live: map[string]*terminal{}, tombs: map[string]*terminal{}}
}

// create starts a command. It tries each of commands in turn until one can be started,
// and returns the index of the last one that it tried. If ctx ends first, it fails and
// leaves nothing running.
func (tb *table) create(ctx context.Context, p *createParams, commands []Command, viewed bool) (t *terminal, ran int, err error) {
	if err := tb.begin(); err != nil {
		return nil, 0, err
	}
	defer tb.making.Done()
	var id string
	for i, c := range commands {
		id, err = tb.terminals.Spawn(ctx, c)
		var failure *Failure
		ran = i
		if !errors.As(err, &failure) || failure.Kind != CannotStart {
			break
		}
	}
	if err != nil {
		return nil, ran, err
	}
	t = newTerminal(id, p, commands[ran].Cwd, tb.ansi, viewed)
	if !tb.add(t) {
		ctx, cancel := context.WithTimeout(context.Background(), killWithin)
		defer cancel()
		return nil, ran, cmp.Or(tb.terminals.Kill(ctx, id), context.Canceled)
	}
	return t, ran, nil
}

// begin counts a spawn. It fails if there are too many terminals or the table is closed.
// After a success, the caller calls making.Done.
func (tb *table) begin() error {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.closed {
		return context.Canceled
	}
	if len(tb.live) >= maxTerminals && !tb.makeRoomLocked() {
		return &Failure{Kind: Denied, Message: fmt.Sprintf("%d terminals are running, the maximum", len(tb.live)),
			Hint: "end some of them with terminal/kill or terminal/release"}
	}
	tb.making.Add(1)
	return nil
}

// makeRoomLocked releases the oldest terminal that has ended. It returns false if none
// has ended.
func (tb *table) makeRoomLocked() bool {
	var oldest *terminal
	for _, t := range tb.live {
		if t.hasEnded() && (oldest == nil || t.number < oldest.number) {
			oldest = t
		}
	}
	if oldest == nil {
		return false
	}
	tb.releaseLocked(oldest)
	oldest.update(oldest.buryLocked)
	return true
}

// add lists the terminal and starts the goroutine that follows it. It returns false if
// the table is closed.
func (tb *table) add(t *terminal) bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.closed {
		return false
	}
	ctx, cancel := context.WithCancel(tb.ctx)
	t.unfollow = cancel
	tb.made++
	t.number = tb.made
	tb.live[t.id] = t
	tb.followers.Go(func() {
		defer cancel()
		t.follow(ctx, tb.terminals)
	})
	return true
}

// find returns the terminal with that id if it belongs to the session and was not
// released.
func (tb *table) find(session, id string) (*terminal, error) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if t := tb.live[id]; t != nil && t.session == session {
		return t, nil
	}
	if t := tb.tombs[id]; t != nil && t.session == session {
		return nil, &Failure{Kind: Gone, Message: fmt.Sprintf("terminal %.80q was released", id)}
	}
	return nil, &Failure{Kind: Gone, Message: fmt.Sprintf("no terminal %.80q in this session", id)}
}

// shown returns the terminal with that id for display in the editor, even if it was
// released. It returns nil if the session has none.
func (tb *table) shown(session, id string) *terminal {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	t := tb.live[id]
	if t == nil {
		t = tb.tombs[id]
	}
	if t == nil || t.session != session {
		return nil
	}
	return t
}

// release makes the terminal unusable for the agent. The caller must then call end, which
// kills it.
func (tb *table) release(t *terminal) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.live[t.id] != nil {
		tb.releaseLocked(t)
	}
}

func (tb *table) releaseLocked(t *terminal) {
	delete(tb.live, t.id)
	tb.tombs[t.id] = t
	tb.order = append(tb.order, t.id)
	if len(tb.order) > maxTombs {
		delete(tb.tombs, tb.order[0])
		tb.order = tb.order[1:]
	}
}

// end kills a released terminal. It returns when the exit is known or the kill failed.
func (tb *table) end(t *terminal) {
	if err := tb.kill(t); err != nil {
		close(t.given)
		t.unfollow() // the person owns the terminal now, or it is lost: the agent may not see further output
	}
	t.update(t.buryLocked)
}

// buryLocked frees the output of a released terminal, except for the last part, which the
// editor may still show.
func (t *terminal) buryLocked() {
	t.out = t.out.shrunk(tombBytes)
	if t.view != nil && !t.streamed {
		from := max(t.view.Start(), t.view.End()-tombView)
		small := ring.NewAt(tombView, from)
		a, b := t.view.Slices(from, tombView)
		small.Append(a)
		small.Append(b)
		t.view = small
	}
}

// kill ends the process tree and waits for the exit event, at most hearWithin.
func (tb *table) kill(t *terminal) error {
	if t.hasEnded() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), killWithin)
	defer cancel()
	err := tb.terminals.Kill(ctx, t.id)
	if failure, ok := errors.AsType[*Failure](err); ok && failure.Kind == Gone {
		t.lose(terminalGone)
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case <-t.ended:
	case <-time.After(hearWithin):
		t.lose("the command was killed; its last output is missing")
	}
	return nil
}

// of returns the live terminals of a session.
func (tb *table) of(session string) (some []*terminal) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, t := range tb.live {
		if t.session == session {
			some = append(some, t)
		}
	}
	return some
}

// close kills all terminals that still run, and returns when no goroutine follows a
// terminal any more.
func (tb *table) close() {
	tb.mu.Lock()
	tb.closed = true
	all := slices.AppendSeq(slices.Collect(maps.Values(tb.live)), maps.Values(tb.tombs))
	tb.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends when the daemon has answered, at the latest after killWithin
		defer close(done)
		var wg sync.WaitGroup
		for _, t := range all {
			wg.Go(func() { _ = tb.kill(t) }) // fails if the terminal is the person's by now, or the daemon is gone
		}
		wg.Wait()
		tb.making.Wait()
	}()
	select {
	case <-done:
	case <-time.After(closeWithin):
	}
	tb.cancel()
	tb.followers.Wait()
}
