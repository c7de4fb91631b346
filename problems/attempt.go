package problems

import (
	"strconv"
	"strings"
)

// fields are the texts that patterns found.
type fields struct {
	file, location, line, column, endLine, endCol, severity, code, message string
	imported                                                               bool  // file is not absolute, and named by an import path
	start, end                                                             int64 // offsets of the lines
}

// maxHeld bounds the problems of a loop that wait for the patterns after it.
const maxHeld = 50

// attempt is a matcher whose first pattern has matched.
type attempt struct {
	first   int64 // offset of its first line
	stage   int   // the pattern that is to match next
	skipped int   // lines since the last that matched
	got     fields
	before  fields   // without those of the loop
	held    []fields // of a loop that is not the last pattern
	looping bool     // the last pattern loops and has matched
}

// begin tries a matcher's first pattern, and returns nil if it does not match. emit is
// called for each problem that is complete. The caller offers further lines to the
// attempt unless it is done.
func (m *matcher) begin(line []byte, start, end int64, emit func(*matcher, fields)) *attempt {
	if len(m.patterns) == 0 {
		return nil
	}
	groups := m.patterns[0].match(line)
	if groups == nil {
		return nil
	}
	a := &attempt{first: start, before: fields{start: start, end: end}}
	a.advance(m, groups, start, end, emit)
	return a
}

// done reports whether nothing more can follow.
func (a *attempt) done(m *matcher) bool { return a.stage == len(m.patterns) }

// next offers a line to an attempt. done reports that the attempt has ended, took that
// the line was one of its lines.
func (a *attempt) next(m *matcher, line []byte, start, end int64, emit func(*matcher, fields)) (took, done bool) {
	p := &m.patterns[a.stage]
	if groups := p.match(line); groups != nil {
		a.advance(m, groups, start, end, emit)
		return true, a.done(m)
	}
	if a.stage > 0 && !a.looping {
		if q := &m.patterns[a.stage-1]; q.Loop || q.Latest {
			if groups := q.match(line); groups != nil {
				a.again(q, groups, start, end)
				return true, false
			}
		}
	}
	a.skipped++
	return false, a.skipped > p.Skip || p.until != nil && p.until.Match(line)
}

// advance takes a match of the expected pattern.
func (a *attempt) advance(m *matcher, groups [][]byte, start, end int64, emit func(*matcher, fields)) {
	p := &m.patterns[a.stage]
	a.skipped = 0
	last := a.stage == len(m.patterns)-1
	if a.stage == 0 {
		a.got = a.before
	}
	if p.Loop {
		if !a.looping {
			a.before = a.got
		}
		a.got = a.before
		if a.stage > 0 {
			a.got.start = start
		}
	}
	a.got.fill(p, groups, false)
	a.got.end = end
	if p.Loop && !last {
		a.held = append(a.held, a.got)
		a.got = a.before
	}
	if !last {
		a.stage++
		return
	}
	a.finish(m, emit)
	a.looping = p.Loop && len(m.patterns) > 1
	if !a.looping {
		a.stage = len(m.patterns)
	}
}

// finish emits complete problems: each waiting one, or the only one.
func (a *attempt) finish(m *matcher, emit func(*matcher, fields)) {
	if a.held == nil {
		emit(m, a.got)
		return
	}
	for _, h := range a.held {
		h.complete(a.got)
		h.end = a.got.end
		emit(m, h)
	}
	a.held = nil
}

// again takes a further match of the pattern before the expected one.
func (a *attempt) again(q *pattern, groups [][]byte, start, end int64) {
	a.skipped = 0
	if q.Latest {
		a.got.fill(q, groups, true)
		a.got.end = end
		return
	}
	if len(a.held) < maxHeld {
		f := a.before
		f.start = start
		f.fill(q, groups, false)
		f.end = end
		a.held = append(a.held, f)
	}
}

// fill takes a pattern's groups. Existing fields stay, except for messages, which are
// joined; anew replaces all.
func (f *fields) fill(p *pattern, groups [][]byte, anew bool) {
	set := func(to *string, group, most int) {
		if group > 0 && groups[group] != nil && (anew || *to == "") {
			*to = text(groups[group], most)
		}
	}
	set(&f.file, p.File, maxFileName)
	f.imported = f.imported || p.Import && !isAbsolute(f.file)
	set(&f.location, p.Location, maxCode)
	set(&f.line, p.Line, maxCode)
	set(&f.column, p.Column, maxCode)
	set(&f.endLine, p.EndLine, maxCode)
	set(&f.endCol, p.EndCol, maxCode)
	set(&f.severity, p.Severity, maxCode)
	set(&f.code, p.Code, maxCode)
	if p.Message > 0 {
		if more := text(groups[p.Message], maxMessage); f.message == "" || anew {
			f.message = more
		} else if more != "" {
			f.message = clip(f.message+": "+more, maxMessage)
		}
	}
}

// complete takes from g the fields that f lacks.
func (f *fields) complete(g fields) {
	for _, pair := range [][2]*string{{&f.file, &g.file}, {&f.location, &g.location}, {&f.line, &g.line}, {&f.column, &g.column},
		{&f.severity, &g.severity}, {&f.code, &g.code}, {&f.message, &g.message}} {
		if *pair[0] == "" {
			*pair[0] = *pair[1]
		}
	}
}

// text returns the text of a group: bounded, without blanks around it, and valid UTF-8.
func text(group []byte, most int) string {
	return clip(strings.TrimSpace(strings.ToValidUTF8(string(group), "\uFFFD")), most)
}

// clip returns the beginning of s: at most n bytes, up to the end of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// problem makes a problem of the fields.
func (f fields) problem(m *matcher, dir string) Problem {
	p := Problem{
		Tool: m.Owner, File: clip(resolve(dir, f.file), maxFileName), Severity: severityOf(f.severity, m.severity), Code: f.code, Message: f.message,
		First: f.start, Last: f.end, Count: 1,
		Line: number(f.line), Column: number(f.column), EndLine: number(f.endLine), EndCol: number(f.endCol),
	}
	rest := f.location
	for _, to := range []*int{&p.Line, &p.Column, &p.EndLine, &p.EndCol} {
		var part string
		if part, rest, _ = strings.Cut(rest, ","); *to == 0 {
			*to = number(part)
		}
	}
	return p
}

// number returns a line or column; 0 if the text is not a number.
func number(s string) int {
	if s == "" {
		return 0 // most columns are, and an error costs memory
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}
