package problems

import (
	"bytes"
	"path"
	"slices"
	"sort"

	"tether/internal/plain"
)

// Bounds of a tracker's state.
const (
	MaxProblems = 1000 // problems; of more, the first and the newest half
)

// Tracker finds problems in one terminal's output as it arrives. Its findings depend on
// the bytes alone, not on their division. It is not safe for concurrent use.
type Tracker struct {
	set   *Set
	lines plain.Lines // that have not ended
	text  plain.Renderer
	shown plain.Renderer // with links
	links []linked       // the last ones
	end   int64          // the offset after the last byte that was looked at
	from  int64          // the offset of the first
	lost  int64          // bytes in between that were not looked at

	command, dir string
	main         *stream // lines without a prefix
	streams      map[string]*stream
	in           *stream       // of the line that is examined
	blocks       map[int]block // of the rows below the name of a task, see blockOf
	plain        int           // lines without a name
	added        int           // number of problems found, including known ones
	list         []*Problem    // by their last offset, mostly
	index        map[key]*Problem
	dropped      int   // problems that there was no room for
	cleared      int64 // the offset at which problems were last cleared
	succeeded    bool  // see Succeeded
	unrecognised []string
	rounds       int      // see Rounds
	roundAt      int64    // the offset after the line with which the last one began
	open         *matcher // of the round that has begun and not ended, if lines tell its end

	candidates []uint16
}

// NewTracker is before the byte with the offset at.
func NewTracker(set *Set, at int64) *Tracker {
	t := &Tracker{set: set, from: at, end: at, index: map[key]*Problem{}, streams: map[string]*stream{}}
	t.main = &stream{open: make([]*attempt, len(set.all))}
	t.in = t.main
	t.text.Tabs = true // expressions tell tabs from blanks
	return t
}

// Write takes the bytes from the offset at on. The gap between the last bytes and these
// contains no text; see Lost for missing bytes. A line counts once it has ended.
func (t *Tracker) Write(at int64, p []byte) {
	t.lines.Write(at, p, t.raw)
	t.end = max(t.end, at+int64(len(p)))
}

// Lost records that n bytes are missing here: attempts do not continue after them.
func (t *Tracker) Lost(n int64) {
	t.lost += n
	t.end += n
	t.lines.Begin(t.end)
	t.blocks = nil
	t.abandonAll()
}

// Begin records that a command starts here. Names of files are relative to dir or, if
// that is "", to the former directory. Earlier problems of the same command line are
// cleared.
func (t *Tracker) Begin(command, dir string) {
	t.End()
	t.command = clip(command, maxMessage)
	t.begin()
	t.main.rounds = nil
	t.rounds, t.open = 0, nil
	for _, s := range t.streams {
		s.seen, s.rounds = 0, nil
	}
	if dir != "" {
		t.dir = dir
	}
	if command != "" {
		t.clear(t.end, func(p *Problem) bool { return p.command == t.command })
	}
}

// Dir says that names of files are seen from this directory from here on, without a new
// command.
func (t *Tracker) Dir(dir string) { t.dir = dir }

// End records that no output follows, or not soon: a line without an end counts now.
func (t *Tracker) End() {
	if len(t.lines.Part) > 0 {
		t.raw(t.lines.Start, t.end, t.lines.Part)
		t.lines.Begin(t.end)
	}
	t.abandonAll()
}

// maxLine bounds the examined part of a line, in bytes. The rest matches nothing.
const maxLine = 8 << 10

// raw examines the output of one line.
func (t *Tracker) raw(start, end int64, raw []byte) {
	if i := bytes.Index(raw, []byte("\x1b[999D\x1b[K")); i >= 0 {
		t.line(t.text.Text(raw[:i]), start, end) // jest erases the line with which a round begins at once
	}
	text := t.text.Unfinished(raw) // expressions may ask for a blank at the end
	t.noteLinks(start, raw, text)
	if len(text) > 0 || bytes.HasSuffix(raw, []byte{'\n'}) {
		t.line(text[:min(len(text), maxLine)], start, end)
	}
	if bytes.HasSuffix(raw, []byte("\x1b[3J")) {
		t.erased(end)
	}
}

// erased clears the problems of a command that erases the screen with what has left it,
// as watchers do that begin anew. Where several programs share the terminal, nobody knows
// whose screen it was.
func (t *Tracker) erased(at int64) {
	for _, s := range t.streams {
		if s.seen > 0 {
			return
		}
	}
	t.abandonAll()
	t.begin()
	t.rounds++
	t.roundAt = at
	t.clear(at, func(p *Problem) bool { return p.command == t.command })
}

