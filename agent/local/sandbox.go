package local

import (
	"context"
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

// Sandbox asks how to run an agent's own program in its sandbox; see [Client.As].
func (c *Client) Sandbox(ctx context.Context, r localapi.SandboxRequest) (localapi.SandboxReply, error) {
	var s localapi.SandboxReply
	return s, c.do(ctx, http.MethodPost, "/v1/sandbox", r, &s)
}
