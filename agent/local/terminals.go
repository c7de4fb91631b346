package local

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
)

// status tells an agent nothing of hosts, nor of terminals it does not see.
func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	status := s.opts.Daemon.Status()
	status.Waiting = s.waiting(r)
	if ActorFrom(r.Context()) != term.User {
		status.Hosts, status.Terminals, status.Degraded, status.Log = []localapi.HostStatus{}, localapi.Count{}, []localapi.Degraded{}, ""
		for _, h := range s.access(r).List() {
			CountTerminal(&status.Terminals, h)
		}
	}
	return reply(w, status)
}

// CountTerminal counts one more terminal.
func CountTerminal(c *localapi.Count, h term.Handle) {
	i := h.Info()
	switch {
	case i.Exit != nil:
		c.Exited++
		return
	case len(i.LentTo) > 0:
		c.Lent++
	}
	c.Running++
	if in, _ := h.Input(); in.State.Awaits() {
		c.Awaits++
	}
	if ready := i.Ready.State; ready == term.ReadyStarting || ready == term.ReadyFailed {
		c.NotReady++
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	all := localapi.TerminalList{SchemaVersion: localapi.SchemaVersion, Terminals: []localapi.Terminal{}, Waiting: s.waiting(r), Declared: s.declaredFor(r)}
	seen := s.views(r)
	var ports map[term.ID][]localapi.Listening
	list := s.access(r).List()
	if r.URL.Query().Get("ports") == "1" {
		ports, _ = listening(list...) // a list without them is better than none
	}
	for _, h := range list {
		t := s.terminal(h, seen)
		t.Listening = ports[h.ID()]
		all.Terminals = append(all.Terminals, t)
	}
	slices.SortFunc(all.Terminals, newestFirst)
	return reply(w, all)
}

// newestFirst is the order of lists: running terminals, the newest first, then exited ones, the last to exit first.
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

func (s *Server) spawn(w http.ResponseWriter, r *http.Request) error {
	var req localapi.SpawnRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	actor := ActorFrom(r.Context())
	asked := startRequest(r.Context(), &req, actor, policy.DoorCLI)
	if actor != term.User {
		if overTCP(r) && (req.Door != "" || req.Approved != "") { // words of our own proxy, which runs as the person
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
	return reply(w, terminalFrom(h.Info()))
}

// find returns the terminal of the path.
func (s *Server) find(r *http.Request) (term.Handle, error) {
	return s.access(r).Find(r.PathValue("ref"))
}

func (s *Server) info(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	return reply(w, s.terminal(h, s.views(r)))
}

func (s *Server) commands(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	commands, err := h.Commands()
	if err != nil {
		return err
	}
	all := localapi.CommandList{SchemaVersion: localapi.SchemaVersion, CommandDetection: h.Info().CommandDetection, Commands: []localapi.Command{}}
	for _, c := range commands {
		all.Commands = append(all.Commands, commandFrom(c))
	}
	return reply(w, all)
}

func (s *Server) kill(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
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

// environment answers with the login environment; a POST asks the shell anew.
func (s *Server) environment(w http.ResponseWriter, r *http.Request) error {
	env, err := s.opts.Daemon.Environment(r.Context(), r.Method == http.MethodPost)
	if err != nil {
		return err
	}
	return reply(w, localapi.Environment{SchemaVersion: localapi.SchemaVersion, Env: env})
}

func (s *Server) pair(w http.ResponseWriter, r *http.Request) error {
	var req localapi.PairRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	host, err := s.opts.Hosts.Pair(r.Context(), req)
	if err != nil {
		return err
	}
	return reply(w, host)
}

func (s *Server) unpair(w http.ResponseWriter, r *http.Request) error {
	u, err := s.opts.Hosts.Unpair(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return reply(w, u)
}

func (s *Server) shutdown(w http.ResponseWriter, _ *http.Request) error {
	defer s.opts.Daemon.Shutdown()
	return reply(w, struct{}{})
}
