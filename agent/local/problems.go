package local

import (
	"cmp"
	"fmt"
	"net/http"

	"tether/agent/localapi"
	"tether/agenttools"
	"tether/problems"
)

// problems answers with the problems that tools report in the terminal.
func (s *Server) problems(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	since, err := q.number("since", 1<<53)
	if err != nil {
		return err
	}
	most, err := q.number("max", problems.MaxProblems)
	if err != nil {
		return err
	}
	most = cmp.Or(most, problems.MaxProblems)
	t, key, err := s.lookedAt(r, q)
	if err != nil {
		return err
	}
	a, err := s.matching.Ask(r.Context(), key, t, since, int(most))
	if err != nil {
		return err
	}
	a.SayTaken(&agentTerminals{server: s, access: s.access(r)}, t.Info().Port)
	list := localapi.ProblemList{SchemaVersion: localapi.SchemaVersion, Problems: localapi.ProblemsOf(a.Problems), Errors: a.Errors, Warnings: a.Warnings, Cursor: a.Cursor, More: a.More,
		Cleared: a.Cleared, Dropped: a.Dropped, Unseen: a.Unseen, Masked: a.Masked, Exited: a.Exited, Succeeded: a.Succeeded, Unrecognised: append([]string{}, a.Unrecognised...)}
	return reply(w, list)
}

// digest answers with a summary of the terminal's output.
func (s *Server) digest(w http.ResponseWriter, r *http.Request) error {
	t, key, err := s.lookedAt(r, paramsOf(r))
	if err != nil {
		return err
	}
	a, err := s.matching.Digest(r.Context(), key, t, 0)
	if err != nil {
		return err
	}
	return reply(w, localapi.Digest{SchemaVersion: localapi.SchemaVersion, Text: a.History, Masked: a.Masked})
}

// lookedAt returns the terminal in the path as the caller sees it, and a key for terminal
// and view. Its output is masked as for hosts, unless the person, or an agent that sees
// everything, asks for raw=1. A kept run is always masked.
func (s *Server) lookedAt(r *http.Request, q params) (agenttools.Terminal, string, error) {
	run := r.PathValue("run")
	raw := run == "" && q.Get("raw") == "1"
	if err := q.unknown(); err != nil {
		return nil, "", err
	}
	actor := ActorFrom(r.Context())
	if run != "" {
		t, err := s.run(r)
		if err != nil {
			return nil, "", err
		}
		i := t.Info()
		return t, fmt.Sprintf("%s run %s %d", actor, i.ID, i.End), nil // one that goes on has more the next time
	}
	h, err := s.find(r)
	if err != nil {
		return nil, "", err
	}
	key := actor.String() + " " + string(h.ID())
	if raw && !h.IsMasked() {
		return mcpTerminal{h}, key + " raw", nil
	}
	return mcpTerminal{h.Masked()}, key, nil
}

// newMatching returns the problem finder of the local door.
func (s *Server) newMatching() *agenttools.Matching {
	return agenttools.NewMatching(s.opts.Matchers, s.toolBug)
}
