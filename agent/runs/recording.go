package runs

import (
	"cmp"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"tether/agent/history"
	"tether/agent/output"
	"tether/agent/term"
	"tether/vocab"
)

// recording is a terminal that the recorder reads. It belongs to the recorder's
// goroutine.
type recording struct {
	r      *recorder
	h      term.Handle    // unmasked, for decisions
	shown  term.Handle    // masked
	rd     *output.Reader // nil: nothing is recorded of it
	w      *history.Writer
	run    history.Run          // of the terminal
	open   map[int]*history.Run // commands that run
	begun  int                  // highest number of a command that has a record
	dir    string               // at the reader's position, as it is
	hidden bool                 // dir is below a directory that is never lent
	waits  bool                 // for the rules to answer about dir
	end    int64                // of the output, in the last round
	jumps  time.Time            // when output of a flood was left out last
	rests  time.Time            // nothing of a flood is read until then
	lent   map[string]loan      // by what names the pairing
	exam   examiner
}

// loan is what was noted of a loan.
type loan struct {
	at      int64 // text offset at which it began
	version uint64
}

// begin begins to record a terminal, or goes on with it.
func (r *recorder) begin(h term.Handle) *recording {
	x := &recording{r: r, h: h, shown: h.Masked(), open: map[int]*history.Run{}, lent: map[string]loan{}}
	i := h.Info()
	if i.Private {
		return x
	}
	old, err := r.runs.opts.History.Run(string(h.ID()))
	if err == nil && !old.Running() && !old.Lost {
		x.run = old // it has ended, and everything was recorded
		return x
	}
	never, settled := r.runs.opts.Never("", i.StartCwd)
	if settled != nil {
		x.waits = true
		x.await(settled, func() {
			if r.all[h.ID()] == x {
				r.all[h.ID()] = r.begin(h)
			}
		})
	}
	if never || settled != nil {
		return x
	}
	x.start(i)
	return x
}

// await has do called by the recorder's goroutine once the rules have answered.
func (x *recording) await(settled <-chan struct{}, do func()) {
	go func() { // it ends when the file systems of the rules' directories have answered
		<-settled
		x.r.post(do)
	}()
}

// start opens the reader and the writer.
func (x *recording) start(i term.Info) {
	rd, err := x.h.Reader(output.ReaderOptions{View: output.ViewOutward, Background: true, Wake: x.r.wake})
	if err != nil {
		return // it is gone
	}
	w, err := x.r.runs.opts.History.Terminal(x.record(i))
	if err != nil {
		x.r.runs.opts.Logger.Debug().Err(err).Str("terminal", string(i.ID)).Msg("history")
	}
	if w == nil {
		rd.Close()
		return
	}
	x.rd, x.w, x.run = rd, w, w.Run()
	x.goOn()
	if x.run.Checkout == nil && w.End() == x.run.Start {
		x.r.runs.checkoutOf(i.StartCwd, i.Started, func(c vocab.Checkout) {
			x.r.post(func() { x.place(&x.run, c) })
		})
	}
	x.exam = x.newExaminer()
	x.exam.begin(x.run)
	x.r.dirty = true
	x.r.runs.changes.raise()
}

// goOn continues behind what earlier daemons have written.
func (x *recording) goOn() {
	x.rd.SeekText(x.w.End())
	for run := range x.r.runs.opts.History.List(history.Query{Terminal: x.run.ID}) {
		if x.begun = max(x.begun, run.Command); run.Command > 0 && run.Running() {
			x.open[run.Command] = new(run)
		}
	}
	if t, err := x.r.runs.opts.History.Text(x.run.ID); err == nil {
		notes, _ := t.Notes() // without them, nothing counts as lent
		for _, n := range notes {
			switch n.Kind {
			case history.NoteLent:
				x.lent[n.Host] = loan{at: n.Off}
			case history.NoteUnlent:
				delete(x.lent, n.Host)
			}
		}
		t.Close()
	}
	size := x.rd.Size()
	x.note(history.Note{Kind: history.NoteSize, Cols: int(size.Cols), Rows: int(size.Rows)})
	x.moved(x.rd.Dir())
}

