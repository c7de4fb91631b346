package agenttools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tether/internal/clip"
	"tether/problems"
	"tether/screen"
)

// Bounds of a digest, in bytes where nothing else is said.
const (
	maxDigest   = 8 << 10
	digestHead  = 1 << 10
	digestTail  = 2 << 10
	digestLine  = 200
	digestLook  = 64 << 10 // of the output's end, from which the tail is taken
	digestAll   = 40       // errors up to which each is shown; of more, the first and last
	digestFirst = 20
	digestLast  = 5
	digestFiles = 15 // files with counts
	digestNear  = 8  // errors that are shown with the lines of the output
)

// Digest returns a terminal's output in at most 8 KB: the command and how it ended, the beginning and the end, and every problem in
// between. key is as for Ask. It has the problems of all output since the first request; of other output it has the unexamined amount. It
// blocks while it looks, until ctx ends.
func (m *Matching) Digest(ctx context.Context, key string, t Terminal) (*ReadAnswer, error) {
	a, err := m.Ask(ctx, key, t, 0, maxProblems)
	if err != nil {
		return nil, err
	}
	i := t.Info()
	d := digest{dir: i.Cwd, answer: a}
	d.command(i, t.Commands())
	if d.head, err = m.head(ctx, key, t); err != nil {
		return nil, err
	}
	from := max(i.Start, i.End-digestLook)
	c, err := take(ctx, t, from, digestLook+minBuffer)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		c.trimStart()
	}
	if d.tail, err = c.lines(ctx, i); err != nil {
		return nil, err
	}
	if a.Errors+a.Warnings <= digestNear {
		d.near(ctx, t, i)
	}
	return &ReadAnswer{TerminalID: i.ID, History: d.text(i, from == 0), Cursor: c.next, Masked: a.Masked, Truncated: a.Unseen > 0, Exited: i.Exit != nil, ExitFields: exitOf(i)}, nil
}

// head is the beginning of the output: the remembered part, or the oldest available.
func (m *Matching) head(ctx context.Context, key string, t Terminal) ([]string, error) {
	m.mu.Lock()
	e := m.all[key]
	m.mu.Unlock()
	if e == nil { // forgotten meanwhile
		return nil, nil
	}
	e.mu.Lock()
	c := &capture{data: slices.Clone(e.head)}
	e.mu.Unlock()
	return c.lines(ctx, t.Info())
}

// lines are the final lines of a capture; repeated lines are merged.
func (c *capture) lines(ctx context.Context, i Info) ([]string, error) {
	s, err := c.render(ctx, i)
	if err != nil {
		return nil, err
	}
	text, _ := s.History()
	var all []string
	count := 1
	last := ""
	flush := func() {
		if count > 1 {
			all[len(all)-1] += fmt.Sprintf("  (%d times)", count)
		}
		count = 1
	}
	for line := range strings.Lines(strings.TrimRight(text, " \n")) {
		line = strings.TrimRight(line, " \n")
		if len(all) > 0 && line == last {
			if line != "" {
				count++
			}
			continue
		}
		flush()
		last = line
		all = append(all, shortened(line, digestLine))
	}
	flush()
	return all, nil
}

// shortened is a line of at most n bytes.
func shortened(line string, n int) string {
	if len(line) <= n {
		return line
	}
	return clip.Text(line, n-3) + "…"
}

// digest holds the contents of the text.
type digest struct {
	dir, line  string // of the command
	state      string
	answer     *ProblemsAnswer
	head, tail []string
	lines      map[int64][]string // of the output, by the offset of a problem
}

// command reports the last command and how it ended.
func (d *digest) command(i Info, commands []Command) {
	d.line, d.state = strings.Join(i.Command, " "), "running"
	if n := len(commands); n > 0 {
		c := commands[n-1]
		d.line = c.Line
		switch {
		case c.Running:
		case c.ExitCode != nil:
			d.state = fmt.Sprintf("exit %d", *c.ExitCode)
		default:
			d.state = "ended"
		}
	}
	if i.Exit != nil {
		d.state = fmt.Sprintf("the terminal has exited with %d", i.Exit.Code)
		if i.Exit.Signal != "" {
			d.state += ", " + i.Exit.Signal
		}
	}
}

// near reads the lines around each problem, as far as they are still there.
func (d *digest) near(ctx context.Context, t Terminal, i Info) {
	d.lines = map[int64][]string{}
	for _, p := range d.answer.Problems {
		n := min(p.Last-p.First, digestHead)
		if p.First < i.Start || n <= 0 {
			continue
		}
		c, err := take(ctx, t, p.First, int(n))
		if err != nil {
			return
		}
		c.data = c.data[:min(len(c.data), int(n))]
		if lines, err := c.lines(ctx, i); err == nil && len(lines) > 1 {
			d.lines[p.First] = lines[:min(len(lines), 5)]
		}
	}
}

