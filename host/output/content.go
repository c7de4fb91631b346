package output

import (
	"bytes"
	"slices"
	"strconv"

	"tether/internal/jsonspan"
)

// ShareBytes is the length from which on recorded text refers to the message that it was
// sent with.
const ShareBytes = 1 << 10 // bytes

const (
	runBytes     = 16 << 10 // bytes; short appends are collected in runs of at most this size
	lineLookout  = 4 << 10  // bytes; how far forward a cut looks for the start of a line
	partOverhead = 64       // bytes that each part costs in addition to its text, so that empty commands are bounded too
)

// run is a piece of recorded text in the form that it has between the quotes of a JSON
// string. It is checked on arrival and written into snapshots unchanged. It is decoded
// only to be cut.
type run struct {
	esc  []byte // existing bytes never change; a run that owns its bytes may grow at the end
	size int    // length of the text in UTF-8 bytes
	own  bool   // only this run uses the bytes; otherwise they are part of an envelope in the log

	rows, styled bool // see jsonspan.Check; they may be due to text that was cut off at the beginning
}

// part is one content part of a terminal: one command with its output, or text that
// belongs to no command.
type part struct {
	command *command // nil: unclassified
	runs    []run
	size    int // UTF-8 bytes of text
}

// command describes one command, without its output. It is immutable, since views share
// it; changes replace it.
type command struct {
	n         int   // number of the command, from 1 since the terminal's start
	outer     int   // n of the command that ran when it started, 0 for none
	ended     int64 // number of commands that had ended before its output
	within    int64 // number of commands that had ended at the end of its output
	id, line  string
	timestamp int64 // Unix milliseconds, the owner's clock
	complete  bool
	verified  bool
	exitCode  *int64
	duration  *float64 // milliseconds
}

// cost returns the bytes that p counts against the limit of the scrollback.
func (p *part) cost() int {
	if p.command == nil {
		return p.size + partOverhead
	}
	return p.size + partOverhead + len(p.command.id) + len(p.command.line)
}

// content is the recorded text of one terminal, bounded by limit. Beyond that it drops
// the oldest text: first whole parts, then the head of the first remaining part, up to
// the start of a line. Not safe for concurrent use.
type content struct {
	limit  int // bytes of cost
	parts  []part
	cost   int   // of all parts
	excess int   // bytes by which the text of all parts is longer in its escaped form than decoded
	end    int64 // position after the last byte, counted over all text ever appended; never reset
	base   int64 // position of the last clear
	count  int   // commands ever started
	open   int   // commands among parts that are not complete
	// left, if not nil, receives dropped text.
	left func(runs []run)
}

// appendText adds text in the escaped form of a JSON string. shared says that esc will
// never change and may be referenced. Empty text changes nothing.
func (c *content) appendText(esc []byte, found jsonspan.Check, shared bool) {
	size := found.Size
	if size == 0 {
		return
	}
	p := c.openPart()
	p.appendRun(run{esc: esc, size: size, rows: found.Rows, styled: found.Styled}, shared)
	p.size += size
	c.cost += size
	c.excess += len(esc) - size
	c.end += int64(size)
	c.trim()
}

// openPart returns the part to which text is appended: the last one, or a new one if that
// is a finished command.
func (c *content) openPart() *part {
	if n := len(c.parts); n > 0 {
		if p := &c.parts[n-1]; p.command == nil || !p.command.complete {
			return p
		}
	}
	c.push(part{})
	return &c.parts[len(c.parts)-1]
}

func (c *content) push(p part) {
	c.parts = append(c.parts, p)
	c.cost += p.cost()
}

func (p *part) appendRun(r run, shared bool) {
	if shared && len(r.esc) >= ShareBytes {
		p.runs = append(p.runs, r)
		return
	}
	if n := len(p.runs); n > 0 {
		if last := &p.runs[n-1]; last.own && len(last.esc)+len(r.esc) <= runBytes {
			last.rows = last.rows && r.rows && jsonspan.Joins(last.esc, r.esc)
			last.styled = last.styled || r.styled
			last.esc = append(last.esc, r.esc...)
			last.size += r.size
			return
		}
	}
	r.esc, r.own = bytes.Clone(r.esc), true
	p.runs = append(p.runs, r)
}

