package local

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tether/agent/adopt"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/proc"
)

// Adopter is the part of the daemon for panes of other programs.
type Adopter interface {
	// Panes lists the panes that can be found, with the rules that adopt some by
	// themselves, and what could not be listed. It may block until ctx ends.
	Panes(context.Context) ([]adopt.Pane, []localapi.AdoptRule, []error)
	// Adopt makes a pane a terminal of the person's. Errors: those of adopt.Find and of
	// the pool, and an *Error.
	Adopt(context.Context, localapi.AdoptRequest) (term.Handle, error)
}

// adoptTimeout bounds requests about panes: other programs answer them.
const adoptTimeout = 15 * time.Second

var errNoAdoption = &localapi.Error{Code: localapi.CodeNotFound, Message: "this daemon cannot adopt panes"}

// panes answers with the panes of other programs.
func (s *Server) panes(w http.ResponseWriter, r *http.Request) error {
	if s.opts.Adopter == nil {
		return errNoAdoption
	}
	if err := paramsOf(r).unknown(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), adoptTimeout)
	defer cancel()
	found, rules, errs := s.opts.Adopter.Panes(ctx)
	all := localapi.PaneList{SchemaVersion: localapi.SchemaVersion, Panes: []localapi.Pane{}, Rules: rules}
	for _, err := range errs {
		all.Trouble = append(all.Trouble, err.Error())
	}
	as := map[string]term.Info{}
	for _, h := range s.access(r).List() {
		if i := h.Info(); i.Adopted != nil && i.Exit == nil {
			as[i.Adopted.From] = i
		}
	}
	var programs []proc.Terminal
	for _, p := range found {
		if p.Pid > 1 {
			programs = append(programs, proc.Terminal{ID: p.Target.String(), Pid: p.Pid, Unmarked: true})
		}
	}
	listeners, _ := proc.Listeners(programs) // on error, list without ports
	for _, p := range found {
		at := p.Target.String()
		one := localapi.Pane{Pane: at, Program: p.Target.Program, Title: p.Title, Command: p.Command, Directory: p.Dir, Pid: p.Pid,
			Cols: int(p.Size.Cols), Rows: int(p.Size.Rows), Exact: p.Exact, Why: p.Why, Terminal: string(as[at].ID), Name: as[at].Name}
		for _, l := range listeners[at] {
			one.Listening = append(one.Listening, listeningOf(l))
		}
		all.Panes = append(all.Panes, one)
	}
	return reply(w, all)
}

func (s *Server) adopt(w http.ResponseWriter, r *http.Request, req localapi.AdoptRequest) error {
	if s.opts.Adopter == nil {
		return errNoAdoption
	}
	ctx, cancel := context.WithTimeout(r.Context(), adoptTimeout)
	defer cancel()
	h, err := s.opts.Adopter.Adopt(ctx, req)
	if err != nil {
		return err
	}
	return reply(w, s.terminal(h, s.views(r)))
}

// unadopt ends the adoption of a pane, which runs on.
func (s *Server) unadopt(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	if h.Info().Adopted == nil {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "tether has started this terminal itself: there is no adoption to end", Hint: "tether kill ends a terminal and its programs"}
	}
	return s.kill(w, r, h)
}

// adoptError gives errors about panes their code; it returns nil for others.
func adoptError(err error) *localapi.Error {
	var adopted *term.AdoptedError
	var unknown *adopt.UnknownError
	var refused *adopt.RefusedError
	switch {
	case errors.As(err, &adopted):
		return &localapi.Error{Code: localapi.CodeDenied, Message: adopted.Error()}
	case errors.As(err, &unknown):
		return &localapi.Error{Code: localapi.CodeNoTerminal, Message: unknown.Error()}
	case errors.As(err, &refused):
		return &localapi.Error{Code: localapi.CodeDenied, Message: refused.Error()}
	}
	return nil
}
