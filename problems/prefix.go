package problems

import (
	"bytes"
	"maps"

	"tether/internal/lazyregexp"
)

const (
	maxStreams = 64  // names of programs whose lines a runner prefixes
	learnAfter = 3   // lines with a name before it counts, where names look like other text
	maxPrefix  = 60  // bytes of a name
	learnShare = 3   // lines without a name for each with it since the first, at most
	maxBlocks  = 256 // rows below names of tasks
)

// stream is the lines of one program in the terminal: those without a prefix, or those
// that a runner of several programs, such as turbo, pnpm -r or docker compose, prefixes
// with one name.
type stream struct {
	name  string // "" for lines without a prefix
	dir   string // where the program runs, seen from the terminal's directory, if the name tells that
	seen  int    // lines with the name since the command began
	since int    // lines without a name before the first of them
	open  []*attempt
	begun int // how many of open are not nil

	rounds map[*matcher]int64 // offset after the last line that began one; of those with Background.Late
}

// notNames are words that begin lines of one program.
var notNames = lazyregexp.New(`(?i)^(?:error|warn|warning|info|note|debug|hint|help|fatal|panic|fail|failed|ok|pass|make(?:\[\d+\])?|npm|npx|\d[\d.:]*|.*:\d+|https?|file|at|caused by|vite|tsx|nodemon|plugin|browser|webpack-dev-server|@parcel/.*|.*(?:error|exception|warning))$`)

// prefixed returns the name of the program before a line, and where the line begins
// behind it. The forms are "web-1 | ", "12:00:01 web.1 | ", "[web] ", "@acme/web:build:
// ", "web: " and "packages/web build: ". sure says that nothing else looks like it. rest
// is 0 for a line without a name.
func prefixed(line []byte) (name []byte, rest int, sure bool) {
	from := 0
	if len(line) > 9 && line[2] == ':' && line[5] == ':' && line[8] == ' ' {
		from = 9 // behind a time
	}
	bracket := len(line) > 0 && line[0] == '['
	if bracket {
		from = 1
	}
	end := from
	for end < len(line) && end-from <= maxPrefix && isNameByte(line[end]) {
		end++
	}
	name, after := line[from:end], line[end:]
	switch {
	case end == from || end == len(line):
	case bracket:
		if bytes.HasPrefix(after, []byte("] ")) && !bytes.HasPrefix(line, []byte("[watch] build ")) { // esbuild's own
			return name, end + 2, false
		}
	case after[0] != ' ':
	case from == 0 && name[len(name)-1] == ':' && (name[0] == '@' || bytes.IndexByte(name, '/') < 0):
		return name[:len(name)-1], end + 1, false
	case isLetter(name[0]) && bytes.HasPrefix(bytes.TrimLeft(after, " "), []byte("|")):
		rest = len(line) - len(bytes.TrimLeft(after, " ")) + 1
		if rest < len(line) && line[rest] == ' ' {
			rest++
		}
		return name, rest, true
	case from == 0 && bytes.IndexByte(name, '/') > 0:
		script := 1
		for script < len(after) && script <= maxPrefix && isNameByte(after[script]) {
			script++
		}
		if script < len(after) && after[script] == ' ' && script > 2 && after[script-1] == ':' {
			return line[:end+script-1], end + script + 1, false
		}
	}
	return nil, 0, false
}

func isNameByte(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' || c == '@' || c == '/' || c == ':' || c == '#'
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// streamOf returns the stream of a line and the line without the stream's name.
func (t *Tracker) streamOf(line []byte) (*stream, []byte) {
	if s, text := t.blockOf(line); s != nil {
		return s, text
	}
	name, rest, sure := prefixed(line)
	var s *stream
	if rest > 0 {
		s = t.named(name)
	}
	if s == nil {
		t.plain++
		return t.main, line
	}
	if s.seen == 0 {
		s.since = t.plain
	}
	if s.seen++; !sure && (s.seen < learnAfter || s.seen*learnShare <= t.plain-s.since) {
		return t.main, line
	}
	return s, line[rest:]
}

// named returns the stream with a name, nil if that is no name or there are too many.
func (t *Tracker) named(name []byte) *stream {
	s := t.streams[string(name)]
	if s != nil || len(t.streams) == maxStreams || notNames().Match(name) {
		return s
	}
	s = &stream{name: string(name), open: make([]*attempt, len(t.set.all))}
	if dir, _, ok := bytes.Cut(name, []byte(" ")); ok {
		s.dir = string(dir)
	}
	t.streams[s.name] = s
	return s
}

// blockName is the line above a script's output, as pnpm -r shows it at a terminal.
var blockName = lazyregexp.New(`^([\w@.-]+(?:/[\w@.-]+)+ [\w:.-]+)\$ `)

// block is the output of a task on one row, which begins with indent.
type block struct {
	*stream
	indent string
}

// blockOf returns the stream of a line below the name of a task. For nx that is "   ✖
// web:build" above the output of a failed task, with six blanks before each line; for
// pnpm -r "packages/web build$ tsc" above lines with a bar. It is nil for others. The row
// above tells the task, since pnpm moves up to write below the names of several.
func (t *Tracker) blockOf(line []byte) (*stream, []byte) {
	row := t.lines.Row
	if name, ok := bytes.CutPrefix(line, []byte("   ✖  ")); ok && bytes.IndexByte(name, ':') > 0 && bytes.IndexByte(name, ' ') < 0 {
		t.setBlock(row, block{t.named(name), "      "})
		return nil, nil
	}
	if bytes.Contains(line, []byte("$ ")) {
		if m := blockName().FindSubmatch(line); m != nil {
			t.setBlock(row, block{t.named(m[1]), "│ "})
			return nil, nil
		}
	}
	if t.blocks == nil {
		return nil, nil
	}
	b := t.blocks[row-1]
	text, ok := bytes.CutPrefix(line, []byte(b.indent))
	if !ok && len(bytes.TrimSpace(line)) > 0 && !bytes.HasPrefix(line, []byte("└─ ")) { // pnpm's state of a task
		b.stream = nil
	}
	t.setBlock(row, b)
	if !ok || b.stream == nil {
		return nil, nil
	}
	return b.stream, text
}

// setBlock records the task of a row; none for a block without a stream.
func (t *Tracker) setBlock(row int, b block) {
	if b.stream == nil {
		delete(t.blocks, row)
		return
	}
	if t.blocks == nil {
		t.blocks = map[int]block{}
	}
	t.blocks[row] = b
	if len(t.blocks) > maxBlocks {
		maps.DeleteFunc(t.blocks, func(old int, _ block) bool { return old <= row-maxBlocks/2 || old > row+maxBlocks })
	}
}
