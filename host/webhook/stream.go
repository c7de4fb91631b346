package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tether/events"
	"tether/host/agents"
	"tether/host/rights"
	"tether/internal/retry"
	"tether/mcp"
)

// reopenAfter is the pause before a stream is opened again that has ended although its
// subscription has not.
const reopenAfter = time.Second

// OpenAt is Options.Open for the events that agents get at a host.
func OpenAt(d *agents.Door) func(context.Context, rights.Principal, Request) (Source, bool, error) {
	return func(ctx context.Context, p rights.Principal, r Request) (Source, bool, error) {
		s := &stream{door: d, principal: p, request: r, steps: make(chan Event), ended: make(chan error, 1), active: make(chan bool, 1)}
		s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
		s.run(r.Cursor, r.MaxAge)
		select {
		case truncated := <-s.active:
			return s, truncated, nil
		case err := <-s.ended:
			s.Close()
			return nil, false, err
		case <-ctx.Done():
			s.Close()
			return nil, false, ctx.Err()
		}
	}
}

// stream is a Source of a host's events. One goroutine, which Close ends, delivers events
// to it through events.Out.
type stream struct {
	door      *agents.Door
	principal rights.Principal
	request   Request
	ctx       context.Context
	cancel    context.CancelFunc

	steps  chan Event // unbuffered: the engine waits until the last event was delivered
	active chan bool  // sent when the beginning of the stream is known: whether events were lost; holds one
	ended  chan error // the error with which it has ended; holds one

	begin  *string // the first cursor; set before active
	opened bool    // owned by the goroutine that delivers
	cursor *string // owned by Next: the last position
}

// run starts the goroutine that delivers events, from a cursor on.
func (s *stream) run(cursor *string, maxAge time.Duration) {
	r := &events.Request{Name: s.request.Name, Arguments: s.request.Arguments, Only: s.request.Terminals, Cursor: cursor}
	if maxAge > 0 {
		r.MaxAge = &maxAge
	}
	go func() { s.ended <- s.door.Stream(s.ctx, s.principal, r, s) }()
}

// Cursor implements Source.
func (s *stream) Cursor() *string { return s.begin }

// Close implements Source.
func (s *stream) Close() { s.cancel() }

// Next implements Source.
func (s *stream) Next(ctx context.Context) (Event, error) {
	for {
		select {
		case ev := <-s.steps:
			s.cursor = ev.Cursor
			return ev, nil
		case err := <-s.ended:
			if why, ok := errors.AsType[*events.Error](err); ok {
				return Event{}, &EndedError{mcp.ErrorObject(why, s.request.Declared)}
			}
			if err == nil {
				return Event{}, &EndedError{} // no more events can follow
			}
			if !retry.Wait(ctx, reopenAfter) { // the engine was closed to make room
				return Event{}, ctx.Err()
			}
			if s.cursor == nil {
				s.cursor = s.begin
			}
			s.run(s.cursor, 0)
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// hand passes a step to Next.
func (s *stream) hand(ev Event) error {
	select {
	case s.steps <- ev:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// Active implements events.Out.
func (s *stream) Active(cursor string, truncated bool) error {
	if !s.opened {
		s.opened, s.begin = true, &cursor
		s.active <- truncated
		return nil
	}
	if !truncated {
		return nil
	}
	return s.hand(Event{Gap: true, Cursor: &cursor})
}

// Event implements events.Out.
func (s *stream) Event(ev events.Event) error {
	body, err := json.Marshal(ev)
	if err != nil {
		return err
	}
	return s.hand(Event{ID: ev.ID, Body: body, Cursor: ev.Cursor})
}

// Heartbeat implements events.Out.
func (s *stream) Heartbeat(cursor string) error { return s.hand(Event{Cursor: &cursor}) }
