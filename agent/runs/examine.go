package runs

import (
	"time"

	"tether/agent/history"
	"tether/agent/verdict"
	"tether/problems"
	"tether/vocab"
)

// What an examiner may look at, in bytes. Of more it looks at the newest.
const (
	examineRate  = 256 << 10 // in a second
	examineBurst = 1 << 20
	examineHeld  = 64 << 10 // that wait until it may
)

const (
	// A round has settled when nothing was printed for so long: after errors, or the line
	// with which a tool says that there are none; without either; and, of tools that tell
	// the end of a round, when that does not come.
	settlesSoon  = 300 * time.Millisecond
	settlesQuiet = 3 * time.Second
	settlesLate  = time.Minute
)

// examiner looks at what the runs of one terminal print: it counts problems, and finds
// the rounds of tools that watch files. It belongs to the recorder's goroutine.
type examiner struct {
	x       *recording
	tracker *problems.Tracker
	at      int64  // text offset up to which the tracker has looked
	held    []byte // text behind that
	may     int64  // bytes that it may look at now; may be negative
	mayAt   time.Time
	moved   time.Time // when the last text came
	timer   *time.Timer
	due     time.Time // when settle will be called; zero if it will not

	// Of the run that is examined: the newest command that runs, or the terminal if it
	// has had none.
	rounds  int // of the tracker, that were noticed
	from    int64
	began   time.Time // of the present round
	settled bool      // something was noted about the present round
	noted   history.Problems
	before  *history.Problems // of what was there before the first round
	ready   vocab.ReadyState
}

func (x *recording) newExaminer() examiner {
	return examiner{x: x, may: examineBurst}
}

// begin says that a run begins, or goes on in another daemon: the terminal, or a command
// in it.
func (e *examiner) begin(run history.Run) {
	if e.x == nil {
		return
	}
	if run.Command == 0 {
		e.at = e.x.w.End()
		e.tracker = problems.NewTracker(e.x.r.runs.matchers(), e.at)
		for _, open := range e.x.open { // of the daemon before
			run = *open
		}
	}
	e.look()
	e.tracker.Begin(run.Line, run.Dir)
	e.rounds, e.from, e.began = 0, run.Start, run.Started
	e.settled, e.noted, e.before = false, run.Problems, nil
}

// text is text at an offset, which follows on the text before.
func (e *examiner) text(off int64, p []byte, now time.Time) {
	if e.x == nil {
		return
	}
	if n := off - e.at - int64(len(e.held)); n > 0 {
		e.lost(n)
	}
	if e.mayAt.IsZero() {
		e.mayAt = now
	}
	e.may = min(e.may+int64(now.Sub(e.mayAt).Seconds()*examineRate), examineBurst)
	e.mayAt, e.moved = now, now
	if len(e.held)+len(p) > examineHeld && e.may <= 0 {
		if n := min(len(e.held)+len(p)-examineHeld, len(e.held)); n > 0 {
			e.skip(n)
		}
		if n := len(p) - examineHeld; n > 0 {
			e.tracker.Lost(int64(n))
			e.at += int64(n)
			p = p[n:]
		}
	}
	e.held = append(e.held, p...)
	if e.may > 0 {
		e.look()
	}
	if e.watches() {
		e.expect(settlesSoon)
	}
}

// skip leaves out the first bytes that wait.
func (e *examiner) skip(n int) {
	e.tracker.Lost(int64(n))
	e.at += int64(n)
	e.held = e.held[:copy(e.held, e.held[n:])]
}

// lost says that so many bytes follow that nobody knows.
func (e *examiner) lost(n int64) {
	if e.x == nil {
		return
	}
	e.look()
	e.tracker.Lost(n)
	e.at += n
}

// pause has less looked at in a flood: what waits when more of it is left out.
func (e *examiner) pause(now time.Time) { e.may, e.mayAt = min(e.may, 0), now }

// look has the tracker look at what waits.
func (e *examiner) look() {
	if len(e.held) == 0 {
		return
	}
	defer e.survive()
	e.tracker.Write(e.at, e.held)
	e.may -= int64(len(e.held))
	e.at += int64(len(e.held))
	if cap(e.held) > examineHeld {
		e.held = nil
	}
	e.held = e.held[:0]
	if n, at, _ := e.tracker.Rounds(); n > e.rounds {
		e.rounds = n
		e.from, e.began, e.settled = at, e.moved, false
	}
}

// survive goes on behind output that caused a panic.
func (e *examiner) survive() {
	if why := recover(); why != nil {
		e.x.r.runs.opts.Logger.Error().Interface("panic", why).Msg("a run's output was not examined")
		e.at += int64(len(e.held))
		e.held = nil
		e.tracker = problems.NewTracker(e.x.r.runs.matchers(), e.at)
	}
}

// current returns the run that is examined, nil between the commands of a shell.
func (e *examiner) current() *history.Run {
	var newest *history.Run
	for _, run := range e.x.open {
		if newest == nil || run.Command > newest.Command {
			newest = run
		}
	}
	if newest == nil && e.x.begun == 0 {
		newest = &e.x.run
	}
	return newest
}

// watches reports whether the present run can have a verdict while it goes on.
func (e *examiner) watches() bool { return e.rounds > 0 || e.ready != "" }

