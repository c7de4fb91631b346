package runs

import (
	"time"

	"tether/agent/history"
	"tether/vocab"
)

// executed records that a command begins at the end of the text.
func (x *recording) executed(c vocab.Command) {
	if c.N <= x.begun || x.hidden {
		return // an earlier daemon has recorded it, or nobody does
	}
	x.begun = c.N
	c.Start, c.End = x.w.End(), 0
	dir := x.dir
	run := &history.Run{
		ID: runID(x.run.ID, c.N), Terminal: x.run.ID, Command: c.N, Name: x.run.Name, Line: x.shown.Redact(c.Text()), Dir: x.shown.Redact(dir),
		Owner: x.run.Owner, Started: c.Started, Start: c.Start, End: -1,
	}
	x.open[c.N] = run
	c.Show(x.shown.Redact)
	x.note(history.Note{Kind: history.NoteCommand, Command: &c})
	x.r.put(*run)
	x.exam.begin(*run)
	x.r.runs.checkoutOf(dir, c.Started, func(is vocab.Checkout) {
		x.r.post(func() {
			if x.open[c.N] == run {
				x.place(run, is)
			} else if done, err := x.r.runs.opts.History.Run(run.ID); err == nil && done.Checkout == nil {
				x.place(&done, is)
			}
		})
	})
}

// finished records that a command has ended at the end of the text.
func (x *recording) finished(c vocab.Command) {
	run := x.open[c.N]
	if run == nil {
		return // its beginning was not recorded
	}
	if line := x.shown.Redact(c.Text()); line != "" {
		run.Line = line // the shell may report it late
	}
	if is := c.Checkout; is != nil && (run.Checkout == nil || run.Checkout.Commit != is.Commit) {
		run.Checkout = new(*is)
		run.Checkout.Show(x.shown.Redact)
	}
	var exit *vocab.Exit
	ended := endOf(&c)
	if c.Exit != nil {
		exit = &vocab.Exit{Code: *c.Exit, Reason: vocab.ExitItself, At: ended}
	}
	c.Start, c.End = run.Start, x.w.End()
	c.Show(x.shown.Redact)
	x.note(history.Note{Kind: history.NoteFinished, Command: &c})
	x.finish(c.N, *run, exit, ended)
}

// finish puts the last record of a command; exit is nil if it is not known.
func (x *recording) finish(n int, run history.Run, exit *vocab.Exit, ended time.Time) {
	delete(x.open, n)
	run.Exit, run.Ended, run.End, run.Lost = exit, endTime(ended, run.Started), x.w.End(), exit == nil
	run.Stopped = x.stopped(ended)
	x.exam.end(&run)
	x.r.put(run)
}

// reconcile ends the commands that have ended within a gap, and begins the one that runs
// behind it.
func (x *recording) reconcile() {
	all, err := x.h.Commands()
	if err != nil {
		return
	}
	pos := x.rd.Raw()
	for _, c := range all {
		if c.Start > pos {
			break
		}
		if !c.Running && c.End <= pos {
			x.finished(c)
		} else {
			x.executed(c)
		}
	}
}

// stopTime is how long before the end of a run a ^C may have been typed that has ended
// it.
const stopTime = 2 * time.Second

// stopped reports whether ^C was typed shortly before a run ended.
func (x *recording) stopped(ended time.Time) bool {
	at := x.h.Info().Interrupted
	return !at.IsZero() && ended.Sub(at) < stopTime && ended.Sub(at) > -stopTime
}

// endTime returns when a run ended that began at a time. The holder knows when the child
// ended; that a command began is known when its mark was read, perhaps later. Clocks may
// be set back, too.
func endTime(ended, began time.Time) time.Time {
	if ended.Before(began) {
		return began
	}
	return ended
}

// endOf returns when a command ended.
func endOf(c *vocab.Command) time.Time {
	if c.DurationMs == nil {
		return time.Now()
	}
	return c.Started.Add(time.Duration(*c.DurationMs * float64(time.Millisecond)))
}
