package host

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"tether/agent/verdict"
	"tether/agenttools"
	"tether/ahp"
	"tether/screen"
)

// Bounds of machines' answers about runs.
const (
	maxRunList = 1000    // entries of a list
	maxRunText = 4 << 10 // bytes of a text, but for what a terminal has printed
	maxRunInt  = 1 << 53
)

var errBadRuns = errors.New("the machine gave no usable answer")

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

// decodeRuns decodes a machine's answer, checks it, and has its runs named with the
// machine in front.
func decodeRuns(tool string, m *machineRuns) (any, error) {
	a := answerOf(tool)
	if ahp.DecodeParams(m.Result.Answer, a) != nil || !sane(reflect.ValueOf(a), "") {
		return nil, errBadRuns
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
		a.Away = nil
		for i := range a.Runs {
			named(&a.Runs[i])
		}
	case *agenttools.FoundAnswer:
		a.Away = nil
		for i := range a.Matches {
			of(&a.Matches[i].Run)
		}
	case *agenttools.CompareAnswer:
		of(&a.Run.Run, &a.With.Run)
	case *agenttools.VerdictAnswer:
		a.Away = nil
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

// mergeRuns makes one answer of those of several machines, newest first. away are the
// machines that are not reached.
func mergeRuns(tool string, all []machineRuns, away []string) (any, error) {
	var good []any
	var failed error
	for i := range all {
		m := &all[i]
		switch a, err := any(nil), error(nil); {
		case m.Result.Unknown:
		case m.Result.Error != "":
			failed = fmt.Errorf("%s: %s", m.Machine, m.Result.Error)
		default:
			if a, err = decodeRuns(tool, m); err != nil {
				failed = fmt.Errorf("%s: %w", m.Machine, err)
			} else {
				good = append(good, a)
			}
		}
	}
	switch {
	case len(good) == 0 && failed != nil:
		return nil, failed
	case len(good) == 0 && len(away) > 0:
		return nil, awayError(strings.Join(away, ", "))
	}
	switch tool {
	case "list_runs", "search_runs", "verdict":
		return mergeLists(tool, good, away), nil
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
func mergeLists(tool string, all []any, away []string) any {
	newest := func(a, b time.Time) int { return b.Compare(a) }
	switch tool {
	case "list_runs":
		out := &agenttools.RunsAnswer{Runs: []agenttools.Run{}, Away: away}
		for _, a := range all {
			a := a.(*agenttools.RunsAnswer)
			out.Runs, out.More = append(out.Runs, a.Runs...), out.More || a.More
		}
		slices.SortStableFunc(out.Runs, func(a, b agenttools.Run) int { return newest(a.Started, b.Started) })
		return out
	case "search_runs":
		out := &agenttools.FoundAnswer{Matches: []agenttools.Match{}, Away: away}
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
	out := &agenttools.VerdictAnswer{Series: []verdict.Verdict{}, Away: away}
	for _, a := range all {
		a := a.(*agenttools.VerdictAnswer)
		out.Series, out.More = append(out.Series, a.Series...), out.More || a.More
	}
	return out
}

// sane reports whether the numbers, times and lists in an answer are in range, and makes
// its texts fit to be shown. Text that a terminal has printed stays as it is.
func sane(v reflect.Value, field string) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || sane(v.Elem(), field)
	case reflect.Slice:
		for i := range v.Len() {
			if !sane(v.Index(i), field) {
				return false
			}
		}
		return v.Len() <= maxRunList
	case reflect.String:
		if field == "History" {
			return true
		}
		text := screen.Clean(v.String())
		v.SetString(text)
		return len(text) <= maxRunText
	case reflect.Int, reflect.Int64:
		least := int64(0)
		if field == "ExitCode" || field == "Exit" {
			least = -1 << 31
		}
		return v.Int() >= least && v.Int() <= maxRunInt
	case reflect.Float64:
		return v.Float() >= 0 && v.Float() <= maxRunInt
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			return at.IsZero() || at.Year() >= 1970 && at.Before(time.Now().Add(24*time.Hour))
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && !sane(f, v.Type().Field(i).Name) {
				return false
			}
		}
		return true
	case reflect.Bool:
		return true
	}
	return false // of a kind that no answer has
}
