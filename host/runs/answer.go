package runs

import (
	"errors"
	"slices"
	"strings"
	"time"

	"tether/agent/verdict"
	"tether/agenttools"
	"tether/ahp"
)

var errBadAnswer = errors.New("the machine gave no usable answer")

// answerOf returns an empty answer of a tool.
func answerOf(tool string) any {
	switch tool {
	case "list_runs":
		return &agenttools.RunsAnswer{}
	case "search_runs":
		return &agenttools.FoundAnswer{}
	case "compare_runs":
		return &agenttools.CompareAnswer{}
	case "verdict":
		return &agenttools.VerdictAnswer{}
	case "problems":
		return &agenttools.ProblemsAnswer{}
	}
	return &agenttools.ReadAnswer{}
}

// decode decodes a machine's answer, checks it, and has its runs named with the
// machine in front.
func decode(tool string, m *machineAnswer) (any, error) {
	a := answerOf(tool)
	if ahp.DecodeParams(m.Result.Answer, a) != nil {
		return nil, errBadAnswer
	}
	printed := ""
	read, ok := a.(*agenttools.ReadAnswer)
	if ok { // what a terminal has printed stays as it is
		printed, read.History = read.History, ""
	}
	if !agenttools.Sane(a) {
		return nil, errBadAnswer
	}
	if ok {
		read.History = printed
	}
	of := func(ids ...*string) {
		for _, id := range ids {
			*id = m.Machine + "/" + *id
		}
	}
	named := func(r *agenttools.Run) {
		if of(&r.ID); r.Name != "" {
			of(&r.Name)
		}
	}
	switch a := a.(type) {
	case *agenttools.RunsAnswer:
		a.Missing = agenttools.Missing{}
		for i := range a.Runs {
			named(&a.Runs[i])
		}
	case *agenttools.FoundAnswer:
		a.Missing = agenttools.Missing{}
		for i := range a.Matches {
			of(&a.Matches[i].Run)
		}
	case *agenttools.CompareAnswer:
		of(&a.Run.Run, &a.With.Run)
	case *agenttools.VerdictAnswer:
		a.Missing = agenttools.Missing{}
		for i := range a.Series {
			v := &a.Series[i]
			for _, p := range []*verdict.Point{v.Newest, v.Good, v.Failing, v.Running} {
				if p != nil {
					of(&p.Run)
				}
			}
			if v.Name != "" {
				of(&v.Name)
			}
		}
	case *agenttools.ProblemsAnswer:
		of(&a.TerminalID)
	case *agenttools.ReadAnswer:
		of(&a.TerminalID)
	}
	return a, nil
}

// merge makes one answer of those of several machines, newest first. away are the
// machines that are not reached. A list says which machines have failed.
func merge(tool string, all []machineAnswer, away []string) (any, error) {
	var good []any
	missing := agenttools.Missing{Away: away}
	fail := func(machine, why string) { missing.Failed = append(missing.Failed, machine+": "+why) }
	for i := range all {
		switch m := &all[i]; {
		case m.Result.Unknown:
		case m.Result.Error != "":
			fail(m.Machine, m.Result.Error)
		default:
			a, err := decode(tool, m)
			if err != nil {
				fail(m.Machine, err.Error())
				continue
			}
			good = append(good, a)
		}
	}
	switch {
	case len(good) == 0 && len(missing.Failed) > 0:
		return nil, errors.New(strings.Join(missing.Failed, "; "))
	case len(good) == 0 && len(away) > 0:
		return nil, awayError(strings.Join(away, ", "))
	}
	switch tool {
	case "list_runs", "search_runs", "verdict":
		return mergeLists(tool, good, missing), nil
	}
	switch len(good) {
	case 0:
		return nil, agenttools.ErrNotFound
	case 1:
		return good[0], nil
	}
	return nil, errors.New("several machines have runs of this name: put the machine's name before it, such as laptop/dev")
}

// mergeLists makes one list of those of several machines.
func mergeLists(tool string, all []any, missing agenttools.Missing) any {
	newest := func(a, b time.Time) int { return b.Compare(a) }
	switch tool {
	case "list_runs":
		out := &agenttools.RunsAnswer{Runs: []agenttools.Run{}, Missing: missing}
		for _, a := range all {
			a := a.(*agenttools.RunsAnswer)
			out.Runs, out.More = append(out.Runs, a.Runs...), out.More || a.More
		}
		slices.SortStableFunc(out.Runs, func(a, b agenttools.Run) int { return newest(a.Started, b.Started) })
		return out
	case "search_runs":
		out := &agenttools.FoundAnswer{Matches: []agenttools.Match{}, Missing: missing}
		for _, a := range all {
			a := a.(*agenttools.FoundAnswer)
			out.Matches, out.More = append(out.Matches, a.Matches...), out.More || a.More
			if a.Back.After(out.Back) { // from there on, all were searched
				out.Back = a.Back
			}
		}
		slices.SortStableFunc(out.Matches, func(a, b agenttools.Match) int { return newest(a.At, b.At) })
		return out
	}
	out := &agenttools.VerdictAnswer{Series: []verdict.Verdict{}, Missing: missing}
	for _, a := range all {
		a := a.(*agenttools.VerdictAnswer)
		out.Series, out.More = append(out.Series, a.Series...), out.More || a.More
	}
	return out
}
