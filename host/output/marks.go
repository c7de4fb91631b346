package output

import (
	"slices"
	"sort"
	"strconv"
	"strings"

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

// marks are the marks of one terminal, by position. Mark number n is list[n-first].
type marks struct {
	list  []mark
	first int64 // number of dropped marks
	from  int64 // position up to which marks were dropped
	ended int64 // ends of commands so far, including those unknown to the host
	base  int64 // of these, the ends before the first mark
	known bool  // ended is certain: it follows from a command's number
	bytes int   // of command lines in list
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
	m.list = append(m.list, x)
	m.bytes += x.cost()
	for len(m.list) > maxMarks {
		m.drop(len(m.list) / 4)
	}
	m.shrink(maxMarkBytes)
}

// shrink drops the oldest marks until the others have at most n bytes, or one is left.
func (m *marks) shrink(n int) {
	for m.bytes > n && len(m.list) > 1 {
		m.drop(max(1, len(m.list)/4))
	}
}

// drop removes the n oldest marks.
func (m *marks) drop(n int) {
	m.from = max(m.from, m.list[n-1].pos)
	m.base = m.list[n-1].ended
	for i := range n {
		m.bytes -= m.list[i].cost()
	}
	m.list = slices.Delete(m.list, 0, n)
	m.first += int64(n)
}

// forget drops all marks before a position, because the text between them is not known
// any more.
func (m *marks) forget(pos int64) {
	if n := sort.Search(len(m.list), func(i int) bool { return m.list[i].pos >= pos }); n > 0 {
		m.drop(n)
	}
}

// trim drops marks before a position if there are many.
func (m *marks) trim(pos int64) {
	n := sort.Search(len(m.list), func(i int) bool { return m.list[i].pos >= pos })
	if n > maxMarks/8 {
		m.drop(n)
	}
}

// before returns how many commands have ended before mark number n.
func (m *marks) before(n int64) int64 {
	if i := n - m.first; i > 0 {
		return m.list[i-1].ended
	}
	return m.base
}

// at returns the number of the next mark for a reader at an offset, and the position of
// the text there.
func (m *marks) at(off int64, text *textOffsets) (pos, n int64) {
	i := sort.Search(len(m.list), func(i int) bool { return text.at(m.list[i].pos)+m.before(m.first+int64(i)) >= off })
	n = m.first + int64(i)
	pos = text.pos(max(0, off-m.before(n)))
	if i < len(m.list) {
		pos = min(pos, m.list[i].pos)
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
		for i := range m.list {
			m.list[i].ended += more
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

// end returns how many marks there have ever been.
func (m *marks) end() int64 { return m.first + int64(len(m.list)) }

// exited reports whether there is a mark of an exit.
func (m *marks) exited() bool {
	return slices.ContainsFunc(m.list, func(x mark) bool { return x.exited })
}

// reset makes the text at a position the first that is known. So many commands have ended
// before.
func (m *marks) reset(ended, pos int64) {
	m.from, m.ended = pos, ended
	if len(m.list) == 0 {
		m.base = ended
	} else {
		m.add(mark{pos: pos})
	}
}

// endedBefore returns how many commands have ended before the text at a position.
func (m *marks) endedBefore(pos int64) int64 {
	n := m.base
	for i := range m.list {
		if m.list[i].pos >= pos {
			break
		}
		n = m.list[i].ended
	}
	return n
}
