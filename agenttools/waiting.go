package agenttools

import (
	"cmp"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"tether/screen"
	"tether/vocab"
)

// wait is one wait in progress.
type wait struct {
	terminal Terminal
	pattern  *regexp.Regexp
	idle     time.Duration // how long nothing must be printed; 0 means that this is not a condition
	command  bool          // the end of a command ends the wait
	verified bool          // only verified commands count
	probes   []probe
	since    int64 // offset after which output counts; -1 if not given
	timeout  time.Duration
	settle   time.Duration // how long a line that may still change must stay the same to match
	text     int           // bytes of output in the answer as a JSON string; 0 means waitText

	began    time.Time
	result   WaitAnswer
	screen   *screen.Screen
	standing map[string]time.Time // lines that match and may still change, and since when each has been the same
	quiet    time.Time            // since when nothing was printed; zero until the output that was there is examined
}

// run waits. Whatever else than output meets a condition ends the context of the reading;
// the context's cause is the reason. run returns ctx's error when ctx ends.
func (w *wait) run(ctx context.Context) (*WaitAnswer, error) {
	w.began = time.Now()
	i := w.terminal.Info()
	w.screen = screen.New(i.Cols, i.Rows)
	w.screen.ShowLinks()
	from := max(w.since, i.Start)
	rd, err := w.terminal.Read(from)
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	w.result.Cursor = from
	if w.command && w.since < 0 {
		if last := w.lastCommand(); last == nil || !last.Running {
			w.result.Cursor = i.End
			return w.done(ReasonCommand, last), nil
		}
	}
	if w.since < 0 {
		w.since = i.End // commands that finished before do not count
	}
	within, cancel := context.WithTimeoutCause(ctx, w.timeout, ReasonTimeout)
	defer cancel()
	inner, end := context.WithCancelCause(within)
	wait := w.startProbes(inner, end)
	defer wait()
	defer end(nil)
	for ev, err := range Available(rd) { // which counts, even if the wait is over meanwhile
		if err != nil || ctx.Err() != nil {
			return nil, cmp.Or(err, ctx.Err())
		}
		if !w.See(ev) {
			return &w.result, nil
		}
		if ev.Off >= i.End && len(ev.Data) > 0 {
			break
		}
	}
	err = Follow(inner, rd, w)
	why, ended := errors.AsType[Reason](context.Cause(inner))
	switch {
	case err == nil:
		return &w.result, nil
	case errors.Is(err, io.EOF):
		return w.done(ReasonExit, nil), nil
	case !ended:
		return nil, err
	case why == ReasonTimeout && w.timeout < w.settle && len(w.standing) > 0 && !w.match(true):
		return &w.result, nil // so short a wait accepts a line that may still change
	}
	return w.done(why, nil), nil
}

// counts reports whether the end of c ends the wait. A command within another one does
// not end it; the end of the outer command does.
func (w *wait) counts(c vocab.Command) bool {
	return w.command && c.Within == 0 && (c.Verified || !w.verified)
}

// lastCommand returns the newest command that counts, or nil.
func (w *wait) lastCommand() *Command {
	for _, c := range slices.Backward(w.terminal.Commands()) {
		if w.counts(c) {
			return cleanCommand(c)
		}
	}
	return nil
}

// See implements Follower.
func (w *wait) See(ev Event) bool {
	w.result.Cursor = ev.Off
	w.result.Masked += ev.Masked
	switch {
	case ev.Exited:
		if len(w.standing) == 0 || w.match(true) {
			w.done(ReasonExit, nil)
		}
		return false
	case ev.Resized != nil:
		w.screen.Resize(ev.Resized[0], ev.Resized[1])
	case ev.Finished != nil && w.counts(*ev.Finished) && ev.Off >= w.since:
		w.done(ReasonCommand, cleanCommand(*ev.Finished))
		return false
	case len(ev.Data) > 0:
		w.quiet = time.Time{}
		w.screen.Write(ev.Data)
		if w.pattern != nil {
			return w.match(false)
		}
		w.screen.Keep(waitText)
	}
	return true
}

// Stands implements Follower: for a line that has stayed the same, and for silence.
func (w *wait) Stands() (at time.Time) {
	if w.quiet.IsZero() {
		w.quiet = time.Now()
	}
	if w.idle > 0 {
		at = w.quiet.Add(w.idle)
	}
	for _, since := range w.standing {
		if until := since.Add(w.settle); at.IsZero() || until.Before(at) {
			at = until
		}
	}
	return at
}

// Stand implements Follower.
func (w *wait) Stand() bool {
	if len(w.standing) > 0 && !w.match(false) {
		return false
	}
	if w.idle > 0 && time.Since(w.quiet) >= w.idle {
		w.done(ReasonIdle, nil)
		return false
	}
	return true
}

// match looks for the pattern in the available lines, and reports whether the wait goes
// on. A line counts if it is final or has stayed the same for the settle time. all makes
// every line count, for use at the end of the output or of the wait.
func (w *wait) match(all bool) (more bool) {
	text, final := w.screen.Lines()
	now, at := time.Now(), 0
	standing := map[string]time.Time{}
	for line := range strings.Lines(text) {
		at += len(line)
		line = strings.TrimSuffix(line, "\n")
		if !w.pattern.MatchString(line) {
			continue
		}
		since, ok := w.standing[line]
		if !ok {
			since = now
		}
		if all || at <= final || now.Sub(since) >= w.settle {
			w.result.Line = line[:min(len(line), maxLine, cmp.Or(w.text, waitText)/2)]
			w.result.Line = strings.ToValidUTF8(w.result.Line, "")
			w.done(ReasonPattern, nil)
			return false
		}
		standing[line] = since
	}
	w.standing = standing
	w.screen.Keep(waitText) // what the answer needs
	return true
}

// done fills in the answer and returns it.
func (w *wait) done(why Reason, c *Command) *WaitAnswer {
	r := &w.result
	r.Reason, r.Command, r.ElapsedMs = why, c, time.Since(w.began).Milliseconds()
	r.Cursor -= int64(w.screen.Pending())
	r.History, _ = w.screen.History()
	r.History, _ = query{bytes: cmp.Or(w.text, waitText), quoted: w.text > 0}.fit(r.History)
	for _, p := range w.probes {
		p.tell(r)
	}
	i := w.terminal.Info()
	r.Exited, r.ExitFields = i.Exit != nil, exitOf(i)
	if i.Exit != nil {
		r.ExitReason = i.Exit.Reason // ExitFields.Reason is hidden by WaitAnswer.Reason
	}
	return r
}
