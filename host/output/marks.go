package output

import (
	"strconv"
	"strings"

	"tether/record"
	"tether/vocab"
)

// maxMarks and maxMarkBytes bound the marks of a terminal, in number and in bytes of
// command lines. Text before the oldest one counts as dropped for readers.
const (
	maxMarks     = 2048
	maxMarkBytes = 1 << 20
)

// mark is an event in a terminal's stream. The end of a command takes one position in the
// offsets of readers, so that positions before and after it differ. An empty mark only
// advances offsets.
type mark struct {
	pos      int64          // in the stream of all text
	ended    int64          // ends of commands up to this mark, including it
	finished *vocab.Command // a command has ended
	resized  *[2]int
	exited   bool
}

// Offset returns the mark's position.
func (x mark) Offset() int64 { return x.pos }

// marks are the marks of one terminal, by position.
type marks struct {
	record.Marks[mark]
	from  int64 // position up to which marks were dropped
	ended int64 // ends of commands so far, including those unknown to the host
	base  int64 // of these, the ends before the first mark
	known bool  // ended is certain: it follows from a command's number
	bytes int   // of command lines
}

// cost returns the memory of a mark in addition to the struct, in bytes.
func (x *mark) cost() int {
	if x.finished == nil {
		return 0
	}
	return len(x.finished.Text())
}

func (m *marks) add(x mark) {
	x.ended = m.ended
	m.Add(x)
	m.bytes += x.cost()
	if m.Len() > maxMarks {
		m.drop(m.First() + maxMarks/4)
	}
	m.shrink(maxMarkBytes)
}

// shrink drops the oldest marks until the others have at most n bytes, or one is left.
func (m *marks) shrink(n int) {
	for m.bytes > n && m.Len() > 1 {
		m.drop(m.First() + max(1, int64(m.Len()/4)))
	}
}

// drop drops the marks before number to.
func (m *marks) drop(to int64) {
	for n := m.First(); n < to; n++ {
		x := m.At(n)
		m.from, m.base = max(m.from, x.pos), x.ended
		m.bytes -= x.cost()
	}
	m.Drop(to)
}

// trim drops marks before a position if there are many.
func (m *marks) trim(pos int64) {
	if n := m.Search(pos); n-m.First() > maxMarks/8 {
		m.drop(n)
	}
}

// before returns how many commands have ended before mark number n.
func (m *marks) before(n int64) int64 {
	if n > m.First() {
		return m.At(n - 1).ended
	}
	return m.base
}

// at returns the number of the next mark for a reader at an offset, and the position of
// the text there.
func (m *marks) at(off int64, text *textOffsets) (pos, n int64) {
	n = m.Find(func(n int64) bool { return text.at(m.At(n).pos)+m.before(n) >= off })
	pos = text.pos(max(0, off-m.before(n)))
	if n < m.End() {
		pos = min(pos, m.At(n).pos)
	}
	return pos, n
}

// began updates the number of ended commands when command number n begins. Owners count
// commands from 1, and open commands are running now, including this one, so n-open have
// ended. Thus the count is correct although the host does not know all commands.
func (m *marks) began(n int64, open int, pos int64) {
	ended := n - int64(open)
	switch {
	case n <= 0 || n > MaxCommandNumber || ended < 0:
	case !m.known:
		m.known = true
		more := ended - m.ended
		m.ended, m.base = ended, m.base+more
		for n := m.First(); n < m.End(); n++ {
			m.At(n).ended += more
		}
	case ended > m.ended:
		m.ended = ended
		m.add(mark{pos: pos})
	}
}

// MaxCommandNumber is the greatest number of a command that the host accepts.
const MaxCommandNumber = 1 << 40

// commandNumber returns the number in an owner's id of a command, 0 if it has none.
func commandNumber(id string) int64 {
	text, ok := strings.CutPrefix(id, "cmd-")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || n < 0 {
		return 0
	}
	return n
}

// exited reports whether there is a mark of an exit.
func (m *marks) exited() bool {
	n := m.First()
	for n < m.End() && !m.At(n).exited {
		n++
	}
	return n < m.End()
}

// reset makes the text at a position the first that is known. So many commands have ended
// before.
func (m *marks) reset(ended, pos int64) {
	m.from, m.ended = pos, ended
	if m.Len() == 0 {
		m.base = ended
	} else {
		m.add(mark{pos: pos})
	}
}

// endedBefore returns how many commands have ended before the text at a position.
func (m *marks) endedBefore(pos int64) int64 { return m.before(m.Search(pos)) }
