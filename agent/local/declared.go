package local

import (
	"context"
	"net/http"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
)

// Declarer is the part of the daemon for the terminals that the configuration declares.
type Declarer interface {
	// Declared returns all declared terminals, without waiting.
	Declared() []localapi.Declared
	// Declare carries out the request for the declared terminals that it names, or for
	// all, and returns them. It may block until those terminals have ended, or ctx ends.
	Declare(context.Context, localapi.DeclareRequest) ([]localapi.Declared, error)
	// ReadyPort returns the port that the person has declared as the ready.port, or in
	// the ready.http, of the terminal with that id; 0 for none.
	ReadyPort(id string) int
	// MayRestart reports whether agents may restart any declared terminal.
	MayRestart() bool
	// RestartFor restarts the declared terminal with that name or terminal id for an
	// agent, if its declaration and the policy allow it. term.ErrNotFound means that
	// there is none that agents may restart.
	RestartFor(ctx context.Context, actor term.Actor, door, ref string) (localapi.Declared, error)
}

// declaredFor returns the declared terminals, none for agents.
func (s *Server) declaredFor(r *http.Request) []localapi.Declared {
	if s.opts.Declared == nil || ActorFrom(r.Context()) != term.User {
		return nil
	}
	return s.opts.Declared.Declared()
}

func (s *Server) declare(w http.ResponseWriter, r *http.Request, req localapi.DeclareRequest) error {
	if s.opts.Declared == nil {
		return &localapi.Error{Code: localapi.CodeNotFound, Message: "this daemon has no declared terminals"}
	}
	if err := checkLimits(req.Limits); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), declareTimeout)
	defer cancel()
	all, err := s.opts.Declared.Declare(ctx, req)
	return answer(w, localapi.DeclaredList{SchemaVersion: localapi.SchemaVersion, Declared: all}, err)
}

// declareTimeout bounds requests that may wait for a login shell and for the end of the
// former terminal.
const declareTimeout = time.Minute
