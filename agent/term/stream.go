package term

import (
	"bytes"
	"unicode/utf8"

	"tether/agent/ring"
	"tether/record"
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
	log     *ring.Log
	cuts    cutList
	marks   record.Marks[Mark]
	decided int64  // raw offset up to which the scanner has judged
	texted  int64  // raw offset up to which the text is known
	seen    int64  // value of texted when readers could last read
	atRest  bool   // the scanner is at rest at the end of the log
	lost    int64  // raw bytes that nobody could record
	joined  []byte // scratch for text that wraps in the log
	before  Size   // the terminal's size before the oldest mark
	since   int64  // raw offset from which on it had the size before; perhaps before the log's start
	dir     string // the terminal's directory before the oldest mark
	oldest  oldest // the screen at the log's oldest byte
}

func newStream(logBytes int, size Size, dir string) stream {
	s := stream{log: ring.New(logBytes), atRest: true, before: size, dir: dir}
	s.oldest.Backdrop = record.NewBackdrop(int(size.Cols), int(size.Rows), 0, s.log.Limit()/advancePart)
	return s
}

// begin replaces the log by an empty one that begins at a raw and a text offset. Of what
// was before, only marks are kept.
func (s *stream) begin(raw, text int64) {
	s.log = ring.NewAt(s.log.Limit(), raw)
	s.cuts = cutList{baseRaw: raw, baseText: text}
	s.decided, s.texted, s.seen, s.atRest = raw, raw, raw, true
	size := s.before
	for n := s.marks.First(); n < s.marks.End(); n++ {
		if m := s.marks.At(n); m.Kind == MarkResized {
			size = m.Size
		}
	}
	s.oldest.lose(raw)
	s.oldest.Resize(int(size.Cols), int(size.Rows))
	s.oldest.marks = s.marks.End()
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
	if s.marks.Len() > 0 {
		off = max(off, s.marks.At(s.marks.End()-1).Off)
	}
	return off
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
	return s.weight(from)+int64(more) > int64(limit) || s.marks.End()-mark > int64(limit/markCost)
}

// fits returns the raw offset from which on the stream fits the bound, and so do its
// marks.
func (s *stream) fits(limit int) int64 {
	base := s.log.Start()
	for over := s.weight(base) - int64(limit); over > 0; over = s.weight(base) - int64(limit) {
		if n := s.cuts.blocksBefore(base); n < s.cuts.blocks.Len() {
			over = min(over, (*s.cuts.blocks.At(n)).rawEnd-base)
		}
		base += over
	}
	if over := s.marks.Len() - limit/markCost; over > 0 {
		base = max(base, s.marks.At(s.marks.First()+int64(over)-1).Off+1)
	}
	return base
}

// trim drops everything before a raw offset, and marks beyond the bound.
func (s *stream) trim(base int64, limit int) {
	s.leave(base)
	s.log.Trim(base)
	s.cuts.trim(base)
	n := s.marks.First()
	for n < s.marks.End() && (s.marks.At(n).Off < base || s.marks.End()-n > int64(limit/markCost)) {
		switch m := s.marks.At(n); m.Kind {
		case MarkResized:
			s.before, s.since = m.Size, m.Off
		case MarkCwd:
			s.dir = m.Text
		}
		n++
	}
	s.marks.Drop(n)
}

// shrink frees the memory of dropped cuts and marks.
func (s *stream) shrink() {
	s.cuts.blocks.Shrink()
	s.marks.Shrink()
}

// cost returns the memory of the stream, in bytes.
func (s *stream) cost() int {
	return s.log.Cap() + s.cuts.cost() + s.marks.Cap()*markCost + s.oldest.cost()
}
