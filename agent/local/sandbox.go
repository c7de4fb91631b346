package local

import (
	"context"
	"net/http"

	"tether/agent/term"
)

// SandboxRequest asks how to run an agent's own program in the sandbox of that agent.
type SandboxRequest struct {
	Command []string `json:"command"`
	Cwd     string   `json:"cwd"` // absolute
}

// SandboxReply is the command that does that.
type SandboxReply struct {
	SchemaVersion int      `json:"schema_version"`
	Command       []string `json:"command"`
}

func (s *Server) sandbox(w http.ResponseWriter, r *http.Request) error {
	var req SandboxRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	actor := ActorFrom(r.Context())
	if actor.Role != term.RoleAgent || s.opts.Sandbox == nil || len(req.Command) == 0 {
		return &Error{Code: CodeBadRequest, Message: "an agent and a command are required"}
	}
	argv, err := s.opts.Sandbox(actor, req.Cwd, req.Command)
	if err != nil {
		return err
	}
	return reply(w, SandboxReply{SchemaVersion: SchemaVersion, Command: argv})
}

// Sandbox asks how to run an agent's own program in its sandbox; see [Client.As].
func (c *Client) Sandbox(ctx context.Context, r SandboxRequest) (SandboxReply, error) {
	var s SandboxReply
	return s, c.do(ctx, http.MethodPost, "/v1/sandbox", r, &s)
}
