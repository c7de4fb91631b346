package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// row is one measured value.
type row struct {
	Part  string  `json:"part"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Bound and Limit are the floor: Value must be at least or at most Limit. Bound ""
	// means no floor.
	Bound bound   `json:"bound,omitempty"`
	Limit float64 `json:"limit,omitempty"`
	Note  string  `json:"note,omitempty"` // the value's yardstick
	// Unjudged is the reason why this run has no value for the row, "" if it has one.
	// Without a value, Value is 0 and the floor is neither met nor missed.
	Unjudged string `json:"unjudged,omitempty"`
}

// bound is the direction of a floor.
type bound string

const (
	atLeast bound = "≥"
	atMost  bound = "≤"
)

// least and most return r with a floor.
func (r row) least(limit float64) row { r.Bound, r.Limit = atLeast, limit; return r }
func (r row) most(limit float64) row  { r.Bound, r.Limit = atMost, limit; return r }

// slower returns r with the floor limit, in ms, raised by the factor by which this
// machine is slower than the one where the floor was set. A bare pty took there on that
// machine and takes here on this one; system calls are slower by the same factor. A
// faster machine gets no stricter floor.
func (r row) slower(limit, here, there float64) row {
	factor := max(1, here/there)
	if r = r.most(limit * factor); factor > 1 {
		r.Note = strings.TrimPrefix(fmt.Sprintf("%s; %s × %s, as the bare pty is slower here", r.Note, digits(limit), digits(factor)), "; ")
	}
	return r
}

// verdict is ok, MISS or "not judged", or "" without a floor.
func (r row) verdict() string {
	switch {
	case r.Unjudged != "":
		return "not judged"
	case r.Bound == "":
		return ""
	case r.Bound == atLeast && r.Value >= r.Limit, r.Bound == atMost && r.Value <= r.Limit:
		return "ok"
	}
	return "MISS"
}

// report holds the results of one run.
type report struct {
	Machine machine  `json:"machine"`
	Rows    []row    `json:"rows"`
	Failed  []string `json:"failed,omitempty"` // parts that could not be measured, with the reason
}

func (r report) missed() int { return r.count(func(row row) bool { return row.verdict() == "MISS" }) }

// floors is the number of floors that the run could judge.
func (r report) floors() int {
	return r.count(func(row row) bool { return row.Bound != "" && row.Unjudged == "" })
}

func (r report) unjudged() int { return r.count(func(row row) bool { return row.Unjudged != "" }) }

func (r report) count(is func(row) bool) int {
	n := 0
	for _, row := range r.Rows {
		if is(row) {
			n++
		}
	}
	return n
}

// table writes the report for people.
func (r report) table(w io.Writer) error {
	fmt.Fprintln(w, r.Machine)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	part := ""
	for _, row := range r.Rows {
		if row.Part != part {
			part = row.Part
			fmt.Fprintf(t, "\n%s\t\t\t\t\t\n", strings.ToUpper(part))
		}
		floor := ""
		if row.Bound != "" {
			floor = fmt.Sprintf("%s %s", row.Bound, digits(row.Limit))
		}
		value, note := digits(row.Value), row.Note
		if row.Unjudged != "" {
			value, note = "–", row.Unjudged
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\n", row.Name, value, row.Unit, floor, row.verdict(), note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r.Failed {
		fmt.Fprintf(w, "\nnot measured: %s\n", f)
	}
	sum := fmt.Sprintf("%d of %d floors missed", r.missed(), r.floors())
	if n := r.unjudged(); n > 0 {
		sum += fmt.Sprintf(", %d not judged", n)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", sum)
	return err
}

// digits formats v with about three significant digits.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (r report) json(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(r)
}
