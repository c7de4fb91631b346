package term

import (
	"bytes"
	"sort"
	"unicode/utf8"

	"tether/agent/ring"
	"tether/shellint"
)

// stream is the child's output, as far as it is kept, and derived state: its bytes, the cuts that make the views of them, and the marks
// between them, all under raw offsets. Only the pump, and run after it, append bytes and cuts. Guarded by the terminal's mutex.
//
// seen <= texted <= decided <= log.End(). Cuts and marks ascend, and no mark is added before seen. Bytes and cuts together, and marks, are
// each within the bound of log. Needed output may exceed it for a moment, see Terminal.boundLocked.
type stream struct {
	log       *ring.Log
	cuts      cutList
	marks     queue[Mark]
	firstMark int64  // sequence number of marks.at(0)
	decided   int64  // raw offset up to which the scanner has judged
	texted    int64  // raw offset up to which the text is known
	seen      int64  // texted as readers could see it last
	atRest    bool   // the scanner is, at the end of the log
	lost      int64  // raw bytes that nobody could record
	joined    []byte // scratch for text that wraps in the log
	before    Size   // of the terminal before the oldest mark
	since     int64  // raw offset from which on it had that, perhaps dropped
	oldest    oldest // the screen at the log's oldest byte
}

// begin makes the stream begin anew at a raw and a text offset: nothing before is kept but marks.
func (s *stream) begin(raw, text int64) {
	s.log = ring.NewAt(s.log.Limit(), raw)
	s.cuts = cutList{baseRaw: raw, baseText: text}
	s.decided, s.texted, s.seen, s.atRest = raw, raw, raw, true
	s.oldest.size, s.oldest.screen = s.before, nil
	for i := range s.marks.len() {
		if m := s.marks.at(i); m.Kind == MarkResized {
			s.oldest.size = m.Size
		}
	}
	s.oldest.lose(raw)
	s.oldest.marks = s.firstMark + int64(s.marks.len())
}

// decide turns the scanner's findings in the newest bytes into cuts, and moves the frontiers. final: there is no more.
func (s *stream) decide(found *shellint.Result, clipboard, final bool) {
	for _, span := range found.Spans {
		if kind, ok := cutFor(span); ok && !(clipboard && span.Class == shellint.ClassClipboard) {
			s.decideText(span.Start, true)
			s.cuts.add(max(span.Start, s.texted), span.End, kind)
			s.texted = span.End
		}
	}
	s.decided = found.Decided
	s.decideText(s.decided, final)
}

// decideText decides the text of the raw range [texted, to): it is kept or, where it is not UTF-8, cut. A character whose bytes may still
// arrive stays undecided unless final.
func (s *stream) decideText(to int64, final bool) {
	if to <= s.texted {
		return
	}
	s.texted = max(s.texted, s.log.Start())
	seg, rest := s.log.Slices(s.texted, int(to-s.texted))
	if len(rest) > 0 {
		s.joined = append(append(s.joined[:0], seg...), rest...)
		seg = s.joined
	}
	if !final {
		seg = seg[:len(seg)-incomplete(seg)]
	}
	base := s.texted
	s.texted += int64(len(seg))
	if utf8.Valid(seg) {
		return
	}
	for i := 0; i < len(seg); {
		r, size := utf8.DecodeRune(seg[i:])
		if r == utf8.RuneError && size == 1 {
			s.cuts.add(base+int64(i), base+int64(i+1), cutInvalid)
		}
		i += size
	}
}