// start adds a part for a command.
func (c *content) start(cmd command) {
	c.count++
	cmd.n = c.count
	if around := c.running(); around != nil {
		cmd.outer = around.n
	}
	c.open++
	c.push(part{command: &cmd})
	c.trim()
}

// finish completes all command parts with that id. ended is how many commands had ended
// before.
func (c *content) finish(id string, exitCode *int64, duration *float64, ended int64) {
	for i := range c.parts {
		if old := c.parts[i].command; old != nil && old.id == id {
			if !old.complete {
				c.open--
			}
			done := *old
			done.complete, done.exitCode, done.duration, done.within = true, exitCode, duration, ended
			c.parts[i].command = &done
		}
	}
}

// running returns the last started command that is not complete, or nil.
func (c *content) running() *command {
	if c.open == 0 {
		return nil
	}
	for i := len(c.parts) - 1; ; i-- {
		if one := c.parts[i].command; one != nil && !one.complete {
			return one
		}
	}
}

// clear drops the recorded text. Positions continue.
func (c *content) clear() {
	c.parts, c.cost, c.excess, c.base, c.open = nil, 0, 0, c.end, 0
}

// trim drops text until the content is within its limit, and some more, so that not every
// append has to cut.
func (c *content) trim() {
	if c.cost <= c.limit {
		return
	}
	c.keep(c.limit - c.limit/8)
}

// keep drops the oldest text until the cost is about want.
func (c *content) keep(want int) {
	var dropped []run
	c.parts, c.cost = trimParts(c.parts, c.cost, want, &dropped)
	if len(dropped) > 0 && c.left != nil {
		c.left(dropped)
	}
	c.excess, c.open = 0, 0
	for i := range c.parts {
		if one := c.parts[i].command; one != nil && !one.complete {
			c.open++
		}
		for _, r := range c.parts[i].runs {
			c.excess += len(r.esc) - r.size
		}
	}
}

// held returns the memory of the content, in bytes.
func (c *content) held() int { return c.cost + c.excess }

// view returns a copy of the parts that may be read while the content changes: all of
// them, or the last max bytes or so, from the start of a line. from is the position of
// the first byte.
func (c *content) view(max int) (parts []part, from int64) {
	parts = make([]part, len(c.parts))
	for i, p := range c.parts {
		p.runs = slices.Clone(p.runs)
		parts[i] = p
	}
	if c.cost > max {
		parts, _ = trimParts(parts, c.cost, max, new([]run))
	}
	from = c.end
	for i := range parts {
		from -= int64(parts[i].size)
	}
	return parts, from
}

// viewSince is view without the text before a position. That includes the beginning of a
// command that began before it.
func (c *content) viewSince(max int, pos int64) (parts []part, from int64) {
	parts, from = c.view(max)
	for len(parts) > 0 && from < pos {
		p := &parts[0]
		if from+int64(p.size) <= pos && (len(parts) > 1 || p.command == nil || p.command.complete) {
			from += int64(p.size)
			parts = parts[1:]
			continue
		}
		if p.command = nil; p.size == 0 {
			break
		}
		from += int64(p.cutHead(int(min(pos-from, int64(p.size))), jsonspan.Skip, new([]run)))
	}
	return parts, from
}

// trimParts drops the oldest text of parts until their cost, an argument, is about want.
// It returns the remaining parts, which reuse the slice, and their cost. It appends the
// dropped text to dropped.
func trimParts(parts []part, cost, want int, dropped *[]run) ([]part, int) {
	drop := 0
	for drop < len(parts) && cost-parts[drop].cost() >= want {
		cost -= parts[drop].cost()
		*dropped = append(*dropped, parts[drop].runs...)
		drop++
	}
	parts = slices.Delete(parts, 0, drop)
	if len(parts) > 0 && cost > want {
		cost -= parts[0].cutHead(cost-want, cutPoint, dropped)
	}
	return parts, cost
}

