package host

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"tether/agenttools"
	"tether/ahp"
)

// maxMarks and maxMarkBytes bound the marks of a terminal, in number and in bytes of command lines. Text before the oldest one counts as
// dropped for readers.
const (
	maxMarks     = 2048
	maxMarkBytes = 1 << 20
)

// mark is an event in a terminal's stream. The end of a command takes one place in the offsets of readers, so that the text before and
// after it can be told apart. An empty mark only advances offsets.
type mark struct {
	pos      int64               // in the stream of all text
	ended    int64               // ends of commands up to here, with it
	finished *agenttools.Command // a command has ended
	resized  *[2]int
	exited   bool
}

// marks are those of one terminal, by position. Mark number n is list[n-first]. Guarded by the host's mutex.
type marks struct {
	list  []mark
	first int64 // how many were dropped
	from  int64 // text before it is before marks that were dropped
	ended int64 // ends of commands so far, including those unknown to the host
	base  int64 // of them, those before the first mark
	known bool  // ended is right: a command's number has said so
	bytes int   // of command lines
}

// cost is the memory of a mark besides itself, in bytes.
func (x *mark) cost() int {
	if x.finished == nil {
		return 0
	}
	return len(x.finished.Line)
}

func (m *marks) add(x mark) {
	x.ended = m.ended
	m.list = append(m.list, x)
	m.bytes += x.cost()
	for len(m.list) > maxMarks {
		m.drop(len(m.list) / 4)
	}
	m.shrink(maxMarkBytes)
}

// shrink forgets the oldest until the others have at most n bytes, or one is left.
func (m *marks) shrink(n int) {
	for m.bytes > n && len(m.list) > 1 {
		m.drop(max(1, len(m.list)/4))
	}
}

// drop forgets the n oldest.
func (m *marks) drop(n int) {
	m.from = max(m.from, m.list[n-1].pos)
	m.base = m.list[n-1].ended
	for i := range n {
		m.bytes -= m.list[i].cost()
	}
	m.list = slices.Delete(m.list, 0, n)
	m.first += int64(n)
}

// forget drops all marks before a position: the text between them is no longer known.
func (m *marks) forget(pos int64) {
	if n := sort.Search(len(m.list), func(i int) bool { return m.list[i].pos >= pos }); n > 0 {
		m.drop(n)
	}
}

// trim forgets marks before a position, when there are many.
func (m *marks) trim(pos int64) {
	n := sort.Search(len(m.list), func(i int) bool { return m.list[i].pos >= pos })
	if n > maxMarks/8 {
		m.drop(n)
	}
}

// before is how many commands have ended before mark number n.
func (m *marks) before(n int64) int64 {
	if i := n - m.first; i > 0 {
		return m.list[i-1].ended
	}
	return m.base
}

// at is the number of the mark that a reader meets at an offset or after it, and the position of the text there.
func (m *marks) at(off int64, text *textOffsets) (pos, n int64) {
	i := sort.Search(len(m.list), func(i int) bool { return text.at(m.list[i].pos)+m.before(m.first+int64(i)) >= off })
	n = m.first + int64(i)
	pos = text.pos(max(0, off-m.before(n)))
	if i < len(m.list) {
		pos = min(pos, m.list[i].pos)
	}
	return pos, n
}

// began counts the ends of commands by the number of one that begins, which owners count from 1, as the open-th of those that run: those
// before it have ended. So the count is right although the host does not know all of them.
func (m *marks) began(n int64, open int, pos int64) {
	ended := n - int64(open)
	switch {
	case n <= 0 || n > maxCommandNumber || ended < 0:
	case !m.known:
		m.known = true
		more := ended - m.ended
		m.ended, m.base = ended, m.base+more
		for i := range m.list {
			m.list[i].ended += more
		}
	case ended > m.ended:
		m.ended = ended
		m.add(mark{pos: pos})
	}
}

// maxCommandNumber bounds the numbers of commands that are believed.
const maxCommandNumber = 1 << 40

// commandNumber is the number in an owner's id of a command, 0 if there is none.
func commandNumber(id string) int64 {
	text, ok := strings.CutPrefix(id, "cmd-")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || n < 0 {
		return 0
	}
	return n
}

// end is how many there have ever been.
func (m *marks) end() int64 { return m.first + int64(len(m.list)) }

// markLocked notes an action that readers are told of.
func (t *terminal) markLocked(a ahp.Action) {
	m := mark{pos: t.content.end}
	switch a := a.(type) {
	case ahp.TerminalResized:
		m.resized = &[2]int{int(a.Cols), int(a.Rows)}
	case ahp.TerminalExited:
		m.exited = true
		if t.exited = ahp.FindTime(a.Meta, ahp.ExitedKey); t.exited.IsZero() {
			t.exited = time.Now()
		}
	case ahp.TerminalCommandFinished:
		c, ok := t.commandLocked(a.CommandID)
		if !ok {
			return
		}
		m.finished = &c
		t.marks.ended++
	default:
		return
	}
	t.marks.trim(t.content.oldest())
	t.marks.add(m)
}
