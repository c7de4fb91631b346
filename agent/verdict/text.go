package verdict

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tether/internal/clip"
	"tether/problems"
)

// MaxBytes bounds a verdict after Fit, as JSON and as text.
const MaxBytes = 2048

// maxNew bounds the new problems that a verdict names.
const maxNew = 3

// Fit shortens texts until the verdict is short enough for a model.
func (v *Verdict) Fit() {
	for most := 200; ; most /= 2 {
		for _, text := range []*string{&v.Name, &v.Line, &v.Dir} {
			*text = clip.Text(*text, most)
		}
		for _, p := range []*Point{v.Newest, v.Good, v.Failing, v.Running} {
			if p != nil {
				p.Branch = clip.Text(p.Branch, most/2)
			}
		}
		for i, note := range v.Notes {
			v.Notes[i] = clip.Text(note, max(most, 120))
		}
		if v.New != nil {
			v.New.First = v.New.First[:min(len(v.New.First), maxNew)]
			for i, p := range v.New.First {
				v.New.First[i] = problems.Problem{Tool: p.Tool, File: clip.Text(p.File, most), Line: p.Line, Column: p.Column, Severity: p.Severity,
					Code: clip.Text(p.Code, most/4), Message: clip.Text(p.Message, most), First: p.First, Last: p.Last, Count: p.Count}
			}
		}
		data, err := json.Marshal(v)
		if err != nil || most < 10 || len(data) <= MaxBytes && len(v.Text(v.Since)) <= MaxBytes {
			return
		}
	}
}

// Text returns the verdict for people, in lines that end. Times are in now's time zone.
func (v *Verdict) Text(now time.Time) string {
	var b strings.Builder
	at := func(t time.Time) string { return t.In(now.Location()).Format(time.DateTime) }
	b.WriteString(v.title() + ": " + v.said())
	if !v.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", at(v.Since))
	}
	if v.Newest != nil {
		fmt.Fprintf(&b, " (%s, run %s)", v.Newest.Why, v.Newest.Run)
	}
	b.WriteByte('\n')
	point := func(what string, p *Point, why bool) {
		if p == nil {
			return
		}
		fmt.Fprintf(&b, "  %s: %sat %s, run %s", what, blankAfter(p.where()), at(p.At), p.Run)
		if why {
			b.WriteString(", " + p.Why)
		}
		b.WriteByte('\n')
	}
	point("last good", v.Good, false)
	point("first failing", v.Failing, true)
	if v.Untried != nil && *v.Untried > 0 {
		fmt.Fprintf(&b, "  commits between them that were not run: %d\n", *v.Untried)
	}
	v.New.text(&b)
	if v.Running != nil {
		fmt.Fprintf(&b, "  running now: %ssince %s, run %s\n", blankAfter(v.Running.where()), at(v.Running.At), v.Running.Run)
	}
	if v.Uncounted > 0 {
		fmt.Fprintf(&b, "  not counted: %s since then\n", count(v.Uncounted, "run"))
	}
	for _, note := range v.Notes {
		fmt.Fprintf(&b, "  note: %s\n", note)
	}
	return b.String()
}

// title names the series.
func (v *Verdict) title() string {
	title := v.Name
	if title == "" {
		title = v.Line
	}
	if v.Dir != "" {
		title += " in " + v.Dir
	}
	return strings.TrimSpace(title)
}

// said is the state, and what was recognised beside success.
func (v *Verdict) said() string {
	if p := v.Newest; v.State == StateGood && p.Errors > 0 {
		return "good, " + count(p.Errors, "error") + " printed,"
	}
	return string(v.State)
}

// where is the commit and the branch, "" if neither is known.
func (p *Point) where() string {
	if p.Branch == "" || p.Commit == "" {
		return p.Commit
	}
	return p.Commit + " (" + p.Branch + ")"
}

func blankAfter(text string) string {
	if text != "" {
		text += " "
	}
	return text
}

// text adds the new problems.
func (n *News) text(b *strings.Builder) {
	if n == nil || n.Errors+n.Warnings == 0 {
		return
	}
	var counts []string
	if n.Errors > 0 {
		counts = append(counts, count(n.Errors, "error"))
	}
	if n.Warnings > 0 {
		counts = append(counts, count(n.Warnings, "warning"))
	}
	fmt.Fprintf(b, "  new since then: %s\n", strings.Join(counts, ", "))
	for _, p := range n.First {
		fmt.Fprintf(b, "    %s\n", ProblemText(&p))
	}
	if left := n.Errors + n.Warnings - len(n.First); left > 0 {
		fmt.Fprintf(b, "    %d more\n", left)
	}
}

// ProblemTexts returns each of the problems as a line, see ProblemText.
func ProblemTexts(list []problems.Problem) (lines []string) {
	for i := range list {
		lines = append(lines, ProblemText(&list[i]))
	}
	return lines
}

// ProblemText returns a problem as a line: FILE:LINE:COLUMN: error CODE: MESSAGE.
func ProblemText(p *problems.Problem) string {
	text := string(p.Severity)
	if at := problems.Place(p.File, p.Line, p.Column); at != "" {
		text = at + ": " + text
	}
	if p.Code != "" {
		text += " " + p.Code
	}
	return text + ": " + p.Message
}
