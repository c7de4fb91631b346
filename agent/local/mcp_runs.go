package local

import (
	"context"
	"errors"

	"tether/agent/history"
	"tether/agent/runs"
	"tether/agent/term"
	"tether/agent/verdict"
	"tether/agenttools"
	"tether/ahp"
	"tether/internal/clip"
)

// Runs implements agenttools.Keeper. Agents in sessions of a host ask the host.
func (a *agentTerminals) Runs() agenttools.Runs {
	if a.server.opts.Runs == nil || a.host != "" {
		return nil
	}
	return agentRuns{view: a.server.opts.Runs.As(runs.Asker{Actor: a.access.Actor()})}
}

// agentRuns are the runs that an agent, or a reader at a host, may see.
type agentRuns struct {
	view     runs.View
	terminal string // the question is about this one and its series, if not ""
	series   string // of that terminal
	named    string
}

// runsLike returns the query for the history.
func runsLike(q agenttools.RunQuery) history.Query {
	return history.Query{Name: q.Name, Dir: q.Dir, Since: q.Since}
}

// fits reports whether a run is one that the question is about.
func (a agentRuns) fits(r *history.Run) bool {
	return a.terminal == "" || r.Terminal == a.terminal || a.named != "" && r.Command == 0 && r.Series() == a.series
}

// List implements agenttools.Runs.
func (a agentRuns) List(ctx context.Context, q agenttools.RunQuery) (out agenttools.RunsAnswer, err error) {
	for r := range a.view.List(runsLike(q)) {
		if ctx.Err() != nil || len(out.Runs) >= q.Max {
			out.More = true
			break
		}
		if a.fits(&r) {
			out.Runs = append(out.Runs, a.describe(r))
		}
	}
	return out, nil
}

// Open implements agenttools.Runs.
func (a agentRuns) Open(id string) (agenttools.Terminal, error) { return a.view.Open(id) }

// Search implements agenttools.Runs.
func (a agentRuns) Search(ctx context.Context, q agenttools.RunSearch) (out agenttools.FoundAnswer, err error) {
	e, err := history.Compile(q.Pattern, false, false)
	if err != nil {
		return out, err
	}
	s := history.Search{Expression: e, Runs: runsLike(q.RunQuery), Context: q.Around, Most: q.Max}
	end, err := a.view.Search(ctx, s, func(x history.Hit) bool {
		out.Matches = append(out.Matches, agenttools.Match{Run: x.Run.ID, Name: clip.Marked(x.Run.Name, maxShownText), Command: clip.Marked(x.Run.Line, maxShownText),
			At: x.Time, Offset: x.Offset, Before: x.Before, Line: x.Line, After: x.After})
		return true
	})
	out.More, out.Back = end.More, end.Back
	return out, err
}

// Compare implements agenttools.Runs.
func (a agentRuns) Compare(ctx context.Context, p agenttools.RunPair) (out agenttools.CompareAnswer, err error) {
	c, err := a.view.Compare(ctx, "", p.Name, p.With)
	if err != nil {
		return out, err
	}
	return agenttools.CompareAnswer{Run: c.Run, With: c.With, Comparison: &c.Comparison}, nil
}

// Verdict implements agenttools.Runs. Of a shell, the newest command that counts is
// judged.
func (a agentRuns) Verdict(ctx context.Context, names []string) (out agenttools.VerdictAnswer, err error) {
	if a.terminal != "" {
		names = []string{a.terminal}
		for r := range a.view.List(history.Query{Terminal: a.terminal}) {
			if outcome, _ := a.view.Outcome(r); r.Command > 0 && (outcome == verdict.Good || outcome == verdict.Failing) {
				names[0] = r.ID
				break
			}
		}
	}
	out.Series, err = a.view.Verdict(ctx, "", names)
	return out, err
}

// VerdictChanges implements agenttools.Judges.
func (a agentRuns) VerdictChanges(ctx context.Context, n int64) ([]agenttools.VerdictChange, int64, error) {
	return a.view.VerdictChanges(ctx, n)
}

// maxShownText bounds a name or a command line in a list, in bytes.
const maxShownText = 500

// describe describes a run in the words of the tools.
func (a agentRuns) describe(r history.Run) agenttools.Run {
	outcome, why := a.view.Outcome(r)
	x := agenttools.Run{ID: r.ID, Name: clip.Marked(r.Name, maxShownText), Command: clip.Marked(r.Line, maxShownText), Cwd: r.Dir, Checkout: r.Checkout, Started: r.Started, Ended: r.Ended,
		Outcome: outcome, Why: why, Ready: r.Ready, Errors: r.Problems.Errors, Warnings: r.Problems.Warnings, Bytes: max(r.End-r.Start, 0), Dropped: r.Dropped}
	if r.Exit != nil {
		x.ExitCode, x.Signal = &r.Exit.Code, r.Exit.Signal
	}
	x.First = verdict.ProblemTexts(r.Problems.First)
	return x
}

// pastOnly has the runs of terminals and no terminals.
type pastOnly struct{ runs agentRuns }

// List implements agenttools.Terminals.
func (pastOnly) List() []agenttools.Info { return nil }

// Open implements agenttools.Terminals.
func (pastOnly) Open(string) (agenttools.Terminal, error) { return nil, agenttools.ErrNotFound }

// Runs implements agenttools.Keeper.
func (p pastOnly) Runs() agenttools.Runs { return p.runs }

// RunsAt answers a question about earlier runs for a reader at a host, with what was lent
// there. terminal is that which the question is about, "" if none.
func (s *Server) RunsAt(ctx context.Context, host string, q ahp.RunsParams, terminal term.ID) ahp.RunsResult {
	if s.opts.Runs == nil {
		return ahp.RunsResult{Error: "this machine keeps no runs", Unknown: true}
	}
	view := s.opts.Runs.As(runs.Asker{Actor: term.Host(host), Host: host, Names: q.Reader.Names, Owner: q.Reader.Owner})
	past := agentRuns{view: view, terminal: string(terminal)}
	if r, err := view.Run(past.terminal); err == nil && r.Named {
		past.series, past.named = r.Series(), r.Name
	}
	tools := agenttools.New(agenttools.Options{Terminals: pastOnly{past}, Machine: s.opts.Machine, Bug: s.toolBug, Matchers: s.opts.Matchers})
	defer tools.Close()
	r, err := tools.Call(ctx, q.Tool, q.Arguments, agenttools.Caller{Shows: int(q.Shows)})
	text := ""
	if err == nil {
		text, err = r.Text()
	}
	if err != nil {
		return ahp.RunsResult{Error: err.Error(), Unknown: errors.Is(err, agenttools.ErrNoRun)}
	}
	return ahp.RunsResult{Answer: []byte(text)}
}
