package page

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"tether/agent/verdict"
	"tether/agenttools"
	"tether/host/admission"
	"tether/host/rights"
	"tether/host/runs"
	"tether/screen"
)

var (
	errClientGone = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "the client has gone", Quiet: true}
	errUnreadable = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "the terminal cannot be read", Quiet: true}
)

// content serves the terminal that the path names, by its id and the suffix.
func (pg *Page) content(suffix string, serve func(http.ResponseWriter, *http.Request, rights.Principal, Terminal) *admission.Refusal) personal {
	return func(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
		id, ok := strings.CutSuffix(r.PathValue("id"), suffix)
		if !ok {
			return errNoTerminal
		}
		t, ok := pg.opts.Terminals.Open(p, id)
		if !ok {
			return errNoTerminal
		}
		return serve(w, r, p, t)
	}
}

// maxProblems is how many problems the page gets at once; the counts say how many
// there are.
const maxProblems = 300

// problems serves /terminals/ID/problems: the answer of the MCP tool problems. All
// people at the page share one matching, since they see the same output.
func (pg *Page) problems(w http.ResponseWriter, r *http.Request, p rights.Principal, t Terminal) *admission.Refusal {
	if pg.first(p.Name + " " + t.URI()) { // the page asks repeatedly
		pg.opts.Audit(rights.AuditSubscribed, r, p, rights.AuditEvent{Terminal: t.URI(), Detail: "problems"})
	}
	same, key := t.Shared()
	a, err := pg.matching.Ask(r.Context(), key, same, 0, maxProblems)
	if err != nil {
		return errUnreadable
	}
	admission.AnswerJSON(w, a)
	return nil
}

// download serves a terminal as text.
func (pg *Page) download(w http.ResponseWriter, r *http.Request, p rights.Principal, t Terminal) *admission.Refusal {
	i := t.Info()
	_, sent, err := pg.opts.Send(r.Context(), p, i.End-i.Start)
	if err != nil {
		return errClientGone
	}
	defer sent() // after the client has read it
	done, err := pg.renders.Take(r.Context())
	if err != nil {
		return errClientGone
	}
	text, err := func() (string, error) {
		defer done() // even if the text causes a panic, which costs only this answer
		return plainText(r.Context(), t)
	}()
	if err != nil {
		return errUnreadable
	}
	pg.opts.Audit(rights.AuditSubscribed, r, p, rights.AuditEvent{Terminal: t.URI(), Detail: "as text"})
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.URL.Query().Has("download") {
		w.Header().Set("Content-Disposition", `attachment; filename="`+i.ID+`.txt"`)
	}
	_, _ = io.WriteString(w, text) // fails only with the connection
	return nil
}

// plainText renders the recorded text of a terminal.
func plainText(ctx context.Context, t agenttools.Terminal) (string, error) {
	i := t.Info()
	rd, err := t.Read(i.Start)
	if err != nil {
		return "", err
	}
	defer rd.Close()
	s := screen.New(i.Cols, i.Rows)
	buf := make([]byte, 32<<10)
	for off := i.Start; off < i.End && ctx.Err() == nil; {
		ev, ok, err := rd.TryNext(buf)
		if errors.Is(err, io.EOF) || err == nil && !ok {
			break
		}
		if err != nil {
			return "", err
		}
		s.Write(ev.Data)
		if ev.Resized != nil {
			s.Resize(ev.Resized[0], ev.Resized[1])
		}
		off = ev.Off
	}
	text, _ := s.History()
	return text, ctx.Err()
}

// serveState serves /terminals/ID/state, and the same for guests: a terminal's state in
// the form of AHP. The page needs it for parked terminals, which are not in AHP's
// catalogue.
func (pg *Page) serveState(w http.ResponseWriter, r *http.Request, p rights.Principal, t Terminal) *admission.Refusal {
	i := t.Info()
	room, sent, err := pg.opts.Send(r.Context(), p, 2*(i.End-i.Start)+64<<10) // escaped text, and the screen before it
	if err != nil {
		return errClientGone
	}
	defer sent() // after the client has read it
	state, ok := t.Snapshot(room)
	if !ok {
		return errNoTerminal
	}
	pg.opts.Audit(rights.AuditSubscribed, r, p, rights.AuditEvent{Terminal: t.URI(), Detail: "the page"})
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(state) // fails only with the connection
	return nil
}

// earlier is what the page shows of a terminal's earlier runs.
type earlier struct {
	Runs    []agenttools.Run `json:"runs"`
	More    bool             `json:"more,omitempty"`
	Verdict *verdict.Verdict `json:"verdict,omitempty"` // of the terminal, or of the newest command in it
	Why     string           `json:"why,omitempty"`     // why there are none
}

// runs serves /terminals/ID/runs: the earlier runs of a terminal and its verdict, which
// its machine is asked for.
func (pg *Page) runs(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
	t, ok := pg.opts.Terminals.Find(p, r.PathValue("id"))
	if !ok {
		return errNoTerminal
	}
	if pg.first(p.Name + " runs " + t.URI()) { // the page asks repeatedly
		pg.opts.Audit(rights.AuditCalled, r, p, rights.AuditEvent{Terminal: t.URI(), Detail: "list_runs"})
	}
	admission.AnswerJSON(w, pg.runsOf(r.Context(), p, t))
	return nil
}

// runsMax is how many runs the page gets.
const runsMax = 100

// runsOf asks a terminal's machine for its earlier runs and its verdict.
func (pg *Page) runsOf(ctx context.Context, p rights.Principal, t Terminal) earlier {
	out := earlier{Runs: []agenttools.Run{}}
	q := runs.Question{Tool: "list_runs", Terminal: t.URI(), Named: t.Info().Machine, Args: json.RawMessage(`{"max":100}`), Shows: runs.MaxShows}
	a, err := pg.opts.Runs.CallFor(ctx, p, q)
	if list, ok := a.(*agenttools.RunsAnswer); ok && err == nil {
		out.Runs, out.More = list.Runs[:min(len(list.Runs), runsMax)], list.More
		q.Tool, q.Args = "verdict", json.RawMessage(`{}`)
		a, err = pg.opts.Runs.CallFor(ctx, p, q)
	}
	if v, ok := a.(*agenttools.VerdictAnswer); ok && err == nil && len(v.Series) > 0 {
		out.Verdict = &v.Series[0]
	}
	if err != nil {
		out.Why = err.Error()
	}
	return out
}