// cutHead drops at least n bytes from the front of p, or all its text, and returns how
// many bytes it dropped. It appends them to runs. point says where it may cut a run, as
// cutPoint does.
func (p *part) cutHead(n int, point func(esc []byte, n int) (at, size int), runs *[]run) int {
	dropped, whole := 0, 0
	for whole < len(p.runs) && dropped+p.runs[whole].size <= n {
		dropped += p.runs[whole].size
		whole++
	}
	*runs = append(*runs, p.runs[:whole]...)
	p.runs = slices.Delete(p.runs, 0, whole)
	if dropped < n && len(p.runs) > 0 {
		r := &p.runs[0]
		at, size := point(r.esc, n-dropped)
		*runs = append(*runs, run{esc: r.esc[:at], size: size, rows: r.rows, styled: r.styled})
		r.esc, r.size, r.own = bytes.Clone(r.esc[at:]), r.size-size, false // a slice would keep the whole envelope in memory
		dropped += size
		if r.size == 0 {
			p.runs = slices.Delete(p.runs, 0, 1)
		}
	}
	p.size -= dropped
	return dropped
}

// cutPoint returns where to cut escaped text so that at least n decoded bytes are
// dropped: at the next start of a line within lineLookout, else at the next rune. at is
// the index in esc, size the number of decoded bytes before it.
func cutPoint(esc []byte, n int) (at, size int) {
	at, size = jsonspan.Skip(esc, n)
	for i, s := at, size; i < len(esc) && i < at+lineLookout; {
		w, d := jsonspan.Skip(esc[i:], 1)
		newline := w == 2 && esc[i+1] == 'n'
		i, s = i+w, s+d
		if newline {
			return i, s
		}
	}
	return at, size
}

// append writes the part as JSON: an element of the content of a terminal state.
func (p *part) append(dst []byte) []byte {
	if p.command == nil {
		dst = append(dst, `{"type":"unclassified","value":`...)
		return append(p.appendText(dst), '}')
	}
	c := p.command
	dst = append(dst, `{"type":"command","commandId":`...)
	dst = jsonspan.AppendQuoteString(dst, c.id)
	dst = append(dst, `,"commandLine":`...)
	dst = jsonspan.AppendQuoteString(dst, c.line)
	dst = append(dst, `,"output":`...)
	dst = p.appendText(dst)
	dst = append(dst, `,"timestamp":`...)
	dst = strconv.AppendInt(dst, c.timestamp, 10)
	dst = append(dst, `,"isComplete":`...)
	dst = strconv.AppendBool(dst, c.complete)
	if c.exitCode != nil {
		dst = append(dst, `,"exitCode":`...)
		dst = strconv.AppendInt(dst, *c.exitCode, 10)
	}
	if c.duration != nil {
		dst = append(dst, `,"durationMs":`...)
		dst = strconv.AppendFloat(dst, *c.duration, 'f', -1, 64)
	}
	if !c.verified {
		dst = append(dst, `,"_meta":{"tether/unverified":true}`...)
	}
	return append(dst, '}')
}

// appendText writes the text of p as one JSON string.
func (p *part) appendText(dst []byte) []byte {
	dst = append(dst, '"')
	for _, r := range p.runs {
		dst = append(dst, r.esc...)
	}
	return append(dst, '"')
}

// oldest returns the position of the oldest kept text.
func (c *content) oldest() int64 {
	from := c.end
	for i := range c.parts {
		from -= int64(c.parts[i].size)
	}
	return from
}

// shrink drops the oldest text until the content takes at most about n bytes, and frees
// its memory. The newest part stays, because it may be a running command.
func (c *content) shrink(n int) {
	if c.held() <= n {
		return
	}
	for before := 0; c.held() > n && c.held() != before; { // the rest may have more escapes than the dropped text
		before = c.held()
		c.keep(int(max(1, int64(n)*int64(c.cost)/int64(before))))
	}
	c.parts = slices.Clone(c.parts)
	if len(c.parts) > 0 {
		c.parts[0].runs = slices.Clone(c.parts[0].runs)
	}
}