// text is the digest.
func (d *digest) text(i Info, whole bool) string {
	var b strings.Builder
	if d.line != "" {
		fmt.Fprintf(&b, "$ %s\n", shortened(screen.Clean(d.line), digestLine))
	}
	fmt.Fprintf(&b, "[%s; %d bytes of output", d.state, i.End)
	if d.answer.Unseen > 0 {
		fmt.Fprintf(&b, "; nobody looked at %d of them, which are gone", d.answer.Unseen)
	}
	b.WriteString("]\n")
	tail := strings.Join(tailLines(d.tail, digestTail), "\n")
	if head := headLines(d.head, digestHead); len(head) > 0 {
		if whole { // the end goes on where the beginning ends, or has it, too
			head = head[:min(len(head), len(d.tail)-len(tailLines(d.tail, digestTail)))]
		}
		if len(head) > 0 {
			fmt.Fprintf(&b, "--- beginning\n%s\n", strings.Join(head, "\n"))
		}
	}
	d.problems(&b, maxDigest-b.Len()-len(tail)-100)
	if tail != "" {
		fmt.Fprintf(&b, "--- end\n%s\n", tail)
	}
	return b.String()
}

func headLines(lines []string, room int) []string {
	for i, l := range lines {
		if room -= len(l) + 1; room < 0 {
			return lines[:i]
		}
	}
	return lines
}

func tailLines(lines []string, room int) []string {
	for i := len(lines) - 1; i >= 0; i-- {
		if room -= len(lines[i]) + 1; room < 0 {
			return lines[i+1:]
		}
	}
	return lines
}

// problems writes the problems that fit: errors first, then warnings.
func (d *digest) problems(b *strings.Builder, room int) {
	fmt.Fprintf(b, "--- problems: %d errors, %d warnings\n", d.answer.Errors, d.answer.Warnings)
	var errors, others []problems.Problem
	for _, p := range d.answer.Problems {
		if p.Severity == problems.Error {
			errors = append(errors, p)
		} else {
			others = append(others, p)
		}
	}
	if len(errors) > digestAll || d.answer.Dropped > 0 && len(errors) > digestFirst {
		counts := d.counts(errors)
		each := (room - len(counts)) / (digestFirst + digestLast + 1)
		d.list(b, errors[:digestFirst], each)
		fmt.Fprintf(b, "… %d more errors\n", len(errors)-digestFirst-digestLast)
		d.list(b, errors[len(errors)-digestLast:], each)
		b.WriteString(counts)
		return
	}
	if len(errors) > 0 {
		before := b.Len()
		d.list(b, errors, room/len(errors))
		room -= b.Len() - before
	}
	const least = 80 // bytes, for a warning to tell something
	if n := min(len(others), room/digestLine, room/least); n > 0 {
		d.list(b, others[:n], digestLine)
	}
}

// list writes problems, each in at most so many bytes.
func (d *digest) list(b *strings.Builder, list []problems.Problem, each int) {
	for _, p := range list {
		line := string(p.Severity) + ": " + screen.Clean(p.Message)
		if p.File != "" {
			at := d.seen(p.File)
			if p.Line > 0 {
				at += fmt.Sprintf(":%d", p.Line)
			}
			if p.Line > 0 && p.Column > 0 {
				at += fmt.Sprintf(":%d", p.Column)
			}
			line = at + ": " + line
		}
		if p.Code != "" {
			line += " [" + screen.Clean(p.Code) + "]"
		}
		if p.Count > 1 {
			line += fmt.Sprintf(" (%d times)", p.Count)
		}
		line = shortened(line, min(each-1, 4*digestLine))
		b.WriteString(line + "\n")
		left := each - len(line) - 1
		for _, l := range d.lines[p.First] {
			if left -= len(l) + 7; left < 0 {
				break
			}
			fmt.Fprintf(b, "    | %s\n", l)
		}
	}
}

// seen is a file's name, seen from the terminal's directory if it is below that.
func (d *digest) seen(file string) string {
	rest, ok := strings.CutPrefix(file, d.dir+"/")
	if !ok || d.dir == "" {
		rest = file
	}
	return screen.Clean(rest)
}

// counts reports the number of errors of each file, largest first.
func (d *digest) counts(errors []problems.Problem) string {
	by := map[string]int{}
	for _, p := range errors {
		by[d.seen(p.File)]++
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(by[b]-by[a], strings.Compare(a, b)) })
	var b strings.Builder
	b.WriteString("errors by file:\n")
	for i, name := range names {
		if i == digestFiles {
			fmt.Fprintf(&b, "  … and %d more files\n", len(names)-i)
			break
		}
		fmt.Fprintf(&b, "  %s: %d\n", shortened(cmp.Or(name, "(no file)"), digestLine/2), by[name])
	}
	if d.answer.Dropped > 0 {
		fmt.Fprintf(&b, "%d more problems are not counted: there was no room for them\n", d.answer.Dropped)
	}
	return b.String()
}