// line examines one line. It goes first to open attempts. Several matchers may begin with
// the same line; the first that finds a problem has won.
func (t *Tracker) line(line []byte, start, end int64) {
	t.in, line = t.streamOf(line)
	t.candidates = t.set.scan().candidates(t.candidates[:0], line)
	taken := t.in.begun > 0 && t.goOn(line, start, end)
	for _, i := range t.candidates {
		m := t.set.compiled[i]()
		if m.begins != nil && m.begins.Match(line) {
			t.newRound(m, end)
		}
		if m.ends != nil && t.open == m && m.ends.Match(line) {
			t.open = nil
		}
		if m.succeeds != nil && m.succeeds.Match(line) {
			t.succeed(m, end)
		}
		if m.ofPkg != nil {
			t.settle(m, line, end)
		}
		if taken {
			continue
		}
		switch a := m.begin(line, start, end, t.add); {
		case a == nil:
		case a.done(m):
			taken = true
		default:
			t.setOpen(int(i), a)
		}
	}
	if !taken && t.in.begun == 0 && looksWrong(line) {
		t.strange(line, start)
	}
}

// goOn offers a line to all open attempts, and reports whether some took it. A matcher
// that finds a problem ends others' attempts in its lines.
func (t *Tracker) goOn(line []byte, start, end int64) (taken bool) {
	for i := 0; i < len(t.in.open); i++ {
		a := t.in.open[i]
		if a == nil {
			continue
		}
		n := t.added
		took, done := a.next(t.set.compiled[i](), line, start, end, t.add)
		taken = taken || took
		if done {
			t.setOpen(i, nil)
		}
		if t.added > n {
			t.outdo(i, a.first)
		}
	}
	return taken
}

// outdo ends attempts of other matchers than the winner from an offset on.
func (t *Tracker) outdo(winner int, from int64) {
	for i, a := range t.in.open {
		if i != winner && a != nil && a.first >= from {
			t.setOpen(i, nil)
		}
	}
}

func (t *Tracker) setOpen(i int, a *attempt) {
	s := t.in
	if s.open[i] != nil {
		s.begun--
	}
	if a != nil {
		s.begun++
	}
	s.open[i] = a
}

// abandon ends the attempts of the owner's matchers in the present stream; "" means all
// owners.
func (t *Tracker) abandon(owner string) {
	for i, a := range t.in.open {
		if a != nil && (owner == "" || t.set.all[i].Owner == owner) {
			t.setOpen(i, nil)
		}
	}
}

// abandonAll ends all attempts.
func (t *Tracker) abandonAll() {
	t.in = t.main
	t.abandon("")
	for _, t.in = range t.streams {
		t.abandon("")
	}
	t.in = t.main
}

// newRound clears the last round's problems of a tool that watches files, and of what it
// runs.
func (t *Tracker) newRound(m *matcher, at int64) {
	all := slices.Contains(m.Clears, "*")
	if all {
		t.abandon("")
	} else {
		t.abandon(m.Owner)
	}
	of, before := t.in.name, at
	if m.Background.Late {
		if last, ok := t.in.rounds[m]; ok {
			before = last
		}
		if t.in.rounds == nil {
			t.in.rounds = map[*matcher]int64{}
		}
		t.in.rounds[m] = at
	}
	t.begin()
	if at != t.roundAt { // several matchers may know the line
		t.rounds++
		t.roundAt = at
	}
	if m.ends != nil {
		t.open = m
	}
	t.clear(at, func(p *Problem) bool {
		return p.Last <= before && (of == "" || p.Package == of) && (all || p.Tool == m.Owner || slices.Contains(m.Clears, p.Tool))
	})
}

// succeed clears the errors of a tool that says that it has found none.
func (t *Tracker) succeed(m *matcher, at int64) {
	of := t.in.name
	t.clear(at, func(p *Problem) bool {
		return p.Severity == Error && (of == "" || p.Package == of) && p.Tool == m.Owner
	})
	if t.succeeded = !slices.ContainsFunc(t.list, func(p *Problem) bool { return p.Severity == Error }); t.succeeded {
		t.unrecognised = nil
	}
}

// begin forgets how the last round ended.
func (t *Tracker) begin() { t.succeeded, t.unrecognised = false, nil }

// Succeeded reports whether a known tool has said, since it or a command began, that it
// found no errors, while none was known, and none was found after that.
func (t *Tracker) Succeeded() bool { return t.succeeded }

