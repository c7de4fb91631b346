package local

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"tether/agent/history"
	"tether/agent/localapi"
	"tether/agent/runs"
	"tether/agent/term"
	"tether/agent/verdict"
	"tether/agenttools"
	"tether/internal/clip"
	"tether/vocab"
)

// Bounds of requests about runs.
const (
	usualRuns     = 100
	maxRuns       = 100_000
	searchTimeout = 10 * time.Second
	maxSearch     = 10 * time.Minute
	maxRunText    = 4 << 10 // bytes of a name, directory or id
)

// kept returns the runs that the caller may see.
func (s *Server) kept(r *http.Request) (runs.View, error) {
	if s.opts.Runs == nil {
		return runs.View{}, &localapi.Error{Code: localapi.CodeNotFound, Message: "nothing that terminals print is kept: history.keep is 0s", Hint: `[history] keep = "7d" in the configuration turns it on`}
	}
	return s.opts.Runs.As(runs.Asker{Actor: ActorFrom(r.Context())}), nil
}

// runQuery reads the parameters that choose runs.
func runQuery(q params) (history.Query, error) {
	c := history.Query{Name: q.Get("name"), Dir: q.Get("dir")}
	for name, text := range map[string]string{"name": c.Name, "dir": c.Dir} {
		if len(text) > maxRunText {
			return c, localapi.BadRequest("%s has %d bytes, at most %d", name, len(text), maxRunText)
		}
	}
	var err error
	if since := q.Get("since"); since != "" {
		if c.Since, err = time.Parse(time.RFC3339, since); err != nil {
			return c, q.bad("since", "a time such as 2026-01-31T12:00:00Z")
		}
	}
	return c, nil
}

// listRuns answers with the kept runs, as lines, the newest first.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	c, err := runQuery(q)
	if err != nil {
		return err
	}
	most, err := q.number("max", maxRuns)
	if err = cmp.Or(err, q.unknown()); err != nil {
		return err
	}
	most = cmp.Or(most, usualRuns)
	v, err := s.kept(r)
	if err != nil {
		return err
	}
	out := s.jsonLines(w)
	for run := range v.List(c) {
		if most--; most < 0 {
			return out.end(localapi.RunLine{More: true})
		}
		if err := out.send(localapi.RunLine{Run: runOf(v, &run)}, false); err != nil {
			return nil // the client is gone
		}
	}
	return out.end(localapi.RunLine{})
}

// searchRuns answers with lines of runs that match, the newest first.
func (s *Server) searchRuns(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	c, err := runQuery(q)
	if err != nil {
		return err
	}
	most, err := q.number("max", history.MaxHits)
	around, err2 := q.number("context", history.MaxContext)
	ms, err3 := q.number("timeout_ms", maxSearch.Milliseconds())
	find := history.Search{Runs: c, Context: int(around), Most: int(most)}
	var wrong error
	if find.Expression, wrong = history.Compile(q.Get("pattern"), q.Get("fixed") == "1", q.Get("ignore_case") == "1"); wrong != nil {
		wrong = localapi.BadRequest("%s", wrong)
	}
	if err := cmp.Or(err, err2, err3, wrong, q.unknown()); err != nil {
		return err
	}
	v, err := s.kept(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(time.Duration(ms)*time.Millisecond, searchTimeout))
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	out := s.jsonLines(w)
	end, err := v.Search(ctx, find, func(x history.Hit) bool {
		return out.send(localapi.FoundLine{Hit: hitOf(&x)}, true) == nil
	})
	if err != nil {
		return nil // the client is gone, or the daemon ends: the last line is missing
	}
	return out.end(localapi.FoundLine{Hits: end.Hits, Back: end.Back, More: end.More})
}

func hitOf(x *history.Hit) *localapi.Hit {
	return &localapi.Hit{Run: x.Run.ID, Name: x.Run.Name, RunLine: clip.Marked(x.Run.Line, 200), Cwd: x.Run.Dir, Time: x.Time, Offset: x.Offset, Before: x.Before, Line: x.Line, Match: x.Match, After: x.After}
}

