package local

import (
	"context"
	"net/http"
	"time"

	"tether/agent/term"
)

// Declarer is the part of the daemon for the terminals that the configuration declares.
type Declarer interface {
	// Declared returns all of them, at once.
	Declared() []Declared
	// Declare carries the request out for some or all of them and returns those. It may take as long as their ends take, or until ctx ends.
	Declare(context.Context, DeclareRequest) ([]Declared, error)
	// MayRestart reports whether agents may restart one of them.
	MayRestart() bool
	// RestartFor restarts the one with that name or terminal id for an agent, if its declaration and the policy let it. term.ErrNotFound:
	// there is none that agents may restart.
	RestartFor(ctx context.Context, actor term.Actor, door, ref string) (Declared, error)
}

// Operations on declared terminals.
const (
	DeclareUp      = "up"
	DeclareDown    = "down"
	DeclareRestart = "restart"
)

// DeclareRequest asks to start or end declared terminals.
type DeclareRequest struct {
	Do    string   `json:"do"`
	Names []string `json:"names,omitempty"` // none means all
}

// Declared is one declared terminal.
type Declared struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // blocked, starting, running, waiting, exited, failed, down
	Since    time.Time `json:"since"`
	ID       string    `json:"id,omitempty"`      // of the terminal that runs or ran last
	Restart  string    `json:"restart"`           // never, on-failure, always
	Command  []string  `json:"command,omitempty"` // or
	Line     string    `json:"line,omitempty"`
	Next     time.Time `json:"next,omitzero"`   // while waiting: the next start
	Restarts int       `json:"restarts"`        // since it was last asked to be up
	Error    string    `json:"error,omitempty"` // why it could not be started
	ExitCode *int      `json:"exit_code,omitempty"`
	Changed  bool      `json:"changed,omitempty"` // the running terminal was started by another declaration

	Needs []string `json:"needs,omitempty"`
	Waits string   `json:"waits_for,omitempty"` // while blocked: which of those that it needs is not ready, and why
	// Ready is that of what runs, or ran last, if there is a condition; see Terminal.
	Ready      string    `json:"ready,omitempty"`
	ReadySince time.Time `json:"ready_since,omitzero"`
	ReadyWhy   string    `json:"ready_why,omitempty"`
}

// DeclaredList is the answer to a DeclareRequest.
type DeclaredList struct {
	SchemaVersion int        `json:"schema_version"`
	Declared      []Declared `json:"declared"`
}

// declaredFor returns the declared terminals, none for agents.
func (s *Server) declaredFor(r *http.Request) []Declared {
	if s.opts.Declared == nil || ActorFrom(r.Context()) != term.User {
		return nil
	}
	return s.opts.Declared.Declared()
}

func (s *Server) declare(w http.ResponseWriter, r *http.Request) error {
	var req DeclareRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if s.opts.Declared == nil {
		return &Error{Code: CodeNotFound, Message: "this daemon has no declared terminals"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), declareTimeout)
	defer cancel()
	all, err := s.opts.Declared.Declare(ctx, req)
	if err != nil {
		return err
	}
	return reply(w, DeclaredList{SchemaVersion: SchemaVersion, Declared: all})
}

// declareTimeout bounds requests that may wait for a login shell and for the end of the former terminal.
const declareTimeout = time.Minute

// Declare starts or ends declared terminals and returns how they are then.
func (c *Client) Declare(ctx context.Context, r DeclareRequest) (DeclaredList, error) {
	var l DeclaredList
	return l, c.do(ctx, http.MethodPost, "/v1/declared", r, &l)
}
