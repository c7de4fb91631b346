package local

import (
	"net/http"
	"os"

	"tether/agent/policy"
)

// ptySpawn is the body of POST /pty/spawn. Every field is optional. Without a body it starts the person's login shell in their home directory.
type ptySpawn struct {
	Cwd     string   `json:"cwd"`
	Command []string `json:"command"` // argv instead of the shell
	Name    string   `json:"name"`
	Cols    uint16   `json:"cols"`
	Rows    uint16   `json:"rows"`
	Private bool     `json:"private"`
}

// ptySpawned is the answer to POST /pty/spawn.
type ptySpawned struct {
	OK       bool       `json:"ok"`
	ID       string     `json:"id"`
	Terminal ptySession `json:"terminal"`
}

// spawnPty starts a terminal, owned by the person, for a user interface.
func (s *Server) spawnPty(w http.ResponseWriter, r *http.Request) error {
	var req ptySpawn
	if err := decodeTyped(w, r, &req); err != nil {
		return err
	}
	if req.Cwd == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return badMessage("cwd is required: no home directory: %v", err)
		}
		req.Cwd = home
	}
	spawn := SpawnRequest{
		Command: req.Command, Shell: len(req.Command) == 0, Name: req.Name, Cwd: req.Cwd, Cols: req.Cols, Rows: req.Rows, Private: req.Private,
	}
	h, err := s.start(r.Context(), spawn.request(r.Context(), ActorFrom(r.Context()), policy.DoorWS))
	if err != nil {
		return err
	}
	i := h.Info()
	return reply(w, ptySpawned{OK: true, ID: string(i.ID), Terminal: sessionFrom(i)})
}

// decodeTyped decodes a body whose Content-Type is JSON; an empty body leaves into as it is.
func decodeTyped(w http.ResponseWriter, r *http.Request, into any) error {
	if err := saysJSON(r); err != nil || r.ContentLength == 0 {
		return err
	}
	return decode(w, r, into)
}
