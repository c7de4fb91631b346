package runs

import (
	"context"

	"tether/agent/history"
	"tether/agent/verdict"
)

// Search is History.Search in the text that the asker may see. Offsets of hits count from
// the beginning of their run, as those of Open.
func (v View) Search(ctx context.Context, s history.Search, hit func(history.Hit) bool) (history.Searched, error) {
	first, then := v.look(), v.look() // of two goroutines
	s.See = func(r history.Run) []history.Span {
		_, allowed, _ := first.sees(r)
		return allowed
	}
	return v.runs.opts.History.Search(ctx, s, func(x history.Hit) bool {
		shown, _, ok := then.sees(x.Run)
		if !ok {
			return true
		}
		x.Run, x.Offset = shown, x.Offset-shown.Start
		return hit(x)
	})
}

// Outcome returns how a run ended or how it is now, and in a few words why.
func (v View) Outcome(r history.Run) (verdict.Outcome, string) {
	is := judged(r)
	if r.Running() {
		is = v.full(r)
	}
	return is.Outcome()
}