// Rounds returns how many rounds tools that watch files have begun since a command began,
// the offset after the line with which the last one began, and whether it goes on. Of
// tools that do not tell its end, it does not.
func (t *Tracker) Rounds() (n int, at int64, open bool) { return t.rounds, t.roundAt, t.open != nil }

// Unrecognised returns the last lines that look like errors and that no matcher took,
// since a command or a tool began; at most five. Where errors are known, lines that only
// count or sum up are left out.
func (t *Tracker) Unrecognised() []string {
	known := slices.ContainsFunc(t.list, func(p *Problem) bool { return p.Severity == Error })
	return slices.DeleteFunc(slices.Clone(t.unrecognised), func(line string) bool { return known && sumForms().MatchString(line) })
}

// clear forgets problems, at an offset.
func (t *Tracker) clear(at int64, what func(*Problem) bool) {
	n := len(t.list)
	t.list = slices.DeleteFunc(t.list, func(p *Problem) bool {
		if !what(p) {
			return false
		}
		delete(t.index, p.key())
		return true
	})
	if len(t.list) < n {
		t.cleared = at
	}
	if len(t.list) == 0 {
		t.dropped = 0
	}
}

// settle gives the problems of a Go package, whose tests end with this line, the
// directory of that.
func (t *Tracker) settle(m *matcher, line []byte, end int64) {
	groups := m.ofPkg.FindSubmatch(line)
	if groups == nil {
		return
	}
	dir, known := packageDir(t.dir, t.command, text(groups[1], maxFileName), true)
	t.list = slices.DeleteFunc(t.list, func(p *Problem) bool {
		if !p.loose || p.Tool != m.Owner || p.command != t.command {
			return false
		}
		if p.loose = false; !known {
			return false
		}
		delete(t.index, p.key())
		p.File, p.Last = clip(resolve(dir, p.File), maxFileName), end
		if same := t.index[p.key()]; same != nil {
			same.Count, same.Last, same.command = same.Count+p.Count, p.Last, p.command
			return true
		}
		t.index[p.key()] = p
		return false
	})
}

// add takes a problem, or counts it with its like.
func (t *Tracker) add(m *matcher, f fields) {
	dir := t.dir
	if t.in.dir != "" {
		dir = resolve(dir, t.in.dir)
	}
	p := f.problem(m, dir)
	p.Package = t.in.name
	t.link(&p)
	if f.imported {
		dir, known := packageDir(t.dir, t.command, path.Dir(f.file), false)
		if !known {
			return
		}
		p.File = clip(resolve(dir, path.Base(f.file)), maxFileName)
	}
	if p.loose = m.ofPkg != nil; p.loose {
		p.File = f.file
	}
	p.command, p.weak = t.command, m.Weak
	t.added++
	t.succeeded = t.succeeded && p.Severity != Error
	if m.Weak && t.knows(&p) {
		return
	}
	if known := t.index[p.key()]; known != nil {
		known.Count++
		known.Last, known.command, known.loose = p.Last, p.command, p.loose
		return
	}
	kept := new(Problem)
	*kept = p
	t.list = append(t.list, kept)
	t.index[p.key()] = kept
	if len(t.list) > MaxProblems {
		middle := MaxProblems / 2
		delete(t.index, t.list[middle].key())
		t.list = slices.Delete(t.list, middle, middle+1)
		t.dropped++
	}
}

// knows reports whether the owner has a problem in the same file.
func (t *Tracker) knows(p *Problem) bool {
	return slices.ContainsFunc(t.list, func(q *Problem) bool { return !q.weak && q.Tool == p.Tool && q.File == p.File })
}

// Problems returns copies of those that were printed, again or for the first time, from
// the offset since on, in the order of their first lines.
func (t *Tracker) Problems(since int64) []Problem {
	all := []Problem{}
	for _, p := range t.list {
		if p.Last > since || since <= t.from {
			all = append(all, *p)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].First < all[j].First })
	return all
}

// Looked returns which output was looked at, from one offset to another, and how many
// bytes between them were missing.
func (t *Tracker) Looked() (from, to, lost int64) { return t.from, t.end, t.lost }

// Cursor returns the argument for the next call of Problems: the offset after the last
// line that has ended.
func (t *Tracker) Cursor() int64 {
	if len(t.lines.Part) > 0 {
		return t.lines.Start
	}
	return t.end
}

// Cleared returns the offset at which problems were last cleared, 0 if never.
func (t *Tracker) Cleared() int64 { return t.cleared }

// Dropped returns how many different problems had no room since the list of problems was
// last empty.
func (t *Tracker) Dropped() int { return t.dropped }