func runOf(v runs.View, r *history.Run) *localapi.Run {
	outcome, why := v.Outcome(*r)
	x := &localapi.Run{ID: r.ID, Name: r.Name, Line: r.Line, Cwd: r.Dir, Owner: cmp.Or(r.Owner, term.User.String()), Checkout: r.Checkout, Started: r.Started, Ended: r.Ended, Outcome: string(outcome), Why: why,
		Exit: r.Exit, Ready: r.Ready, Errors: r.Problems.Errors, Warnings: r.Problems.Warnings, Bytes: max(r.End-r.Start, 0), Dropped: r.Dropped}
	x.First = verdict.ProblemTexts(r.Problems.First)
	return x
}

// jsonLines writes an answer that is lines of JSON.
type jsonLines struct {
	buf *bufio.Writer
	enc *json.Encoder
}

func (s *Server) jsonLines(w http.ResponseWriter) *jsonLines {
	w.Header().Set("Content-Type", "application/x-ndjson")
	buf := bufio.NewWriterSize(&deadlined{w: w, control: http.NewResponseController(w), timeout: s.opts.WriteTimeout}, 32<<10)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &jsonLines{buf, enc}
}

// send writes a line, at once if now is set.
func (l *jsonLines) send(x any, now bool) error {
	if err := l.enc.Encode(x); err != nil || !now {
		return err
	}
	return l.buf.Flush()
}

// end writes the last line.
func (l *jsonLines) end(x any) error {
	_ = l.send(x, true) // fails when the client is gone
	return nil
}

// run returns the run of the path: that with this id, or the newest of this name.
func (s *Server) run(r *http.Request) (agenttools.Terminal, error) {
	v, err := s.kept(r)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("run")
	t, err := v.Open(id)
	if !errors.Is(err, agenttools.ErrNotFound) {
		return t, err
	}
	for newest := range v.List(history.Query{Name: id}) {
		return v.Open(newest.ID)
	}
	return nil, unknownRun(id)
}

func unknownRun(ref string) error {
	return &localapi.Error{Code: localapi.CodeNoTerminal, Message: fmt.Sprintf("no such run: %.80q", ref), Hint: "tether runs lists the runs"}
}