// record returns the record of a terminal that begins.
func (x *recording) record(i term.Info) history.Run {
	given := i.Short == "" && len(i.Command) > 0 && i.Name != filepath.Base(i.Command[0])
	i = x.shown.Info()
	return history.Run{
		ID: string(i.ID), Terminal: string(i.ID), Name: i.Name, Named: given, Line: argv(i.Command), Dir: i.StartCwd,
		Owner: ownerOf(i.Owner), Started: i.Started, End: -1,
	}
}

// place adds a checkout to a run.
func (x *recording) place(run *history.Run, c vocab.Checkout) {
	c.Show(x.shown.Redact)
	run.Checkout = &c
	x.r.put(*run)
}

// close ends the reading.
func (x *recording) close() {
	if x.rd != nil {
		x.rd.Close()
		x.rd = nil
	}
}

// ready has the recorder woken when so many bytes can be read.
func (x *recording) ready(n int) {
	if x.rd != nil && !x.waits && (n == 1 || !x.resting()) {
		x.rd.Ready(n)
	}
}

func (x *recording) pending() int64 {
	if x.rd == nil || x.waits || x.resting() {
		return 0
	}
	return x.rd.Pending()
}

// resting reports whether nothing of a flood is read for a while.
func (x *recording) resting() bool { return time.Now().Before(x.rests) }

// jump leaves out output of a flood. If the flood fills what is left out within two
// rounds of syncs, only its newest output is read from now on, once a round: a budget of
// time alone would take much of a flood that is slow because the machine is busy. It
// reports whether the reader has moved.
func (x *recording) jump(ahead int64) bool {
	if lagged := x.rd.Skip(ahead); lagged == nil {
		return false
	}
	now := time.Now()
	if now.Sub(x.jumps) < 2*syncEvery {
		x.rests = now.Add(syncEvery)
	}
	x.jumps = now
	x.jumped()
	x.exam.pause(now)
	return true
}

// read records what can be read now, as far as the budget allows. It reports whether
// there may be more soon.
func (x *recording) read() (busy bool) {
	if x.rd == nil {
		x.follow()
		return false
	}
	i, before := x.h.Info(), x.end
	exited, prints := i.Exit != nil, i.Bytes != before
	x.end = i.Bytes
	if x.resting() && !exited && x.rd.Pending() > recordSmall {
		x.follow()
		return true
	}
	rest := int64(math.MaxInt64) // raw offset from which on a flood is left for later
	for more := true; more && !x.waits && x.rd != nil; {
		pending := x.rd.Pending()
		if pending > recordSmall && !exited && (!x.r.mayWork() || x.resting() && x.rd.Raw() >= rest) {
			return true
		}
		ahead, flood := int64(recordAhead), pending > recordFar && prints
		if exited {
			ahead, flood = recordExit, pending > recordExit
		}
		if flood && x.jump(ahead) {
			rest = x.rd.Raw() + ahead
		}
		began := time.Now()
		more = x.next(began)
		x.r.budget -= time.Since(began)
		busy = busy || more
	}
	x.follow()
	return busy
}

// next takes the next event; more is false if there is none.
func (x *recording) next(now time.Time) (more bool) {
	ev, ok, err := x.rd.TryNext(x.r.buf)
	_, lagged := errors.AsType[*output.LaggedError](err)
	switch {
	case lagged:
		x.jumped()
		return true
	case err == io.EOF, err != nil:
		x.close() // the exit was recorded, or the terminal is left to another daemon
		return false
	case !ok:
		return false
	case ev.Mark != nil:
		x.mark(ev.Mark, now)
	case len(ev.Data) > 0:
		x.text(ev.Off, ev.Data, now)
	}
	return true
}

// text adds text at an offset, as far as it is not there yet.
func (x *recording) text(off int64, p []byte, now time.Time) {
	x.reach(off)
	p = p[min(max(x.w.End()-off, 0), int64(len(p))):]
	if len(p) == 0 {
		return
	}
	p = x.lend(p, now)
	if x.hidden {
		x.lost(int64(len(p)))
		return
	}
	x.add(p, now)
}

