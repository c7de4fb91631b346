package agenttools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tether/internal/clip"
	"tether/problems"
	"tether/screen"
	"tether/vocab"
)

// Bounds of a digest, in bytes unless the comment says otherwise.
const (
	maxDigest   = 8 << 10
	leastDigest = 1 << 10
	digestHead  = 1 << 10 // of the output that is kept of the beginning; an eighth of a digest shows it
	digestLine  = 200
	leastLine   = 20       // of a problem
	digestLook  = 64 << 10 // length of the end of the output that is read for the tail
	digestAll   = 40       // number of errors up to which every error is shown; of more errors, only digestFirst and digestLast are shown
	digestFirst = 20       // number of the first errors that are shown
	digestLast  = 5        // number of the last errors that are shown
	digestFiles = 15       // number of files whose errors are counted
	digestNear  = 8        // number of errors and warnings up to which they are shown with lines of the output
)

// Digest sums up a terminal's output in at most 8 KB: the command and how it ended, the
// beginning and the end of the output, and the problems in between. If shows is not 0,
// the whole answer as JSON has at most shows bytes. key is as for Ask. The problems are
// those of all output that was examined since the first request for the terminal; for
// output that was dropped before it could be examined, the digest says how many bytes
// there were. Digest blocks while it reads, until ctx ends.
func (m *Matching) Digest(ctx context.Context, key string, t Terminal, shows int) (*ReadAnswer, error) {
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
	r := &ReadAnswer{TerminalID: i.ID, History: d.text(i, from == 0, maxDigest), Cursor: c.next, Masked: a.Masked, Truncated: a.Unseen > 0, Exited: i.Exit != nil, ExitFields: exitOf(i)}
	for most := maxDigest; shows > 0 && most > leastDigest && sizeOf(r)+otherFields/2 > shows; {
		most = max(leastDigest, min(most-1, most*(shows-otherFields/2)/sizeOf(r)))
		r.History = d.text(i, from == 0, most)
	}
	return r, nil
}

// head returns the remembered lines at the beginning of the last command's output, or of
// the terminal's if no command was seen. It returns nil if the terminal was forgotten.
func (m *Matching) head(ctx context.Context, key string, t Terminal) ([]string, error) {
	m.mu.Lock()
	e := m.all[key]
	m.mu.Unlock()
	if e == nil { // forgotten since Ask
		return nil, nil
	}
	e.mu.Lock()
	c := &capture{data: slices.Clone(e.head)}
	e.mu.Unlock()
	return c.lines(ctx, t.Info())
}

// lines renders a capture and returns its lines. A line that is repeated is returned
// once, with the number of times.
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

// shortened returns the line, cut to at most n bytes.
func shortened(line string, n int) string {
	if len(line) <= n {
		return line
	}
	return clip.Text(line, n-3) + "…"
}

// digest holds what the text of a digest is made of.
type digest struct {
	dir, line  string // directory of the terminal, and command line
	state      string // how the command ended, or "running"
	answer     *ProblemsAnswer
	head, tail []string
	lines      map[int64][]string // lines of the output around each problem, by Problem.First
}

// command sets line and state to those of the last command.
func (d *digest) command(i Info, commands []vocab.Command) {
	d.line, d.state = strings.Join(i.Command, " "), "running"
	if n := len(commands); n > 0 {
		c := commands[n-1]
		d.line = c.Text()
		switch {
		case c.Running:
		case c.Exit != nil:
			d.state = fmt.Sprintf("exit %d", *c.Exit)
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

// near reads the lines of output that reported each problem, as far as they are still
// kept.
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

// text returns the text of the digest, of at most so many bytes: a quarter of them for
// the end of the output, an eighth for its beginning. whole says that the tail was read
// from the beginning of the output.
func (d *digest) text(i Info, whole bool, most int) string {
	var b strings.Builder
	if d.line != "" {
		fmt.Fprintf(&b, "$ %s\n", shortened(screen.Clean(d.line), digestLine))
	}
	fmt.Fprintf(&b, "[%s; %d bytes of output", d.state, i.End)
	if d.answer.Unseen > 0 {
		fmt.Fprintf(&b, "; nobody looked at %d of them, which are gone", d.answer.Unseen)
	}
	b.WriteString("]\n")
	tailed := tailLines(d.tail, most/4)
	tail := strings.Join(tailed, "\n")
	if head := headLines(d.head, most/8); len(head) > 0 {
		if whole { // d.tail has all lines: show none of them both here and at the end
			head = head[:min(len(head), len(d.tail)-len(tailed))]
		}
		if len(head) > 0 {
			fmt.Fprintf(&b, "--- beginning\n%s\n", strings.Join(head, "\n"))
		}
	}
	d.problems(&b, most-b.Len()-len(tail)-100)
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
	if a := d.answer; a.Errors+a.Warnings > 0 || a.Succeeded {
		fmt.Fprintf(b, "--- problems: %d errors, %d warnings\n", a.Errors, a.Warnings)
	} else {
		b.WriteString("--- no problems recognised\n")
	}
	room -= d.strange(b)
	var errors, others []problems.Problem
	for _, p := range d.answer.Problems {
		if p.Severity == problems.Error {
			errors = append(errors, p)
		} else {
			others = append(others, p)
		}
	}
	if len(errors) > digestAll || d.answer.Dropped > 0 && len(errors) > digestFirst {
		counts := d.counts(errors, room/2)
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
	const least = 80 // bytes that a warning needs to be useful
	if n := min(len(others), room/digestLine, room/least); n > 0 {
		d.list(b, others[:n], digestLine)
	}
}

// strange writes the lines that look like errors and fit no known format, and returns how
// many bytes.
func (d *digest) strange(b *strings.Builder) int {
	before := b.Len()
	if len(d.answer.Unrecognised) > 0 {
		b.WriteString("lines that look like errors, of no known format:\n")
	}
	for _, line := range d.answer.Unrecognised {
		fmt.Fprintf(b, "    ? %s\n", shortened(screen.Clean(line), digestLine))
	}
	return b.Len() - before
}

// list writes problems, each in at most this many bytes.
func (d *digest) list(b *strings.Builder, list []problems.Problem, each int) {
	for _, p := range list {
		line := string(p.Severity) + ": " + screen.Clean(p.Message)
		if p.File != "" {
			line = problems.Place(d.seen(p.File), p.Line, p.Column) + ": " + line
		}
		if p.Code != "" {
			line += " [" + strings.TrimSpace(screen.Clean(p.Code)+" "+p.Href) + "]"
		}
		if p.Count > 1 {
			line += fmt.Sprintf(" (%d times)", p.Count)
		}
		line = shortened(line, max(leastLine, min(each-1, 4*digestLine)))
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

// seen returns a file's name, relative to the terminal's directory if the file is in or
// below it.
func (d *digest) seen(file string) string {
	rest, ok := strings.CutPrefix(file, d.dir+"/")
	if !ok || d.dir == "" {
		rest = file
	}
	return screen.Clean(rest)
}

// counts returns a text with the number of errors of each file, largest number first.
// Files that need more room are only counted.
func (d *digest) counts(errors []problems.Problem, room int) string {
	by := map[string]int{}
	for _, p := range errors {
		by[d.seen(p.File)]++
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(by[b]-by[a], strings.Compare(a, b)) })
	var b strings.Builder
	b.WriteString("errors by file:\n")
	for i, name := range names {
		if i == digestFiles || b.Len()+digestLine/2 > room {
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