// runOutput answers with the text of a run.
func (s *Server) runOutput(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	lines, err := q.number("lines", maxLines)
	command, err2 := q.number("command", math.MaxInt32)
	from, err3 := q.number("from", 1<<62)
	if err := cmp.Or(err, err2, err3, q.unknown()); err != nil {
		return err
	}
	t, err := s.run(r)
	if err != nil {
		return err
	}
	i := t.Info()
	from, to := max(from, i.Start), i.End
	if command > 0 {
		c, err := commandOf(t, int(command))
		if err != nil {
			return err
		}
		from, to = c.Start, c.End
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	out := &deadlined{w: w, control: http.NewResponseController(w), timeout: s.opts.WriteTimeout}
	if _, err := out.Write(nil); err != nil {
		return nil // the client is gone
	}
	if lines > 0 {
		return tailOfRun(r.Context(), out, t, from, to, int(lines))
	}
	return copyRun(r.Context(), out, t, from, to)
}

// commandOf returns a command of a run that is a shell.
func commandOf(t agenttools.Terminal, n int) (vocab.Command, error) {
	all := t.Commands()
	if i := slices.IndexFunc(all, func(c vocab.Command) bool { return c.N == n }); i >= 0 {
		return all[i], nil
	}
	e := localapi.BadRequest("no command %d in this run", n)
	e.Hint = "tether runs ID lists a shell's commands as runs"
	return vocab.Command{}, e
}

// copyRun writes the text of a run from an offset to before another.
func copyRun(ctx context.Context, out io.Writer, t agenttools.Terminal, from, to int64) error {
	if from >= to {
		return nil
	}
	rd, err := t.Read(from)
	if err != nil {
		return err
	}
	defer rd.Close()
	for ev, err := range agenttools.Available(rd) {
		if err != nil || ctx.Err() != nil {
			return nil
		}
		p := ev.Data
		if n := ev.Lost + ev.Missing; n > 0 {
			p = lostLine(n)
		} else if ev.Off > to {
			p = p[:max(0, int64(len(p))-(ev.Off-to))]
		}
		if _, err := out.Write(p); err != nil || ev.Off >= to {
			return nil
		}
	}
	return nil
}

// tailOfRun writes the last lines of a run.
func tailOfRun(ctx context.Context, out io.Writer, t agenttools.Terminal, from, to int64, lines int) error {
	for tail := int64(lines) * lineGuess; ; tail *= 4 {
		start := max(from, to-tail)
		var all limited
		if err := copyRun(ctx, &all, t, start, to); err != nil {
			return err
		}
		last := clip.Last(all.data, lines)
		if start == from || len(last) < len(all.data) || all.full {
			_, _ = out.Write(last) // fails when the client is gone
			return nil
		}
	}
}

// limited keeps what is written, up to the size of what is kept of one terminal.
type limited struct {
	data []byte
	full bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.full = len(l.data)+len(p) > 40<<20; l.full {
		return 0, io.ErrShortWrite
	}
	l.data = append(l.data, p...)
	return len(p), nil
}

// forget removes runs.
func (s *Server) forget(w http.ResponseWriter, r *http.Request, req localapi.ForgetRequest) error {
	given := 0
	for _, is := range []bool{len(req.Runs) > 0, !req.Before.IsZero(), req.All} {
		if is {
			given++
		}
	}
	if given != 1 || len(req.Runs) > maxForget {
		return localapi.BadRequest("exactly one of runs (at most %d), before and all must be set", maxForget)
	}
	v, err := s.kept(r)
	if err != nil {
		return err
	}
	known := make([]bool, len(req.Runs))
	gone := func(run history.Run) bool {
		if len(req.Runs) == 0 {
			return req.All || !run.Running() && run.Ended.Before(req.Before)
		}
		is := false
		for i, ref := range req.Runs {
			if (history.Query{Name: ref}).Matches(&run) {
				known[i], is = true, true
			}
		}
		return is
	}
	for run := range v.List(history.Query{}) {
		gone(run)
	}
	if i := slices.Index(known, false); i >= 0 {
		return unknownRun(req.Runs[i])
	}
	is, err := s.opts.Runs.Forget(r.Context(), gone)
	return answer(w, localapi.Forgotten{SchemaVersion: localapi.SchemaVersion, Runs: is.Runs, Bytes: is.Bytes, Terminals: is.Terminals, Pasts: is.Pasts, InHolders: len(is.InHolders)}, err)
}

// maxForget bounds the runs that a request names.
const maxForget = 1000

const (
	compareTimeout = 30 * time.Second
	maxSeries      = 100 // that a request for verdicts names
)

// compareRuns answers with what a run printed that an earlier one did not.
func (s *Server) compareRuns(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	c, err := runQuery(q)
	with := q.Get("with")
	if err = cmp.Or(err, q.unknown()); err != nil {
		return err
	}
	if c.Name == "" || len(with) > maxRunText {
		return localapi.BadRequest("name is missing, or with is too long")
	}
	v, err := s.kept(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), compareTimeout)
	defer cancel()
	is, err := v.Compare(ctx, c.Dir, c.Name, with)
	if err != nil {
		return runError(err)
	}
	return reply(w, localapi.Comparison{SchemaVersion: localapi.SchemaVersion, Run: is.Run, With: is.With, Comparison: is.Comparison, New: localapi.ProblemsOf(is.New), Gone: localapi.ProblemsOf(is.Gone)})
}

// judgeRuns answers with the verdicts of series.
func (s *Server) judgeRuns(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	c, err := runQuery(q)
	if err = cmp.Or(err, q.unknown()); err != nil {
		return err
	}
	names := q.values["name"]
	if len(names) > maxSeries {
		return localapi.BadRequest("%d names, at most %d", len(names), maxSeries)
	}
	v, err := s.kept(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), compareTimeout)
	defer cancel()
	all, err := v.Verdict(ctx, c.Dir, names)
	if err != nil {
		return runError(err)
	}
	list := localapi.VerdictList{SchemaVersion: localapi.SchemaVersion, Verdicts: make([]localapi.Verdict, 0, len(all))}
	for _, v := range all {
		list.Verdicts = append(list.Verdicts, localapi.VerdictOf(v))
	}
	return reply(w, list)
}

// runError says of which run it is that the caller may not see it; other errors have
// their reason in words.
func runError(err error) error {
	if unknown, ok := errors.AsType[*agenttools.UnknownRunError](err); ok {
		return unknownRun(unknown.Name)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return localapi.BadRequest("%s", err)
}
