package local

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/ports"
	"tether/agent/start"
	"tether/agent/term"
	"tether/internal/jsonspan"
	"tether/platform/proc"
	"tether/vocab"
)

func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	withPorts, changes := q.Get("ports") == "1", q.Get("changes") == "1"
	if err := q.unknown(); err != nil {
		return err
	}
	all := localapi.TerminalList{SchemaVersion: localapi.SchemaVersion, Terminals: []localapi.Terminal{}, Waiting: s.waiting(r), Declared: s.declaredFor(r)}
	if ActorFrom(r.Context()) == term.User {
		all.Crowded = s.conns.crowded()
	}
	seen := s.views(r)
	var ports map[term.ID][]localapi.Listening
	list := s.access(r).List()
	if withPorts {
		ports, _ = listening(list...) // on error, list without ports
	}
	checkouts := s.checkoutsOf(changes, list...)
	for _, h := range list {
		t := s.terminal(h, seen)
		t.Listening, t.Checkout = ports[h.ID()], checkouts[h.ID()]
		all.Terminals = append(all.Terminals, t)
	}
	slices.SortFunc(all.Terminals, newestFirst)
	return reply(w, all)
}

// newestFirst compares for the order of lists: running terminals, the newest first, then
// exited ones, the last to exit first.
func newestFirst(a, b localapi.Terminal) int {
	switch {
	case a.Exit == nil && b.Exit != nil:
		return -1
	case a.Exit != nil && b.Exit == nil:
		return 1
	case a.Exit != nil:
		return cmp.Or(b.Exit.At.Compare(a.Exit.At), b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID))
	}
	return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID))
}

func (s *Server) spawn(w http.ResponseWriter, r *http.Request, req localapi.SpawnRequest) error {
	if err := req.Unpack(); err != nil {
		return err
	}
	if err := checkLimits(req.Limits); err != nil {
		return err
	}
	q := paramsOf(r)
	req.Attaches = q.Get("attaches") == "1"
	if err := q.unknown(); err != nil {
		return err
	}
	actor := ActorFrom(r.Context())
	asked := startRequest(r.Context(), &req, actor, policy.DoorCLI)
	if actor != term.User {
		if overTCP(r) && (req.Door != "" || req.Approved != "") { // only our own proxy sends these, which runs as the person
			return &localapi.Error{Code: localapi.CodeDenied, Message: "door and approved work only through the local socket"}
		}
		if origin(r) != term.User && (req.Door == policy.DoorACP || req.Approved != "") {
			return s.refused(r, &localapi.Error{Code: localapi.CodeDenied, Message: "a program that an agent started cannot approve anything"})
		}
		if err := asAgent(&asked, req.Door); err != nil {
			return err
		}
	}
	if overTCP(r) {
		asked.Door = policy.DoorWS
	}
	if at, ok := r.Context().Value(connKey{}).(peer); ok && asked.Door == policy.DoorACP {
		toPolicy := asked.Asked()
		defer s.proxied.begin(at.ID, &toPolicy)()
	}
	h, err := s.start(r.Context(), asked)
	if err != nil {
		return err
	}
	if req.Leased {
		s.leases.expect(h)
	}
	if s.opts.Expect != nil && req.Attaches && actor == term.User {
		s.opts.Expect()
	}
	return reply(w, s.terminal(h, s.views(r)))
}

// checkLimits refuses limits that no terminal can have.
func checkLimits(l *proc.Limits) error {
	if l == nil {
		return nil
	}
	if err := l.Check(); err != nil {
		return localapi.BadRequest("limits: %v", err)
	}
	return nil
}

// find returns the terminal of the path.
func (s *Server) find(r *http.Request) (term.Handle, error) {
	return s.access(r).Find(r.PathValue("ref"))
}

// onTerminal returns a handler that finds the terminal for h.
func (s *Server) onTerminal(h func(http.ResponseWriter, *http.Request, term.Handle) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		t, err := s.find(r)
		if err != nil {
			return err
		}
		return h(w, r, t)
	}
}

func (s *Server) info(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	q := paramsOf(r)
	withPorts, changes := q.Get("ports") == "1", q.Get("changes") == "1"
	if err := q.unknown(); err != nil {
		return err
	}
	t := s.terminal(h, s.views(r))
	t.Checkout = s.checkoutsOf(changes, h)[h.ID()]
	if withPorts {
		ports, err := listening(h)
		if err != nil {
			return err
		}
		t.Listening = ports[h.ID()]
	}
	return reply(w, t)
}

func (s *Server) commands(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	commands, err := h.Commands()
	return answer(w, localapi.CommandList{SchemaVersion: localapi.SchemaVersion, CommandDetection: h.Info().CommandDetection, Commands: commands}, err)
}

func (s *Server) kill(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	ctx, cancel := context.WithTimeout(r.Context(), killTimeout)
	defer cancel()
	if err := h.Kill(ctx); err != nil {
		return err
	}
	return reply(w, terminalFrom(h.Info()))
}

// promote makes an agent's terminal the person's.
func (s *Server) promote(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err == nil {
		err = h.Promote()
	}
	if err != nil {
		return err
	}
	return reply(w, terminalFrom(h.Info()))
}

// terminalFrom converts the core's info to this door's form.
func terminalFrom(i term.Info) localapi.Terminal {
	t := localapi.Terminal{
		ID: string(i.ID), Name: i.Name, Title: i.Title, Command: i.Command, Cwd: i.Cwd,
		Cols: int(i.Size.Cols), Rows: int(i.Size.Rows), Owner: i.Owner.String(), Visible: i.Visible, Private: i.Private, Notice: i.Notice,
		LentTo: i.LentTo, Pid: i.Pid, Port: i.Port, Started: i.Started, Bytes: i.Bytes, Retained: i.Retained, Attached: i.Attached, Outlives: i.Outlives, Lost: i.Lost,
		Exit: i.Exit, CommandDetection: i.CommandDetection, Loans: loansFrom(i.Loans), Door: i.Door, Adopted: i.Adopted,
		State: vocab.State{Readiness: i.Readiness},
	}
	t.Command, t.CommandBytes = jsonspan.Pack(i.Command)
	_, t.CwdBytes = jsonspan.PackOne(i.Cwd)
	if t.LentTo == nil {
		t.LentTo = []string{}
	}
	if i.Running != nil {
		t.Running = i.Running.Text()
	}
	return t
}

// start starts the request's command, if the policy admits it. It may wait for the
// person's answer, at most until the daemon ends.
func (s *Server) start(ctx context.Context, r start.Request) (term.Handle, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.draining, func() { cancel(term.ErrClosed) })()
	s.noteAgent(r.Actor) // here, because an agent at a host does not come through this door
	h, err := s.opts.Starter.Start(ctx, r)
	s.sayTaken(err, r.Actor)
	return h, err
}

// sayTaken has a *ports.TakenError say who has the port, as far as the actor may know it.
func (s *Server) sayTaken(err error, actor term.Actor) {
	if taken, ok := errors.AsType[*ports.TakenError](err); ok {
		asks := agentTerminals{server: s, access: s.opts.Access(actor)}
		taken.By = asks.PortUsers([]int{taken.Port})[taken.Port]
	}
}

// startRequest returns the request of an actor at a door, without checking it.
func startRequest(ctx context.Context, r *localapi.SpawnRequest, actor term.Actor, door string) start.Request {
	req := start.Request{SpawnRequest: *r, Actor: actor, Unsigned: actor == term.User && callerIn(ctx).Sign == ""}
	req.Door = door
	return req
}
