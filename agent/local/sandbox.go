package local

import (
	"net/http"

	"tether/agent/localapi"
	"tether/agent/term"
)

func (s *Server) sandbox(w http.ResponseWriter, r *http.Request) error {
	var req localapi.SandboxRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	actor := ActorFrom(r.Context())
	if actor.Role != term.RoleAgent || s.opts.Sandbox == nil || len(req.Command) == 0 {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: "an agent and a command are required"}
	}
	argv, err := s.opts.Sandbox(actor, req.Cwd, req.Command)
	if err != nil {
		return err
	}
	return reply(w, localapi.SandboxReply{SchemaVersion: localapi.SchemaVersion, Command: argv})
}
