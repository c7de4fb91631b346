package runs

import (
	"context"

	"tether/agent/history"
	"tether/agent/term"
)

// Forgotten says what was removed.
type Forgotten struct {
	Runs  int   // from the history
	Bytes int64 // that are free on disk now
	// Terminals are exited ones that were removed from memory, Pasts those that run on
	// without their earlier output.
	Terminals, Pasts int
	// InHolders are the terminals among Pasts whose holders still have earlier output: a
	// daemon that starts later reads it again.
	InHolders []term.ID
}

// forgetting is what Forget has removed from the history.
type forgetting struct {
	Forgotten
	ends map[term.ID]int64 // text offsets up to which terminals are to be forgotten in memory
	err  error
}

// Forget removes the runs that match, in the history and in memory: exited terminals as
// a whole, and of one that runs everything that it has printed until now, or until the
// end of the command that matches. Hosts are told to clear their copies.
func (r *Runs) Forget(ctx context.Context, match func(history.Run) bool) (Forgotten, error) {
	done := make(chan forgetting, 1)
	r.recorder.post(func() { done <- r.recorder.forget(match) })
	var f forgetting
	select {
	case f = <-done:
	case <-ctx.Done():
		return Forgotten{}, ctx.Err()
	}
	for id, end := range f.ends {
		h, gone := r.opts.Access.Terminal(id)
		switch {
		case gone != nil:
		case r.opts.Access.Forget(id):
			f.Terminals++
		default:
			f.Pasts++
			if whole, err := h.ForgetPast(ctx, end); err == nil && !whole {
				f.InHolders = append(f.InHolders, id)
			}
		}
	}
	r.changes.raise()
	return f.Forgotten, f.err
}

// forget removes the runs that match from the history, with everything that terminals
// have printed until now.
func (r *recorder) forget(match func(history.Run) bool) (f forgetting) {
	r.readAll()
	f.ends = map[term.ID]int64{}
	f.Runs, f.Bytes, f.err = r.runs.opts.History.Forget(func(run history.Run) bool {
		if !match(run) {
			return false
		}
		end := run.End
		if run.Command == 0 || end < 0 {
			end = maxOffset
		}
		f.ends[term.ID(run.Terminal)] = max(f.ends[term.ID(run.Terminal)], end)
		return true
	})
	for id, x := range r.all {
		i := x.h.Info()
		_, found := f.ends[id]
		switch {
		case found && x.rd != nil && f.ends[id] == maxOffset: // it begins anew
			x.run.Start, x.run.Problems = x.w.End(), history.Problems{}
			r.put(x.run)
		case !found && x.run.ID == "" && i.Exit != nil: // the history has never had it
			run := x.record(i)
			if run.Ended, run.End = i.Exit.At, 0; match(run) {
				f.ends[id] = maxOffset
			}
		}
	}
	return f
}
