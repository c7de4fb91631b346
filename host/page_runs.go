package host

import (
	"context"
	"encoding/json"

	"tether/agenttools"
	"tether/host/page"
	"tether/host/rights"
	"tether/host/runs"
)

// pageRunsMax is how many runs the page gets.
const pageRunsMax = 100

// pageRuns asks a terminal's machine for its earlier runs and its verdict.
func (h *Host) pageRuns(ctx context.Context, p rights.Principal, t page.Terminal) page.Runs {
	out := page.Runs{Runs: []agenttools.Run{}}
	q := runs.Question{Tool: "list_runs", Terminal: t.URI(), Named: t.Info().Machine, Args: json.RawMessage(`{"max":100}`), Shows: runs.MaxShows}
	a, err := h.callRuns(ctx, p, q)
	if list, ok := a.(*agenttools.RunsAnswer); ok && err == nil {
		out.Runs, out.More = list.Runs[:min(len(list.Runs), pageRunsMax)], list.More
		q.Tool, q.Args = "verdict", json.RawMessage(`{}`)
		a, err = h.callRuns(ctx, p, q)
	}
	if v, ok := a.(*agenttools.VerdictAnswer); ok && err == nil && len(v.Series) > 0 {
		out.Verdict = &v.Series[0]
	}
	if err != nil {
		out.Why = err.Error()
	}
	return out
}
