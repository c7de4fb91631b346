// Package recordtest has the contract of a terminal's log as a test: what readers get
// while text, marks and gaps are added and old text is dropped. The logs of the daemon
// and of the host pass it, each through an adapter in its tests.
package recordtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// Log is a log under test. Offsets are those of its readers. Calls come one at a time.
type Log interface {
	Append(text string) // adds text, which is valid UTF-8 without sequences
	Mark(n int)         // adds a mark; n is never the same again
	// Miss records that n bytes of the source are missing here. It returns what the log
	// shows instead, which is shorter.
	Miss(n int64) (shown string)
	Shrink()      // drops much of the oldest text
	Clear()       // drops all text
	Start() int64 // offset of the oldest text that is kept
	End() int64   // offset behind the newest text
	Open(at int64) Reader
}

// Reader is a reader of a Log, which begins at an offset before the marks there.
type Reader interface {
	// Next returns the next event, with at most size bytes of text; false if there is
	// none. It leaves out marks that Log.Mark has not added.
	Next(size int) (Event, bool)
	Close()
}

// Event is one of text, a mark, a gap, and a loss of the reader's place.
type Event struct {
	Text   string
	At     int64 // offset of Text, or behind the loss or what was missing
	Mark   int   // 0: none
	Missed bool  // text was missing at the reader's place when it was recorded
	Moved  bool  // the reader's place was dropped, and it goes on at At
	Lost   int64 // with Moved: what it lost, in its own counting
}

// leastSize is the least size of Reader.Next, and leastMissing the least that is missing,
// in bytes.
const leastSize, leastMissing = 64, 100

// lineSearch is how far behind Log.Start a reader that was moved may continue, in bytes.
const lineSearch = 4 << 10

// Check does random steps with logs that open returns, each time a new one, and compares
// what their readers get with a model.
func Check(t *testing.T, open func(t *testing.T) Log) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &model{t: t, log: open(t), rand: rand.New(rand.NewPCG(seed, 1))}
			for range 600 {
				m.step()
			}
			for len(m.readers) > 0 {
				r := m.readers[0]
				for r.read() {
				}
				if r.at != m.log.End() || r.mark < len(m.marks) {
					t.Errorf("a reader stops at %d of %d, before mark %d of %d", r.at, m.log.End(), r.mark, len(m.marks))
				}
				r.leave()
			}
		})
	}
}

// model is all that a log was given.
type model struct {
	t       *testing.T
	log     Log
	rand    *rand.Rand
	text    []byte  // by offset; 0 where there is none
	marks   []int64 // offsets; mark number n is marks[n-1]
	gaps    []gap
	readers []*reader
}

// gap is a place at which text is missing, behind what the log shows for it.
type gap struct{ at, end int64 }

// reader is a reader with its place in the model.
type reader struct {
	m    *model
	is   Reader
	at   int64
	mark int // marks before its place
}

func (m *model) step() {
	switch n := m.rand.IntN(100); {
	case n < 40:
		m.append()
	case n < 55:
		m.marks = append(m.marks, m.log.End())
		m.log.Mark(len(m.marks))
	case n < 57:
		m.miss()
	case n < 59:
		m.log.Shrink()
	case n < 60:
		m.log.Clear()
	case n < 65 && len(m.readers) < 4:
		m.open(m.rand.Int64N(m.log.End() + 1))
	case n < 68 && len(m.readers) > 0: // a resume
		r := m.readers[m.rand.IntN(len(m.readers))]
		r.leave()
		m.open(r.at)
	case len(m.readers) > 0:
		r := m.readers[m.rand.IntN(len(m.readers))]
		for range m.rand.IntN(20) {
			r.read()
		}
	}
	m.text = append(m.text, make([]byte, max(m.log.End()-int64(len(m.text)), 0))...)
}

func (m *model) append() {
	var b strings.Builder
	for range m.rand.IntN(300) {
		b.WriteString([]string{"a", "b ", "cc", "é", "€", "日本", "\r\n", "🙂"}[m.rand.IntN(8)])
	}
	at := m.log.End()
	m.text = append(m.text[:at], b.String()...)
	if m.log.Append(b.String()); m.log.End() != int64(len(m.text)) {
		m.t.Fatalf("the log ends at %d after %d bytes behind %d", m.log.End(), b.Len(), at)
	}
}

func (m *model) miss() {
	at := m.log.End()
	m.text = append(m.text[:at], m.log.Miss(leastMissing+m.rand.Int64N(5000))...)
	m.gaps = append(m.gaps, gap{int64(len(m.text)), m.log.End()})
}

// missing returns how much text is missing at an offset.
func (m *model) missing(at int64) int64 {
	for _, g := range m.gaps {
		if g.at <= at && at < g.end {
			return g.end - at
		}
	}
	return 0
}

func (m *model) open(at int64) {
	for at > 0 && at < int64(len(m.text)) && !utf8.RuneStart(m.text[at]) {
		at--
	}
	r := &reader{m: m, is: m.log.Open(at), at: at}
	r.pass(at)
	m.readers = append(m.readers, r)
}

// pass moves the place to the first mark at or after an offset.
func (r *reader) pass(at int64) {
	for r.at = at; r.mark < len(r.m.marks) && r.m.marks[r.mark] < at; r.mark++ {
	}
}

func (r *reader) leave() {
	r.is.Close()
	for i, one := range r.m.readers {
		if one == r {
			r.m.readers = append(r.m.readers[:i], r.m.readers[i+1:]...)
			return
		}
	}
}

// read reads one event and reports whether there was one.
func (r *reader) read() bool {
	m, start := r.m, r.m.log.Start()
	e, ok := r.is.Next(leastSize + m.rand.IntN(4000))
	if !ok {
		return false
	}
	next := int64(len(m.text))
	if r.mark < len(m.marks) {
		next = m.marks[r.mark]
	}
	switch to := e.At + int64(len(e.Text)); {
	case e.Missed:
		if n := m.missing(r.at); n == 0 || e.At != r.at+n {
			m.t.Fatalf("text is missing from %d to %d, where %d bytes are", r.at, e.At, n)
		}
		r.at = e.At
	case e.Moved:
		lost := e.At - r.at // what is missing may count as lost
		if r.at >= start && e.At != r.at || e.At < start || e.Lost != lost && e.Lost != lost-m.missing(r.at) {
			m.t.Fatalf("moved from %d to %d with a loss of %d; the log begins at %d", r.at, e.At, e.Lost, start)
		}
		if e.At >= start+utf8.UTFMax && (e.At > start+lineSearch || m.text[e.At-1] != '\n') {
			m.t.Fatalf("moved to %d, behind %d and not at a line", e.At, start)
		}
		r.pass(e.At)
	case e.Mark > 0:
		if e.Mark != r.mark+1 || next != r.at {
			m.t.Fatalf("mark %d at %d, want %d at %d", e.Mark, r.at, r.mark+1, next)
		}
		r.mark++
	case e.At != r.at || r.at < start || to > next || e.Text == "":
		m.t.Fatalf("%d bytes at %d, want some at %d of [%d, %d)", len(e.Text), e.At, r.at, start, next)
	case e.Text != string(m.text[e.At:to]) || !utf8.ValidString(e.Text):
		m.t.Fatalf("text at %d is %q, want %q", e.At, e.Text, m.text[e.At:to])
	default:
		r.at = to
	}
	return true
}
