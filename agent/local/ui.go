package local

import (
	"net/http"
	"os"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agent/uiws"
)

// uiDoor implements uiws.Server for user interfaces.
type uiDoor struct{ *Server }

// Access implements uiws.Server, as do the other methods.
func (d uiDoor) Access(r *http.Request) term.Access { return d.access(r) }

func (d uiDoor) Typing(r *http.Request) func(term.Info) error {
	h := &hands{server: d.Server, request: r}
	return h.mayType
}

func (d uiDoor) Resize(h term.Handle, client any, size term.Size) error {
	return d.sizes.want(h, client, size)
}

func (d uiDoor) Unsize(h term.Handle, client any) { d.sizes.leave(h, client) }

func (d uiDoor) ErrorFor(err error) *localapi.Error { return errorFor(err) }

func (d uiDoor) Enter() (leave func(), err error) { return d.attached.Done, d.enter() }

func (d uiDoor) Stirred() { d.stirred() }

// spawnPty starts a terminal, owned by the person, for a user interface.
func (s *Server) spawnPty(w http.ResponseWriter, r *http.Request) error {
	var req uiws.SpawnRequest
	if err := decodeTyped(r, &req); err != nil {
		return err
	}
	if req.Cwd == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return localapi.BadRequest("cwd is required: no home directory: %v", err)
		}
		req.Cwd = home
	}
	spawn := localapi.SpawnRequest{
		Command: req.Command, Shell: len(req.Command) == 0, Name: req.Name, Cwd: req.Cwd, Cols: req.Cols, Rows: req.Rows, Private: req.Private,
	}
	h, err := s.start(r.Context(), startRequest(r.Context(), &spawn, ActorFrom(r.Context()), policy.DoorWS))
	if err != nil {
		return err
	}
	return reply(w, uiws.SpawnedFrom(h.Info()))
}

// decodeTyped decodes a body whose Content-Type is JSON; an empty body leaves into as it is.
func decodeTyped(r *http.Request, into any) error {
	if err := saysJSON(r); err != nil || r.ContentLength == 0 {
		return err
	}
	return decode(r, into)
}
