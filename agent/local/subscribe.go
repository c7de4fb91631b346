package local

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agenttools"
	"tether/events"
)

// maxSubscriptions bounds the subscriptions of one request.
const maxSubscriptions = events.DefaultStreams

// subscribe streams events as lines of JSON.
func (s *Server) subscribe(w http.ResponseWriter, r *http.Request, req localapi.EventsRequest) error {
	if n := len(req.Subscriptions); n < 1 || n > maxSubscriptions {
		return localapi.BadRequest("subscriptions must be 1 to %d", maxSubscriptions)
	}
	access := s.access(r)
	seen := &agentTerminals{server: s, access: access, masked: !req.Raw}
	find := s.newMatching()
	defer find.Close()
	engine := s.newEvents(seen, access, find)
	defer engine.Close()
	for i := range req.Subscriptions {
		if err := engine.Check(&req.Subscriptions[i]); err != nil {
			return eventsError(err)
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := &eventWriter{out: &deadlined{w: w, control: http.NewResponseController(w), timeout: s.opts.WriteTimeout}}
	if err := out.out.control.Flush(); err != nil {
		return nil // the client is gone
	}
	var wg sync.WaitGroup
	for i := range req.Subscriptions {
		wg.Go(func() {
			one := &subscriber{eventWriter: out, sub: i}
			if req.Follow {
				one.end(engine.Stream(ctx, &req.Subscriptions[i], one))
			} else {
				one.end(one.all(ctx, engine, req.Subscriptions[i]))
			}
		})
	}
	wg.Wait()
	if s.draining.Err() != nil {
		_ = out.send(localapi.EventLine{Dropped: true})
	}
	_ = out.out.control.SetWriteDeadline(time.Time{})
	return nil
}

// eventsError translates an error of the engine for this door.
func eventsError(err error) error {
	var e *events.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Reason {
	case events.Forbidden:
		return &localapi.Error{Code: localapi.CodeNoTerminal, Message: "no such terminal", Hint: "tether ls lists the terminals"}
	case events.ResourceExhausted:
		return &localapi.Error{Code: localapi.CodeDenied, Message: e.Text}
	}
	return &localapi.Error{Code: localapi.CodeBadRequest, Message: e.Text}
}

// eventWriter writes the lines of several subscriptions.
type eventWriter struct {
	mu  sync.Mutex // held while a line is written
	out *deadlined
}

func (h *eventWriter) send(x localapi.EventLine) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err = h.out.Write(append(line, '\n'))
	return err
}

// subscriber is one subscription's part of an eventWriter. It implements events.Out.
type subscriber struct {
	*eventWriter
	sub    int
	cursor string // the last one that was sent
}

// Active implements events.Out.
func (o *subscriber) Active(cursor string, truncated bool) error {
	o.cursor = cursor
	return o.send(localapi.EventLine{Sub: o.sub, Active: true, Truncated: truncated, Cursor: cursor})
}

// Event implements events.Out.
func (o *subscriber) Event(ev events.Event) error {
	x := localapi.EventLine{Sub: o.sub, Event: &ev}
	if ev.Cursor != nil {
		x.Cursor = *ev.Cursor
		o.cursor = x.Cursor
	}
	return o.send(x)
}

// Heartbeat implements events.Out.
func (o *subscriber) Heartbeat(cursor string) error {
	if cursor == o.cursor {
		return nil // nothing is new; clients notice a dead connection by themselves
	}
	o.cursor = cursor
	return o.send(localapi.EventLine{Sub: o.sub, Cursor: cursor})
}

// all sends past events, and then ends.
func (o *subscriber) all(ctx context.Context, e *events.Engine, r events.Request) error {
	r.Oldest = r.Cursor == nil
	for {
		page, err := e.Poll(ctx, &r)
		if err != nil {
			return err
		}
		if page.Truncated && !r.Oldest {
			if err := o.Active(page.Cursor, true); err != nil {
				return err
			}
		}
		for i := range page.Events {
			if err := o.Event(page.Events[i]); err != nil {
				return err
			}
		}
		if err := o.Heartbeat(page.Cursor); err != nil || !page.More {
			return err
		}
		r.Oldest, r.Cursor = false, &page.Cursor
	}
}

// end tells the client that nothing more follows.
func (o *subscriber) end(err error) {
	if errors.Is(err, context.Canceled) {
		return // the client is gone, or the daemon ends
	}
	x := localapi.EventLine{Sub: o.sub, End: true}
	if err != nil {
		e := errorFor(eventsError(err))
		x.Error = e
	}
	_ = o.send(x)
}

// mayRun asks the policy about a command that the caller wants to run for each event. It
// refuses an agent's command that would need the person's approval each time.
func (s *Server) mayRun(w http.ResponseWriter, r *http.Request, req localapi.MayRunRequest) error {
	if err := req.Unpack(); err != nil {
		return err
	}
	if len(req.Command) == 0 {
		return localapi.BadRequest("command is missing")
	}
	actor := ActorFrom(r.Context())
	if actor.Role == term.RoleAgent {
		d := s.opts.Policy.Check(policy.Request{Door: policy.DoorCLI, Actor: actor, Argv: req.Command, Cwd: req.Cwd, Background: true})
		if d.Effect != policy.Allow {
			return s.refused(r, &localapi.Error{Code: localapi.CodeDenied, Message: "the policy does not let agents run this without a question: " + d.Reason,
				Hint: "follow the events (tether events --follow) and start the command in a terminal, where the person can be asked"})
		}
	}
	return reply(w, localapi.MayRun{SchemaVersion: localapi.SchemaVersion})
}

// newEvents returns an actor's events about the terminals that it may see.
func (s *Server) newEvents(t agenttools.Terminals, access term.Access, find *agenttools.Matching) *events.Engine {
	return events.New(events.Options{
		Terminals: t, Machine: s.opts.Machine, Problems: find, Bug: s.toolBug,
		Ports: func() (map[string][]events.Port, error) { return openPorts(access) },
	})
}

// PersonEvents returns the events about all terminals of the person, with text masked as
// for hosts. The caller must call end.
func (s *Server) PersonEvents() (e *events.Engine, end func()) {
	access := s.opts.Access(term.User)
	find := s.newMatching()
	e = s.newEvents(&agentTerminals{server: s, access: access, masked: true}, access, find)
	return e, func() {
		e.Close()
		find.Close()
	}
}

// openPorts returns the ports on which programs of an actor's terminals listen, each
// once.
func openPorts(access term.Access) (map[string][]events.Port, error) {
	found, err := listening(access.List()...)
	if err != nil {
		return nil, err
	}
	all := map[string][]events.Port{}
	for id, some := range found {
		for i, l := range some {
			if i > 0 && some[i-1].Port == l.Port {
				continue
			}
			address := l.Address
			if l.URL != "" {
				address = "localhost"
			}
			all[string(id)] = append(all[string(id)], events.Port{Number: l.Port, Address: net.JoinHostPort(address, strconv.Itoa(l.Port))})
		}
	}
	return all, nil
}
