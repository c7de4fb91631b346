package runs

import (
	"context"
	"errors"
	"iter"
	"slices"

	"tether/agent/history"
	"tether/agent/verdict"
	"tether/agenttools"
	"tether/problems"
)

// Compared says how a run differs from an earlier one.
type Compared struct {
	Run  verdict.Point `json:"run"`
	With verdict.Point `json:"with"`
	verdict.Comparison
}

// Compare compares a run with an earlier one: the newest run of the series that the name
// means, as for Verdict, or the run with that id; with the last good run of the series
// before it, or with the run whose id is with. Of a watcher, it compares the newest
// round. It reads both texts, which takes some seconds for the largest ones, until ctx
// ends.
func (v View) Compare(ctx context.Context, dir, name, with string) (*Compared, error) {
	found, err := v.series(ctx, dir, []string{name})
	if err != nil {
		return nil, err
	}
	runs := found[0].runs // the one with the newest run
	if i := slices.IndexFunc(runs, func(r history.Run) bool { return r.ID == name }); i > 0 {
		runs = runs[i:]
	}
	points := v.points(runs)
	run, before := points[0], (*verdict.Point)(nil)
	if with != "" {
		other, err := v.Run(with)
		if errors.Is(err, agenttools.ErrNotFound) {
			err = &agenttools.UnknownRunError{Name: with}
		}
		if err != nil {
			return nil, err
		}
		runs = append(slices.Clone(runs), other)
		before = &v.points([]history.Run{other})[0]
	} else if i := slices.IndexFunc(points[1:], func(p verdict.Point) bool { return p.Outcome == verdict.Good }); i >= 0 {
		before = &points[i+1]
	} else {
		return nil, errNoGood
	}
	return v.comparePoints(ctx, &run, before, runs, true)
}

// points returns runs and rounds, newest first, also those that do not count.
func (v View) points(runs []history.Run) []verdict.Point {
	var all []verdict.Point
	for _, r := range runs {
		is := v.full(r)
		all = append(all, is.Points()...)
	}
	return all
}

// comparePoints compares two runs, or rounds; with lines, or only their problems.
func (v View) comparePoints(ctx context.Context, run, before *verdict.Point, runs []history.Run, lines bool) (*Compared, error) {
	a, err := v.side(ctx, run, runs, lines)
	if err != nil {
		return nil, err
	}
	b, err := v.side(ctx, before, runs, lines)
	if err != nil {
		return nil, err
	}
	c, err := verdict.Compare(ctx, a, b)
	if err != nil {
		return nil, err
	}
	return &Compared{*run, *before, *c}, nil
}

// side reads what a run, or a round, has printed.
func (v View) side(ctx context.Context, p *verdict.Point, runs []history.Run, lines bool) (verdict.Side, error) {
	r, round, ok := v.at(p, runs)
	if !ok {
		return verdict.Side{}, agenttools.ErrNotFound
	}
	t, err := v.Open(r.ID)
	if err != nil {
		return verdict.Side{}, err
	}
	from, to := int64(0), t.Info().End
	if round != nil {
		from = round.From - r.Start
		for _, n := range v.rounds(r) {
			if n.From > round.From {
				to = n.From - r.Start
				break
			}
		}
	}
	s := verdict.Side{Text: textOf(ctx, t, from, to), Dir: r.Dir}
	tracker := problems.NewTracker(v.runs.matchers(), from)
	tracker.Begin(r.Line, r.Dir)
	end := from
	for off, data := range s.Text {
		if off > end {
			tracker.Lost(off - end)
		}
		tracker.Write(off, data)
		end = off + int64(len(data))
	}
	tracker.End()
	s.Problems = tracker.Problems(0)
	if !lines {
		s.Text = func(func(int64, []byte) bool) {}
	}
	return s, ctx.Err()
}

// textOf yields a range of what a terminal has printed.
func textOf(ctx context.Context, t agenttools.Terminal, from, to int64) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		rd, err := t.Read(from)
		if err != nil {
			return
		}
		defer rd.Close()
		for ev, err := range agenttools.Available(rd) {
			off := ev.Off - int64(len(ev.Data))
			if err != nil || off >= to || ctx.Err() != nil {
				return
			}
			p := ev.Data[:min(int64(len(ev.Data)), to-off)]
			if len(p) > 0 && !yield(off, p) {
				return
			}
		}
	}
}
