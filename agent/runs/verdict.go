package runs

import (
	"context"
	"errors"
	"iter"
	"path"
	"slices"
	"strings"

	"tether/agent/history"
	"tether/agent/term"
	"tether/agent/verdict"
	"tether/agenttools"
	"tether/problems"
	"tether/vocab"
)

// Bounds of a verdict.
const (
	maxVerdicts   = 20     // series that one answer is about
	maxJudged     = 300    // runs of a series that are looked at
	maxLookedAt   = 50_000 // runs that are looked at for one answer
	maxCandidates = 500    // series that are found at most
)

// series are the runs of a series, newest first.
type series struct {
	runs  []history.Run
	shell bool // it is that of a shell, whose exit status says nothing
}

// Verdict judges the series with these names or command lines, or those of the runs and
// terminals with these ids: at most 20 series. Without names it judges what is named,
// what was started as a terminal, and commands of shells in which problems were
// recognised or that were good and failing; what fails is first. dir, if it is not "", is
// a directory in or below which the runs are. A name without runs is an
// *agenttools.UnknownRunError.
func (v View) Verdict(ctx context.Context, dir string, names []string) ([]verdict.Verdict, error) {
	found, err := v.series(ctx, dir, names)
	if err != nil {
		return nil, err
	}
	var all []verdict.Verdict
	for _, s := range found {
		if len(names) == 0 && !s.worthTelling() {
			continue
		}
		if len(all) == maxVerdicts {
			break
		}
		if all = append(all, v.judge(ctx, s.runs)); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if len(names) == 0 {
		slices.SortStableFunc(all, func(a, b verdict.Verdict) int { return rank(a.State) - rank(b.State) })
	}
	return all, nil
}

func rank(s verdict.State) int {
	return slices.Index([]verdict.State{verdict.StateFailing, verdict.StateGood, verdict.StateUnknown}, s)
}

// series finds the series with these names, or all, the one with the newest run first.
func (v View) series(ctx context.Context, dir string, names []string) ([]*series, error) {
	wanted := map[string]bool{} // series that were named by a run's id
	met := map[string]bool{}    // names that were found
	for _, name := range names {
		if r, err := v.Run(name); err == nil {
			wanted[r.Series()], met[name] = true, true
		}
	}
	by := map[string]*series{}
	shells := map[string]bool{} // terminals that have commands
	var all []*series
	n := 0
	for r := range v.List(history.Query{Dir: dir}) {
		if n++; n > maxLookedAt || ctx.Err() != nil {
			break
		}
		shells[r.Terminal] = shells[r.Terminal] || r.Command > 0
		key := r.Series()
		if len(names) > 0 && !wanted[key] {
			i := slices.IndexFunc(names, func(name string) bool { return isNamed(r, name) })
			if i < 0 {
				continue
			}
			met[names[i]] = true
		}
		s := by[key]
		if s == nil {
			if len(all) == maxCandidates {
				continue
			}
			s = &series{shell: r.Command == 0 && !r.Named && (shells[r.Terminal] || isShell(r.Line))}
			by[key] = s
			all = append(all, s)
		}
		if len(s.runs) < maxJudged {
			s.runs = append(s.runs, r)
		}
	}
	for _, name := range names {
		if !met[name] {
			return nil, &agenttools.UnknownRunError{Name: name}
		}
	}
	return all, ctx.Err()
}

// isNamed reports whether somebody means a run's series by a name. The name of a shell is
// not that of its commands.
func isNamed(r history.Run, name string) bool {
	return r.Line == name || r.Name == name && r.Command == 0
}

// isShell reports whether a command line is that of a shell for a person.
func isShell(line string) bool {
	word, rest, _ := strings.Cut(strings.TrimSuffix(line, ".exe"), " ")
	switch strings.TrimPrefix(path.Base(strings.ReplaceAll(word, `\`, "/")), "-") {
	case "sh", "bash", "zsh", "fish", "dash", "ksh", "nu", "pwsh", "powershell", "cmd":
		// Another word is what it runs: sh -c 'make test'.
		return !slices.ContainsFunc(strings.Fields(rest), func(w string) bool { return !strings.HasPrefix(w, "-") })
	}
	return false
}

// worthTelling reports whether a series is told where nobody asked for it.
func (s *series) worthTelling() bool {
	if s.shell {
		return false
	}
	outcomes := map[verdict.Outcome]bool{}
	for _, r := range s.runs {
		if r.Named || r.Command == 0 || r.Rounds > 0 || r.Problems.Errors+r.Problems.Warnings > 0 {
			return true
		}
		is := judged(r)
		outcome, _ := is.Outcome()
		outcomes[outcome] = true
	}
	return outcomes[verdict.Good] && outcomes[verdict.Failing]
}

// judge judges a series.
func (v View) judge(ctx context.Context, runs []history.Run) verdict.Verdict {
	newest := runs[0]
	var graph verdict.Graph
	if f := v.runs.opts.Checkouts; f != nil && newest.Checkout != nil {
		if g := f.Graph(newest.Checkout.Worktree); g != nil {
			graph = g
		}
	}
	all := func(yield func(verdict.Run) bool) {
		for _, r := range runs {
			if !yield(v.full(r)) {
				return
			}
		}
	}
	is := verdict.Judge(iter.Seq[verdict.Run](all), graph)
	is.Dir = newest.Dir
	if newest.Named {
		is.Name = newest.Name
	} else {
		is.Line = newest.Line
	}
	v.news(ctx, &is, runs)
	is.Fit()
	return is
}

// judged is what a verdict needs of a run, without its rounds.
func judged(r history.Run) verdict.Run {
	is := verdict.Run{
		ID: r.ID, Started: r.Started, Ended: r.Ended, Exit: r.Exit, Runs: r.Running(), Stopped: r.Stopped, Checkout: r.Checkout,
		Found: verdict.Found{Errors: r.Problems.Errors, Warnings: r.Problems.Warnings},
	}
	if r.Lost && is.Exit == nil {
		is.Exit = &vocab.Exit{Code: -1, Reason: vocab.ExitLost}
	}
	return is
}

// full is judged with the rounds of the run, and its readiness if it runs.
func (v View) full(r history.Run) verdict.Run {
	is := judged(r)
	for _, n := range v.rounds(r) {
		is.Rounds = append(is.Rounds, verdict.Round{At: n.Began, Checkout: n.Checkout, Found: verdict.Found{Errors: n.Problems.Errors, Warnings: n.Problems.Warnings}})
	}
	if h, err := v.runs.opts.Access.Terminal(term.ID(r.Terminal)); err == nil && is.Runs && r.Command == 0 {
		is.Ready = h.Info().Ready
	}
	return is
}

// rounds returns the newest note of each round of a run that the asker may know of,
// oldest first.
func (v View) rounds(r history.Run) []history.Note {
	if r.Rounds == 0 {
		return nil
	}
	_, allowed, err := v.find(r.ID)
	if err != nil {
		return nil
	}
	t, err := v.runs.opts.History.Text(r.ID)
	if err != nil {
		return nil
	}
	defer t.Close()
	notes, _ := t.Notes()
	var all []history.Note
	inCommand := false
	for _, n := range notes {
		switch {
		case n.Kind == history.NoteCommand || n.Kind == history.NoteFinished:
			inCommand = n.Kind == history.NoteCommand
		case n.Kind != history.NoteRound || n.Problems == nil || n.From < r.Start || !covers(allowed, n.Off) || inCommand && r.Command == 0:
		case len(all) > 0 && all[len(all)-1].Began.Equal(n.Began):
			all[len(all)-1] = n
		default:
			all = append(all, n)
		}
	}
	return all
}

// news finds the problems of the newest run that the last good one did not have.
func (v View) news(ctx context.Context, is *verdict.Verdict, runs []history.Run) {
	if is.State != verdict.StateFailing {
		return
	}
	now := v.problemsAt(is.Newest, runs)
	is.New = &verdict.News{Errors: now.Errors, Warnings: now.Warnings, First: now.First}
	if is.Good == nil {
		return
	}
	if before := v.problemsAt(is.Good, runs); before.Errors+before.Warnings == 0 {
		return
	}
	c, err := v.comparePoints(ctx, is.Newest, is.Good, runs, false)
	if err != nil {
		return // what is new is not known: all is told
	}
	is.New.Errors, is.New.Warnings = 0, 0
	for _, p := range c.New {
		switch p.Severity {
		case problems.Error:
			is.New.Errors++
		case problems.Warning:
			is.New.Warnings++
		}
	}
	slices.SortStableFunc(c.New, func(p, q problems.Problem) int { return severe(p) - severe(q) })
	is.New.First = c.New
}

func severe(p problems.Problem) int {
	return slices.Index([]problems.Severity{problems.Error, problems.Warning, problems.Info}, p.Severity)
}

// problemsAt returns the problems of the run or the round on which a verdict rests.
func (v View) problemsAt(p *verdict.Point, runs []history.Run) history.Problems {
	r, n, ok := v.at(p, runs)
	switch {
	case !ok:
		return history.Problems{}
	case n != nil:
		return *n.Problems
	}
	return r.Problems
}

// at finds the run of a point, and its round if the point is one.
func (v View) at(p *verdict.Point, runs []history.Run) (history.Run, *history.Note, bool) {
	i := slices.IndexFunc(runs, func(r history.Run) bool { return r.ID == p.Run })
	if i < 0 {
		return history.Run{}, nil, false
	}
	for _, n := range v.rounds(runs[i]) {
		if n.Began.Equal(p.At) {
			return runs[i], &n, true
		}
	}
	return runs[i], nil, true
}

// errNoGood says that there is nothing to compare a run with.
var errNoGood = errors.New("no earlier run of this series was good; name the run to compare with")
