package host

import (
	"encoding/json"
	"net/http"

	"tether/agent/verdict"
	"tether/agenttools"
	"tether/host/admission"
	"tether/host/rights"
	"tether/host/runs"
)

// pageRuns is what the page shows of a terminal's earlier runs.
type pageRuns struct {
	Runs    []agenttools.Run `json:"runs"`
	More    bool             `json:"more,omitempty"`
	Verdict *verdict.Verdict `json:"verdict,omitempty"` // of the terminal, or of the newest command in it
	Why     string           `json:"why,omitempty"`     // why there are none
}

// pageRunsMax is how many runs the page gets.
const pageRunsMax = 100

// runsOf serves /terminals/ID/runs: the earlier runs of a terminal and its verdict, which
// its machine is asked for.
func (h *Host) runsOf(w http.ResponseWriter, r *http.Request, p rights.Principal) *admission.Refusal {
	done, ok := h.ask(p)
	if !ok {
		return admission.ErrBusy
	}
	defer done()
	at, ok := catalogue{h, &p}.find(r.PathValue("id"))
	if !ok {
		return errNoTerminal
	}
	if h.problemLooks.first(p.Name + " runs " + at.t.id) { // the page asks repeatedly
		h.audit(rights.AuditCalled, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Terminal: at.t.uri, Detail: "list_runs"})
	}
	out := pageRuns{Runs: []agenttools.Run{}}
	q := runs.Question{Tool: "list_runs", Terminal: at.t.uri, Named: at.Info().Machine, Args: json.RawMessage(`{"max":100}`), Shows: runs.MaxShows}
	a, err := h.callRuns(r.Context(), p, q)
	if list, ok := a.(*agenttools.RunsAnswer); ok && err == nil {
		out.Runs, out.More = list.Runs[:min(len(list.Runs), pageRunsMax)], list.More
		q.Tool, q.Args = "verdict", json.RawMessage(`{}`)
		a, err = h.callRuns(r.Context(), p, q)
	}
	if v, ok := a.(*agenttools.VerdictAnswer); ok && err == nil && len(v.Series) > 0 {
		out.Verdict = &v.Series[0]
	}
	if err != nil {
		out.Why = err.Error()
	}
	answerJSON(w, out)
	return nil
}
