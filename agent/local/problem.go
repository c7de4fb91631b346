package local

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"tether/agenttools"
	"tether/problems"
)

// Problem is one complaint of a tool about a file.
type Problem struct {
	Tool      string `json:"tool"`
	File      string `json:"file,omitempty"`       // seen from the command's directory; absent if the tool named none
	Line      int    `json:"line,omitempty"`       // from 1; absent if the tool named none
	Column    int    `json:"column,omitempty"`     // as the tool counts
	EndLine   int    `json:"end_line,omitempty"`   // absent if the tool named none
	EndColumn int    `json:"end_column,omitempty"` // absent if the tool named none
	Severity  string `json:"severity"`             // error, warning or info
	Code      string `json:"code,omitempty"`       // of the tool's own
	Message   string `json:"message"`
	First     int64  `json:"first"` // raw offset of the lines that said so first
	Last      int64  `json:"last"`  // raw offset after the last lines that reported it
	Count     int    `json:"count"` // how often the same was printed
}

// ProblemList is the answer to a question about a terminal's problems.
type ProblemList struct {
	SchemaVersion int       `json:"schema_version"`
	Problems      []Problem `json:"problems"`
	Errors        int       `json:"errors"`       // how many of all that are known are errors
	Warnings      int       `json:"warnings"`     // how many of all that are known are warnings
	Cursor        int64     `json:"cursor"`       // the value for since next time
	More          bool      `json:"more"`         // there are more after the cursor
	Cleared       bool      `json:"cleared"`      // problems were cleared after since
	Dropped       int       `json:"dropped"`      // problems that there was no room for
	Unseen        int64     `json:"unseen_bytes"` // output that was gone before anybody looked at it
	Masked        int       `json:"masked"`       // places of the output that are shown otherwise, such as secrets as stars
	Exited        bool      `json:"exited"`       // the terminal has exited
}

// Digest is a terminal's output, summed up.
type Digest struct {
	SchemaVersion int    `json:"schema_version"`
	Text          string `json:"text"`   // at most 8 KB
	Masked        int    `json:"masked"` // as in ProblemList
}

// problems answers with the problems that tools report in the terminal.
func (s *Server) problems(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	since, err := number(q, "since", 1<<53)
	if err != nil {
		return err
	}
	most, err := number(q, "max", problems.MaxProblems)
	if err != nil {
		return err
	}
	if most == 0 {
		most = problems.MaxProblems
	}
	t, key, err := s.lookedAt(r)
	if err != nil {
		return err
	}
	a, err := s.matching.Ask(r.Context(), key, t, since, int(most))
	if err != nil {
		return err
	}
	list := ProblemList{SchemaVersion: SchemaVersion, Problems: []Problem{}, Errors: a.Errors, Warnings: a.Warnings, Cursor: a.Cursor, More: a.More,
		Cleared: a.Cleared, Dropped: a.Dropped, Unseen: a.Unseen, Masked: a.Masked, Exited: a.Exited}
	for _, p := range a.Problems {
		list.Problems = append(list.Problems, Problem{p.Tool, p.File, p.Line, p.Column, p.EndLine, p.EndCol, string(p.Severity), p.Code, p.Message, p.First, p.Last, p.Count})
	}
	return reply(w, list)
}

// digest answers with the terminal's output, summed up.
func (s *Server) digest(w http.ResponseWriter, r *http.Request) error {
	t, key, err := s.lookedAt(r)
	if err != nil {
		return err
	}
	a, err := s.matching.Digest(r.Context(), key, t)
	if err != nil {
		return err
	}
	return reply(w, Digest{SchemaVersion, a.History, a.Masked})
}

// lookedAt returns the terminal of the path for the caller, and a key for both. Its output is masked as for hosts, unless the person, or an
// agent that sees everything, asks for raw=1.
func (s *Server) lookedAt(r *http.Request) (mcpTerminal, string, error) {
	h, err := s.find(r)
	if err != nil {
		return mcpTerminal{}, "", err
	}
	actor := ActorFrom(r.Context())
	key := actor.String() + " " + string(h.ID())
	if r.URL.Query().Get("raw") == "1" && !h.IsMasked() {
		return mcpTerminal{h}, key + " raw", nil
	}
	return mcpTerminal{h.Masked()}, key, nil
}

// newMatching returns the problem finder of the local door.
func (s *Server) newMatching() *agenttools.Matching {
	return agenttools.NewMatching(s.opts.Matchers, s.toolBug)
}

// ProblemOptions says which problems are asked for.
type ProblemOptions struct {
	Since int64 // a cursor of an answer; 0 means all
	Max   int   // at most this many; 0 means all
	Raw   bool  // secrets are not masked
}

// Problems returns the problems that tools report in a terminal.
func (c *Client) Problems(ctx context.Context, ref string, o ProblemOptions) (ProblemList, error) {
	var l ProblemList
	return l, c.do(ctx, http.MethodGet, terminalPath(ref, "/problems")+"?"+o.query(), nil, &l)
}

// Digest returns a terminal's output, summed up.
func (c *Client) Digest(ctx context.Context, ref string, raw bool) (Digest, error) {
	var d Digest
	return d, c.do(ctx, http.MethodGet, terminalPath(ref, "/digest")+"?"+ProblemOptions{Raw: raw}.query(), nil, &d)
}

func (o ProblemOptions) query() string {
	q := url.Values{}
	if o.Since > 0 {
		q.Set("since", strconv.FormatInt(o.Since, 10))
	}
	if o.Max > 0 {
		q.Set("max", strconv.Itoa(o.Max))
	}
	if o.Raw {
		q.Set("raw", "1")
	}
	return q.Encode()
}