// add appends text.
func (x *recording) add(p []byte, now time.Time) {
	if len(p) == 0 {
		return
	}
	at := x.w.End()
	_ = x.w.Append(p, now) // the history reports it
	x.r.dirty = true
	x.exam.text(at, p, now)
}

// reach makes the text that is not there up to an offset a gap.
func (x *recording) reach(off int64) {
	if n := off - x.w.End(); n > 0 {
		x.lost(n)
	}
}

func (x *recording) lost(n int64) {
	x.w.Missing(n)
	x.exam.lost(n)
}

// jumped goes on at the reader's position, after it has lost text.
func (x *recording) jumped() {
	x.reach(x.rd.Offset())
	if size := x.rd.Size(); size.Cols > 0 {
		x.note(history.Note{Kind: history.NoteSize, Cols: int(size.Cols), Rows: int(size.Rows)})
	}
	x.moved(x.rd.Dir())
	x.reconcile()
}

// note adds a note at the end of the text.
func (x *recording) note(n history.Note) {
	n.Time = time.Now()
	_ = x.w.Note(n) // the history reports it
	x.r.dirty = true
}

// mark records a mark at the reader's position.
func (x *recording) mark(m *output.Mark, now time.Time) {
	off := x.rd.Offset()
	if off < x.w.End() && m.Kind != output.MarkCwd && m.Kind != output.MarkExited {
		return // the daemon before has recorded it
	}
	x.reach(off)
	switch m.Kind {
	case output.MarkCommandExecuted:
		x.executed(m.Command)
	case output.MarkCommandFinished:
		x.finished(m.Command)
	case output.MarkCwd:
		x.moved(m.Text)
	case output.MarkResized:
		x.note(history.Note{Kind: history.NoteSize, Cols: int(m.Size.Cols), Rows: int(m.Size.Rows)})
	case output.MarkExited:
		x.exited(m.Exit)
	}
}

// moved records that the terminal is in a directory, and whether that is one of which
// nothing is recorded. While the rules do not answer, nothing is read.
func (x *recording) moved(dir string) {
	if dir == x.dir || dir == "" {
		return
	}
	never, settled := x.r.runs.opts.Never("", dir)
	if settled != nil {
		x.waits = true
		x.await(settled, func() {
			if x.waits = false; x.rd != nil {
				x.moved(dir)
			}
		})
		return
	}
	first := x.dir == ""
	x.dir, x.hidden = dir, never
	if shown := x.shown.Redact(dir); !never && (!first || shown != x.run.Dir) {
		x.note(history.Note{Kind: history.NoteDir, Dir: shown})
	}
}

// exited records the end of the terminal.
func (x *recording) exited(e vocab.Exit) {
	x.follow()
	x.reconcile()
	for n, run := range x.open {
		x.finish(n, *run, nil, e.At)
	}
	x.run.Exit, x.run.Ended, x.run.End = &e, endTime(cmp.Or(e.At, time.Now()), x.run.Started), x.w.End()
	x.run.Stopped = x.stopped(e.At)
	x.exam.end(&x.run)
	_ = x.w.Finish(x.run) // the history reports it
	x.run = x.w.Run()
	x.r.dirty = true
	x.r.runs.changes.raise()
}

// follow records changes of the terminal that are no part of its output.
func (x *recording) follow() {
	if x.run.ID == "" {
		return // nothing is recorded of it
	}
	i := x.h.Info()
	was := x.run
	x.run.Owner = ownerOf(i.Owner)
	x.run.Ready = x.run.Ready || i.Ready == vocab.ReadyYes || i.Ready == vocab.ReadyStopped
	x.run.Lent = x.r.hosts(i.Loans)
	if x.rd != nil {
		x.lend(nil, time.Now())
		x.exam.become(i.Ready)
	}
	if x.run.Owner != was.Owner || x.run.Ready != was.Ready || !slices.Equal(x.run.Lent, was.Lent) {
		x.r.put(x.run)
	}
}
