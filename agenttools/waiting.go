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
}

// run waits. Any goroutine that notices a condition ends the context of the call that blocks; the context's cause is the reason. run
// returns ctx's error when ctx ends.
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
	inner, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(w.timeout, func() { end(ReasonTimeout) })
	defer timer.Stop()
	wait := w.startProbes(inner, end)
	defer wait()
	defer end(nil)
	return w.follow(inner, end, rd)
}

// counts reports whether the end of c ends the wait. A command within another one does not end it; the end of the outer command does.
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

// follow reads until a condition is met or the context ends. Output that existed when the wait began is examined in any case.
func (w *wait) follow(ctx context.Context, end context.CancelCauseFunc, rd Reader) (*WaitAnswer, error) {
	buf := make([]byte, 32<<10)
	there := w.terminal.Info().End
	var idle *time.Timer
	for {
		if ctx.Err() != nil && (w.result.Cursor >= there || !isReason(context.Cause(ctx))) {
			return w.over(ctx)
		}
		ev, ok, err := rd.TryNext(buf)
		if !ok && err == nil {
			if idle == nil && w.idle > 0 { // all available output was read
				idle = time.AfterFunc(w.idle, func() { end(ReasonIdle) })
				defer idle.Stop()
			}
			ev, err = w.next(ctx, rd, buf)
		}
		switch {
		case errors.Is(err, errStands):
			if r := w.match(false); r != nil {
				return r, nil
			}
			continue
		case errors.Is(err, io.EOF):
			return w.done(ReasonExit, nil), nil
		case err != nil && ctx.Err() != nil:
			return w.over(ctx)
		case err != nil:
			return nil, err
		}
		w.result.Cursor = ev.Off
		w.result.Masked += ev.Masked
		if len(ev.Data) > 0 && idle != nil {
			idle.Reset(w.idle)
		}
		if r := w.see(ev); r != nil {
			return r, nil
		}
	}
}

// errStands says that no output came until a matching line had stayed the same for long enough.
var errStands = errors.New("a line stands")

// next calls the reader's Next, but returns errStands when a matching line has stayed the same for the settle time.
func (w *wait) next(ctx context.Context, rd Reader, buf []byte) (Event, error) {
	if len(w.standing) == 0 {
		return rd.Next(ctx, buf)
	}
	first := time.Now()
	for _, since := range w.standing {
		if since.Before(first) {
			first = since
		}
	}
	until, cancel := context.WithDeadline(ctx, first.Add(w.settle))
	defer cancel()
	ev, err := rd.Next(until, buf)
	if err != nil && until.Err() != nil && ctx.Err() == nil {
		return Event{}, errStands
	}
	return ev, err
}

// over returns the result of a wait whose context has ended: the answer if a condition is met, else the context's error. A wait whose
// timeout is shorter than the settle time accepts a line that may still change.
func (w *wait) over(ctx context.Context) (*WaitAnswer, error) {
	var why Reason
	if !errors.As(context.Cause(ctx), &why) {
		return nil, ctx.Err()
	}
	if why == ReasonTimeout && w.timeout < w.settle && len(w.standing) > 0 {
		if r := w.match(true); r != nil {
			return r, nil
		}
	}
	return w.done(why, nil), nil
}

func isReason(err error) bool {
	var why Reason
	return errors.As(err, &why)
}

// see examines one event. It returns nil if the event meets no condition.
func (w *wait) see(ev Event) *WaitAnswer {
	switch {
	case ev.Exited:
		if len(w.standing) > 0 {
			if r := w.match(true); r != nil {
				return r
			}
		}
		return w.done(ReasonExit, nil)
	case ev.Resized != nil:
		w.screen.Resize(ev.Resized[0], ev.Resized[1])
	case ev.Finished != nil && w.counts(*ev.Finished) && ev.Off >= w.since:
		c := cleanCommand(*ev.Finished)
		return w.done(ReasonCommand, c)
	case len(ev.Data) > 0:
		w.screen.Write(ev.Data)
		if w.pattern != nil {
			return w.match(false)
		}
		w.bound()
	}
	return nil
}

// match looks for the pattern in the available lines. A line counts if it is final or has stayed the same for the settle time. all makes
// every line count, for use at the end of the output or of the wait.
func (w *wait) match(all bool) *WaitAnswer {
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
			return w.done(ReasonPattern, nil)
		}
		standing[line] = since
	}
	w.standing = standing
	w.bound()
	return nil
}

// bound drops the text that has left the screen, except for the end of it, which the answer needs.
func (w *wait) bound() {
	w.screen.Keep(waitText)
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
