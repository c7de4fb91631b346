package term

import (
	"bytes"
	"sort"
	"unicode/utf8"

	"tether/agent/ring"
	"tether/shellint"
)

// stream is the child's output, as far as it is kept, and derived state: its bytes, the
// cuts from which its views follow, and the marks between the bytes, all under raw
// offsets. Only the owner of Terminal.intake appends bytes and cuts. Guarded by the
// terminal's mutex.
//
// seen <= texted <= decided <= log.End(). Cuts and marks ascend, and no mark is added
// before seen. Bytes and cuts together, and marks, are each within the bound of log.
// Needed output may exceed that bound for a moment, see Terminal.boundLocked.
type stream struct {
	log       *ring.Log
	cuts      cutList
	marks     queue[Mark]
	firstMark int64  // sequence number of marks.at(0)
	decided   int64  // raw offset up to which the scanner has judged
	texted    int64  // raw offset up to which the text is known
	seen      int64  // value of texted when readers could last read
	atRest    bool   // the scanner is at rest at the end of the log
	lost      int64  // raw bytes that nobody could record
	joined    []byte // scratch for text that wraps in the log
	before    Size   // the terminal's size before the oldest mark
	since     int64  // raw offset from which on it had the size before; perhaps before the log's start
	dir       string // the terminal's directory before the oldest mark
	oldest    oldest // the screen at the log's oldest byte
}

// begin replaces the log by an empty one that begins at a raw and a text offset. Of what
// was before, only marks are kept.
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

// decide turns the scanner's findings in the newest bytes into cuts, and moves the
// frontiers. final says that no more output follows.
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

// decideText adds the raw range [texted, to) to the text, and cuts bytes in it that are
// not UTF-8. Unless final, it leaves out the bytes of an incomplete character at the end,
// whose rest may still arrive.
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

// incomplete returns the number of bytes at the end of p that begin a character without
// finishing it: 0 to 3.
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

// textBehind returns a text offset for the raw offset to that is not before any reported
// offset: the true one, unless the list of cuts itself is broken.
func (s *stream) textBehind(to int64) (text int64) {
	defer func() {
		if recover() != nil {
			text = s.cuts.baseText + 3*(to-s.cuts.baseRaw) // as if each byte had become U+FFFD
		}
	}()
	return s.cuts.textAt(s.texted) + to - s.texted
}

// known returns the raw offset up to which the view is known. It includes text that is
// held back from hosts, since a host may have received it from the former daemon.
func (s *stream) known(v View) int64 {
	switch v {
	case ViewText, ViewOutward:
		return s.texted
	case ViewScreen:
		return s.decided
	}
	return s.log.End()
}

// fill copies the view of the raw range [pos, limit) to buf, as much as fits, and returns
// the raw offset at which that ends and the number of copied bytes. With linear it stops
// where something was left out or replaced.
func (s *stream) fill(buf []byte, v View, pos, limit int64, linear bool) (end int64, n int) {
	for c := s.cuts.after(pos); pos < limit && n < len(buf); {
		plain := limit
		if c.ok && c.start < limit { // looking at all following cuts would make many small reads slow
			if c.shown(v) {
				c.step()
				continue
			}
			if c.start <= pos {
				if linear && n > 0 {
					break
				}
				// The end of a cut may be beyond limit while the cut still grows.
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

// usualSequence is how many bytes begun examines at the end of a large piece.
const (
	usualSequence = 24
	largePiece    = 4 << 10
)

// begun returns the number of bytes at the end of p from the beginning of a sequence on.
// Parsing a flood is cheaper if large pieces do not end within a sequence; no view
// promises that.
func begun(p []byte) int {
	p = p[max(0, len(p)-usualSequence):]
	if i := bytes.LastIndexByte(p, 0x1b); i >= 0 {
		return len(p) - i
	}
	return 0
}

// beforeSequence returns where the piece from pos to end should end instead, so that it
// does not end within a sequence; see begun.
func (s *stream) beforeSequence(pos, end int64) int64 {
	if end-pos < largePiece {
		return end
	}
	var tail [usualSequence]byte
	return end - int64(begun(tail[:s.log.ReadAt(tail[:], end-usualSequence)]))
}

// markOffset returns the offset for a mark that was found at off, see putMarkLocked.
func (s *stream) markOffset(off int64) int64 {
	off = max(s.cuts.behindSplice(off), s.seen)
	if n := s.marks.len(); n > 0 {
		off = max(off, s.marks.at(n-1).Off)
	}
	return off
}

// markAt returns the sequence number of the first mark at or after raw.
func (s *stream) markAt(raw int64) int64 {
	return s.firstMark + int64(sort.Search(s.marks.len(), func(i int) bool { return s.marks.at(i).Off >= raw }))
}

// lineSearch is how far lineStart looks, in bytes.
const lineSearch = 4 << 10

// lineStart returns the first start of a line at or after raw, so that a view that begins
// there does not begin within a sequence. If no line starts within lineSearch, it returns
// the next start of a character.
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

// charStart returns the first start of a character, or of a replacement, at or after raw.
func (s *stream) charStart(raw, end int64) int64 {
	var buf [utf8.UTFMax]byte
	n := s.log.ReadAt(buf[:max(min(int64(len(buf)), end-raw), 0)], raw)
	for i := 0; i < n && raw > s.cuts.baseRaw && !utf8.RuneStart(buf[i]); i++ {
		raw++
	}
	return raw
}

// weight returns how much of the log's bound the stream takes from a raw offset on, in
// bytes: the output and its cuts.
func (s *stream) weight(from int64) int64 {
	return s.log.End() - from + s.cuts.weight(from)
}

// overfull reports whether the stream from a raw offset on with more additional bytes, or
// the marks from that number on, exceed the bound limit.
func (s *stream) overfull(from, mark int64, more, limit int) bool {
	return s.weight(from)+int64(more) > int64(limit) || s.firstMark+int64(s.marks.len())-mark > int64(limit/markCost)
}

// fits returns the raw offset from which on the stream fits the bound, and so do its
// marks.
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
		switch m := s.marks.at(n); m.Kind {
		case MarkResized:
			s.before, s.since = m.Size, m.Off
		case MarkCwd:
			s.dir = m.Text
		}
		n++
	}
	s.marks.drop(n)
	s.firstMark += int64(n)
}

// shrink frees the memory of dropped cuts and marks.
func (s *stream) shrink() {
	s.cuts.blocks.shrink()
	s.marks.shrink()
}

// cost returns the memory of the stream, in bytes.
func (s *stream) cost() int {
	return s.log.Cap() + s.cuts.cost() + s.marks.cap()*markCost + s.oldest.cost()
}

// queue is a slice that is appended to at the back and dropped from the front without
// moving its content each time.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

// at returns the i-th item; the pointer is valid until the next push or drop.
func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }

// cap returns for how many items memory is allocated.
func (q *queue[T]) cap() int { return cap(q.items) }

// shrink frees memory that the present items do not need.
func (q *queue[T]) shrink() {
	if n := q.len(); cap(q.items) > 2*n {
		q.items, q.head = append(make([]T, 0, n), q.items[q.head:]...), 0
	}
}

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

// drop removes the first n items and frees their memory in steps.
func (q *queue[T]) drop(n int) {
	clear(q.items[q.head : q.head+n])
	q.head += n
	if q.head > len(q.items)/2 {
		kept := copy(q.items, q.items[q.head:])
		clear(q.items[kept:])
		q.items, q.head = q.items[:kept], 0
	}
}