// become says that a declared terminal has another state.
func (e *examiner) become(ready vocab.ReadyState) {
	if e.x == nil || ready == e.ready {
		return
	}
	e.ready, e.settled = ready, false
	if e.x.run.Running() {
		e.expect(settlesSoon)
	}
}

// expect has settle called after a time, or before.
func (e *examiner) expect(after time.Duration) {
	due := time.Now().Add(after)
	if !e.due.IsZero() {
		if !e.due.After(due) {
			return
		}
		e.timer.Stop()
	}
	e.due = due
	e.timer = time.AfterFunc(after, func() {
		e.x.r.post(func() {
			if e.due = (time.Time{}); e.x.rd != nil {
				e.settle(time.Now())
			}
		})
	})
}

// settle notes how a round has ended, if it has.
func (e *examiner) settle(now time.Time) {
	run := e.current()
	if run == nil || !e.watches() {
		return
	}
	e.look()
	found := e.found(run)
	wait := settlesQuiet
	switch _, _, open := e.tracker.Rounds(); {
	case found.Errors > 0, e.tracker.Succeeded():
		wait = settlesSoon
	case open:
		wait = settlesLate
	}
	if left := wait - now.Sub(e.moved); left > 0 {
		e.expect(left)
		return
	}
	if e.settled && found.Errors == e.noted.Errors && found.Warnings == e.noted.Warnings {
		return
	}
	e.settled, e.noted = true, found
	if run.Problems = found; e.rounds == 0 {
		e.before = &found
		e.x.r.put(*run)
		e.judge(*run, e.outcome(run, found))
		return
	}
	e.round(*run, found)
}

// outcome is that of a run that goes on, after a round with these problems.
func (e *examiner) outcome(run *history.Run, found history.Problems) verdict.Outcome {
	is := judged(*run)
	is.Found = verdict.Found{Errors: found.Errors, Warnings: found.Warnings}
	if e.rounds > 0 {
		is.Rounds = []verdict.Round{{Found: is.Found}}
	}
	is.Ready = e.ready
	outcome, _ := is.Outcome()
	return outcome
}

// round notes a round that has settled, with the work tree of now: a tool may begin while
// git still checks out files.
func (e *examiner) round(run history.Run, found history.Problems) {
	x := e.x
	if run.Rounds == 0 && e.before != nil {
		e.note(run, history.Note{From: run.Start, Began: run.Started, Checkout: run.Checkout, Problems: e.before})
	}
	note := history.Note{From: e.from, Began: e.began, Problems: &found}
	outcome := e.outcome(&run, found)
	done := false
	add := func(c *vocab.Checkout) {
		if done || x.rd == nil {
			return
		}
		done = true
		note.Checkout = c
		run := e.note(run, note)
		run.Checkout = c // the event is about this commit
		e.judge(run, outcome)
	}
	finder := x.r.runs.opts.Checkouts
	if finder == nil {
		add(nil)
		return
	}
	dir, shown := x.dir, x.shown
	go func() { // it ends after some seconds at most
		c, ok := finder.Find(dir)
		if ok {
			c.Changes = x.r.runs.trees.changes(c.Worktree, time.Now())
			c.Show(shown.Redact)
		}
		x.r.post(func() {
			if ok {
				add(&c)
			} else {
				add(nil)
			}
		})
	}()
}

// note adds a note of a round to the history and counts it in the run's record, which it
// returns.
func (e *examiner) note(run history.Run, n history.Note) history.Run {
	n.Kind = history.NoteRound
	e.x.note(n)
	is := &e.x.run
	if run.Command > 0 {
		if is = e.x.open[run.Command]; is == nil { // it has ended meanwhile
			run.Rounds++
			return run
		}
	}
	is.Rounds++
	is.Problems = *n.Problems
	e.x.r.put(*is)
	return *is
}

// found returns the problems of a run that are not cleared.
func (e *examiner) found(run *history.Run) history.Problems {
	var f history.Problems
	all := e.tracker.Problems(run.Start)
	for _, p := range all {
		switch p.Severity {
		case problems.Error:
			f.Errors++
		case problems.Warning:
			f.Warnings++
		}
	}
	for _, severity := range []problems.Severity{problems.Error, problems.Warning} {
		for _, p := range all {
			if p.Severity == severity && len(f.First) < history.MaxProblems {
				p.First, p.Last = p.First-run.Start, p.Last-run.Start
				f.First = append(f.First, p)
			}
		}
	}
	return f
}

// end completes the record of a run that has ended.
func (e *examiner) end(run *history.Run) {
	if e.x == nil {
		return
	}
	e.look()
	e.tracker.End()
	run.Problems = e.found(run)
	is := judged(*run)
	if run.Rounds > 1 {
		is.Rounds = make([]verdict.Round, run.Rounds) // a watcher's end says nothing, unless it failed
		if outcome, _ := is.Outcome(); outcome == verdict.Good {
			return
		}
	}
	outcome, _ := is.Outcome()
	e.judge(*run, outcome)
}

// judge tells those who wait if a run changes the verdict of its series.
func (e *examiner) judge(run history.Run, outcome verdict.Outcome) {
	if r := e.x.r.runs; r.verdicts.add(r.opts.History, run, outcome) {
		r.changes.raise()
	}
}
