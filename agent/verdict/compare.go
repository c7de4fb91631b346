package verdict

import (
	"bytes"
	"context"
	"hash/maphash"
	"iter"
	"strings"

	"tether/internal/clip"
	"tether/internal/plain"
	"tether/problems"
)

// Bounds of a comparison.
const (
	maxLines    = 200     // lines that are shown of each run
	maxLine     = 500     // bytes of a shown line
	maxShown    = 100     // problems that are shown of each run
	maxDistinct = 1 << 19 // different lines of a run that are remembered; further ones are not compared
)

// Side is one of two runs that are compared.
type Side struct {
	// Text yields pieces of the run's output with their offsets. It may be called twice.
	Text iter.Seq2[int64, []byte]
	// Dir is the directory of the run, under which paths are the same in both.
	Dir      string
	Problems []problems.Problem
}

// Line is a line that only one of two runs has.
type Line struct {
	Offset int64  `json:"offset"` // in the text of its run
	Text   string `json:"text"`
	Count  int    `json:"count"` // in the run
}

// Comparison says what a run printed that another did not.
type Comparison struct {
	// New are problems that only the run has, Gone those that only the other has, both at
	// most 100; Problems counts all. A problem that moved to another line is the same.
	Problems ProblemCounts      `json:"problems"`
	New      []problems.Problem `json:"new"`
	Gone     []problems.Problem `json:"gone"`
	// Added are lines that only the run has, Removed those that only the other has, in
	// their order, each once and at most 200; Lines counts all.
	Lines   LineCounts `json:"lines"`
	Added   []Line     `json:"added"`
	Removed []Line     `json:"removed"`
	// Partial says that not all lines were compared, because there are too many.
	Partial bool `json:"partial,omitempty"`
}

// ProblemCounts are numbers of problems.
type ProblemCounts struct {
	New  int `json:"new"`
	Gone int `json:"gone"`
	Same int `json:"same"`
}

// LineCounts are numbers of different lines.
type LineCounts struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// Compare compares a run with an earlier one. Times, durations, pids, ports, temporary
// paths, hashes and progress make no difference, nor does the order of lines. It uses at
// most some 60 MB of memory, and ends with ctx, whose error it returns.
func Compare(ctx context.Context, run, before Side) (*Comparison, error) {
	return compare(ctx, run, before, maxDistinct)
}

func compare(ctx context.Context, run, before Side, most int) (*Comparison, error) {
	c := &Comparison{New: []problems.Problem{}, Gone: []problems.Problem{}}
	c.problems(run, before)
	r := newLineReader(run.Dir, before.Dir)
	old, fresh := map[uint64]bool{}, map[uint64]bool{} // whether the line was looked at again
	for l := range r.lines(ctx, before.Text) {
		c.remember(old, l.hash, most)
	}
	for l := range r.lines(ctx, run.Text) {
		c.remember(fresh, l.hash, most)
	}
	c.Added, c.Lines.Added = r.only(ctx, run.Text, fresh, old)
	c.Removed, c.Lines.Removed = r.only(ctx, before.Text, old, fresh)
	return c, ctx.Err()
}

func (c *Comparison) remember(set map[uint64]bool, hash uint64, most int) {
	if len(set) < most {
		set[hash] = false
		return
	}
	if _, known := set[hash]; !known {
		c.Partial = true
	}
}

// lineReader reads the lines of runs without what differs from run to run.
type lineReader struct {
	normal normalizer
	seed   maphash.Seed
}

func newLineReader(dirs ...string) *lineReader {
	r := &lineReader{seed: maphash.MakeSeed()}
	for _, dir := range dirs {
		if dir = strings.TrimRight(dir, `/\`); dir != "" {
			r.normal.dirs = append(r.normal.dirs, dir)
		}
	}
	return r
}

// shown is a line with the hash of what runs have in common. The text is valid until the
// next one.
type shown struct {
	at   int64
	text []byte
	hash uint64
}

// lines goes through the lines of a text that are not empty.
func (r *lineReader) lines(ctx context.Context, text iter.Seq2[int64, []byte]) iter.Seq[shown] {
	return func(yield func(shown) bool) {
		var lines plain.Lines
		var render plain.Renderer
		more, end := true, int64(-1)
		line := func(start, _ int64, raw []byte) {
			text := render.Text(raw)
			if normal := r.normal.line(text); more && len(normal) > 0 {
				more = yield(shown{start, text, maphash.Bytes(r.seed, normal)})
			}
		}
		last := func() {
			if len(lines.Part) > 0 {
				line(lines.Start, end, lines.Part)
			}
		}
		for at, p := range text {
			if at != end { // text is missing before
				last()
				lines.Begin(at)
			}
			lines.Write(at, p, line)
			if end = at + int64(len(p)); !more || ctx.Err() != nil {
				return
			}
		}
		last()
	}
}

// only returns the lines of a run that the other does not have, and how many different
// ones there are.
func (r *lineReader) only(ctx context.Context, text iter.Seq2[int64, []byte], own, other map[uint64]bool) ([]Line, int) {
	list, n := []Line{}, 0
	places := map[uint64]int{} // in the list
	for l := range r.lines(ctx, text) {
		looked, known := own[l.hash]
		if _, both := other[l.hash]; both || !known {
			continue
		}
		if i, ok := places[l.hash]; ok {
			list[i].Count++
		}
		if looked {
			continue
		}
		own[l.hash] = true
		if n++; len(list) < maxLines {
			places[l.hash] = len(list)
			list = append(list, Line{l.at, clip.Marked(string(bytes.TrimSpace(l.text)), maxLine), 1})
		}
	}
	return list, n
}

// kind identifies a problem in two runs: lines and columns move.
type kind struct {
	tool, file, code, message, pkg string
	severity                       problems.Severity
}

// problems compares the problems. Of equal ones, as many as both have are the same.
func (c *Comparison) problems(run, before Side) {
	ofRun, ofBefore := newLineReader(run.Dir), newLineReader(before.Dir)
	old := map[kind]int{}
	for _, p := range before.Problems {
		old[ofBefore.kind(&p)]++
	}
	for _, p := range run.Problems {
		if k := ofRun.kind(&p); old[k] > 0 {
			old[k]--
			c.Problems.Same++
			continue
		}
		if c.Problems.New++; len(c.New) < maxShown {
			c.New = append(c.New, p)
		}
	}
	for _, p := range before.Problems {
		k := ofBefore.kind(&p)
		if old[k] == 0 {
			continue
		}
		old[k]--
		if c.Problems.Gone++; len(c.Gone) < maxShown {
			c.Gone = append(c.Gone, p)
		}
	}
}

func (r *lineReader) kind(p *problems.Problem) kind {
	file := string(r.normal.line([]byte(p.File)))
	return kind{p.Tool, file, p.Code, string(r.normal.line([]byte(p.Message))), p.Package, p.Severity}
}