// incomplete is the number of bytes at the end of p that begin a character without finishing it: 0 to 3.
func incomplete(p []byte) int {
	for n := 1; n <= min(3, len(p)); n++ {
		b := p[len(p)-n]
		if utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// textBehind is a text offset for the raw offset to that is not before any offset that was reported: the true one, unless the list of cuts
// itself is broken.
func (s *stream) textBehind(to int64) (text int64) {
	defer func() {
		if recover() != nil {
			text = s.cuts.baseText + 3*(to-s.cuts.baseRaw) // each byte became U+FFFD
		}
	}()
	return s.cuts.textAt(s.texted) + to - s.texted
}

// known is the raw offset up to which the view is known, including text held back from hosts: one may have had it from the former daemon.
func (s *stream) known(v View) int64 {
	switch v {
	case ViewText, ViewOutward:
		return s.texted
	case ViewScreen:
		return s.decided
	}
	return s.log.End()
}

// fill copies the view of the raw range [pos, limit) as far as buf holds it, and returns where that ends and its length. With linear it
// goes no further than to a place where offsets and bytes do not keep step.
func (s *stream) fill(buf []byte, v View, pos, limit int64, linear bool) (end int64, n int) {
	for c := s.cuts.after(pos); pos < limit && n < len(buf); {
		plain := limit
		if c.ok && c.start < limit { // a look at all that follow would make many small pieces slow
			if c.shown(v) {
				c.step()
				continue
			}
			if c.start <= pos {
				if linear && n > 0 {
					break
				}
				// Ends of marks may lie beyond limit while they grow.
				next, k := c.standIn(buf[n:], pos, limit)
				n += k
				if next == pos {
					break
				}
				pos = next
				if pos == c.end {
					c.step()
				}
				continue
			}
			plain = min(plain, c.start)
		}
		k := int(min(plain-pos, int64(len(buf)-n)))
		k = s.log.ReadAt(buf[n:n+k], pos)
		full := k < int(plain-pos)
		if v.isText() && full {
			k -= incomplete(buf[n : n+k])
			if k >= largePiece {
				k -= begun(buf[n : n+k])
			}
		}
		n += k
		pos += int64(k)
		if full {
			break
		}
	}
	return pos, n
}

// usualSequence is the length in bytes that begun looks at the end of large pieces.
const (
	usualSequence = 24
	largePiece    = 4 << 10
)

// begun is the number of bytes at the end of p from the beginning of a sequence on. Parsing flooding text is cheaper if a large piece does not
// end inside a sequence; a view does not promise this border.
func begun(p []byte) int {
	p = p[max(0, len(p)-usualSequence):]
	if i := bytes.LastIndexByte(p, 0x1b); i >= 0 {
		return len(p) - i
	}
	return 0
}

// beforeSequence is where the piece from one raw offset to another ends instead, see begun.
func (s *stream) beforeSequence(pos, end int64) int64 {
	if end-pos < largePiece {
		return end
	}
	var tail [usualSequence]byte
	return end - int64(begun(tail[:s.log.ReadAt(tail[:], end-usualSequence)]))
}

// markOffset is where a mark stands that claims off, see putMarkLocked.
func (s *stream) markOffset(off int64) int64 {
	off = max(s.cuts.behindSplice(off), s.seen)
	if n := s.marks.len(); n > 0 {
		off = max(off, s.marks.at(n-1).Off)
	}
	return off
}

// markAt is the sequence number of the first mark at or after raw.
func (s *stream) markAt(raw int64) int64 {
	return s.firstMark + int64(sort.Search(s.marks.len(), func(i int) bool { return s.marks.at(i).Off >= raw }))
}

// lineSearch is how far lineStart looks, in bytes.
const lineSearch = 4 << 10

// lineStart is the first line start at or after raw, so that a view that begins there cuts no sequence; without one nearby it is the next
// start of a character.
func (s *stream) lineStart(raw, end int64) int64 {
	if raw == 0 || raw >= end {
		return min(raw, end)
	}
	buf := make([]byte, min(lineSearch, end-raw+1))
	buf = buf[:s.log.ReadAt(buf, max(raw-1, s.log.Start()))]
	first := max(raw-1, s.log.Start())
	if i := bytes.IndexByte(buf, '\n'); i >= 0 {
		return min(first+int64(i)+1, end)
	}
	return s.charStart(raw, end)
}

// charStart is the first start of a character, or of its replacement, at or after raw.
func (s *stream) charStart(raw, end int64) int64 {
	var buf [utf8.UTFMax]byte
	n := s.log.ReadAt(buf[:max(min(int64(len(buf)), end-raw), 0)], raw)
	for i := 0; i < n && raw > s.cuts.baseRaw && !utf8.RuneStart(buf[i]); i++ {
		raw++
	}
	return raw
}

// weight is the part of the log's bound, in bytes, that the stream from a raw offset on takes: itself, and its cuts.
func (s *stream) weight(from int64) int64 {
	return s.log.End() - from + s.cuts.weight(from)
}

// overfull reports whether the stream behind a raw offset, the marks from that number on, or more additional bytes, exceed a bound.
func (s *stream) overfull(from, mark int64, more, limit int) bool {
	return s.weight(from)+int64(more) > int64(limit) || s.firstMark+int64(s.marks.len())-mark > int64(limit/markCost)
}

// fits is the raw offset from which on the stream and its marks, each, fit the bound.
func (s *stream) fits(limit int) int64 {
	base := s.log.Start()
	for over := s.weight(base) - int64(limit); over > 0; over = s.weight(base) - int64(limit) {
		if n := s.cuts.blocksBefore(base); n < s.cuts.blocks.len() {
			over = min(over, (*s.cuts.blocks.at(n)).rawEnd-base)
		}
		base += over
	}
	if over := s.marks.len() - limit/markCost; over > 0 {
		base = max(base, s.marks.at(over-1).Off+1)
	}
	return base
}

// trim drops everything before a raw offset, and marks beyond the bound.
func (s *stream) trim(base int64, limit int) {
	s.leave(base)
	s.log.Trim(base)
	s.cuts.trim(base)
	n := 0
	for n < s.marks.len() && (s.marks.at(n).Off < base || s.marks.len()-n > limit/markCost) {
		if m := s.marks.at(n); m.Kind == MarkResized {
			s.before, s.since = m.Size, m.Off
		}
		n++
	}
	s.marks.drop(n)
	s.firstMark += int64(n)
}

// shrink returns the memory of dropped entries.
func (s *stream) shrink() {
	s.cuts.blocks.shrink()
	s.marks.shrink()
}

// cost is the memory of the stream, in bytes.
func (s *stream) cost() int {
	return s.log.Cap() + s.cuts.cost() + s.marks.cap()*markCost + s.oldest.cost()
}

// queue is a slice that is appended to at the back and dropped from the front without moving its content each time.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

// at returns the i-th item; the pointer is valid until the next push or drop.
func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }

// cap is how many items the memory that is taken would hold.
func (q *queue[T]) cap() int { return cap(q.items) }

// shrink returns memory that the present entries do not need.
func (q *queue[T]) shrink() {
	if n := q.len(); cap(q.items) > 2*n {
		q.items, q.head = append(make([]T, 0, n), q.items[q.head:]...), 0
	}
}

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

// drop forgets the first n items and gives their memory back in steps.
func (q *queue[T]) drop(n int) {
	clear(q.items[q.head : q.head+n])
	q.head += n
	if q.head > len(q.items)/2 {
		kept := copy(q.items, q.items[q.head:])
		clear(q.items[kept:])
		q.items, q.head = q.items[:kept], 0
	}
}
