package output

import (
	"bytes"
	"math"
	"unicode/utf8"

	"tether/agent/ring"
	"tether/record"
	"tether/shellint"
)

// Log is the child's output, as far as it is kept, and derived state: its bytes, the cuts
// from which its views follow, the marks between the bytes, the screen behind dropped
// output and the view for hosts, all under raw offsets. One goroutine at a time appends.
//
// seen <= texted <= decided <= log.End(). Cuts and marks ascend, and no mark is added
// before seen. Bytes and cuts together, and marks, are each within the bound of log.
// Needed output may exceed that bound for a moment, see Bound.
type Log struct {
	log       *ring.Log
	cuts      cutList
	marks     record.Marks[Mark]
	decided   int64      // raw offset up to which the scanner has judged
	texted    int64      // raw offset up to which the text is known
	seen      int64      // value of texted when readers could last read
	atRest    bool       // the scanner is at rest at the end of the log
	lost      int64      // raw bytes that nobody could record
	joined    []byte     // scratch for text that wraps in the log
	before    Size       // the terminal's size before the oldest mark
	since     int64      // raw offset from which on it had the size before; perhaps before the log's start
	dir       string     // the terminal's directory before the oldest mark
	oldest    oldest     // the screen at the log's oldest byte
	redaction *Redaction // nil while nobody needs it
}

// New returns an empty log that keeps at most so many bytes, rounded up to a power of
// two, of a terminal with a size and a directory.
func New(limit int, size Size, dir string) *Log {
	l := &Log{log: ring.New(limit), atRest: true, before: size, dir: dir}
	l.oldest.Backdrop = record.NewBackdrop(int(size.Cols), int(size.Rows), 0, l.log.Limit()/advancePart)
	return l
}

// Begin replaces the log by an empty one that begins at a raw and a text offset. Of what
// was before, only marks are kept. Readers before that offset have lost their place.
func (l *Log) Begin(raw, text int64) {
	l.log = ring.NewAt(l.log.Limit(), raw)
	l.cuts = cutList{baseRaw: raw, baseText: text}
	l.decided, l.texted, l.seen, l.atRest = raw, raw, raw, true
	size := l.before
	for n := l.marks.First(); n < l.marks.End(); n++ {
		if m := l.marks.At(n); m.Kind == MarkResized {
			size = m.Size
		}
	}
	l.oldest.lose(raw)
	l.oldest.Resize(int(size.Cols), int(size.Rows))
	l.oldest.marks = l.marks.End()
	l.RestartRedaction(raw)
	l.Bound(math.MaxInt64)
}

// Start returns the raw offset of the oldest output that is kept.
func (l *Log) Start() int64 { return l.log.Start() }

// End returns the raw offset behind the newest output: how much there has been.
func (l *Log) End() int64 { return l.log.End() }

// Limit returns the bound of the log in bytes.
func (l *Log) Limit() int { return l.log.Limit() }

// Texted returns the raw offset up to which the text is known.
func (l *Log) Texted() int64 { return l.texted }

// TextAt returns the text offset for a raw one. Inside a replacement it is that of the
// replacement's start.
func (l *Log) TextAt(raw int64) int64 { return l.cuts.textAt(raw) }

// RawAt returns the raw offset for a text offset, rounded down to the start of a
// replacement.
func (l *Log) RawAt(text int64) int64 { return l.cuts.rawAt(text) }

// ReadAt copies output from a raw offset on to p and returns its length; 0 if that is not
// kept.
func (l *Log) ReadAt(p []byte, off int64) int { return l.log.ReadAt(p, off) }

// Bytes returns the output from a raw offset on, in two parts that are valid until the
// log changes.
func (l *Log) Bytes(from int64) (first, second []byte) {
	return l.log.Slices(from, int(l.log.End()-from))
}

// Marks returns the marks. Only the log adds and drops them.
func (l *Log) Marks() *record.Marks[Mark] { return &l.marks }

// Lost returns how many raw bytes nobody could record.
func (l *Log) Lost() int64 { return l.lost }

// AddLost adds to what Lost returns.
func (l *Log) AddLost(n int64) { l.lost += n }

// Before returns the terminal's size and directory before the oldest mark, and the raw
// offset from which on it had that size, which may be before the log's start.
func (l *Log) Before() (size Size, since int64, dir string) { return l.before, l.since, l.dir }

// SetBefore sets the size of the terminal before the first output, which it has from a
// raw offset on.
func (l *Log) SetBefore(size Size, since int64) {
	l.before, l.since = size, since
	l.oldest.resize(size)
}

// SetDir sets the directory of the terminal before the first output.
func (l *Log) SetDir(dir string) { l.dir = dir }

// Append adds output that the scanner has read; atRest says that it is at rest behind it.
func (l *Log) Append(p []byte, atRest bool) {
	l.leave(l.log.End() + int64(len(p)-l.log.Limit()))
	l.log.Append(p)
	l.atRest = atRest
}

// AtRest reports whether a daemon that begins to scan at the log's end would find the
// same as this one.
func (l *Log) AtRest() bool {
	return l.atRest && l.texted == l.log.End() && l.redaction.atRest(l.log.End())
}

// LetRead makes the text that is known readable: no mark is added before its end any
// more.
func (l *Log) LetRead() { l.seen = l.texted }

// Put adds a mark and returns its number. Whatever its offset, marks stay in ascending
// order and never come before text that readers may have seen: a reader that resumes
// behind that text would miss them. For the same reason, a mark whose sequence has a
// replacement comes behind the replacement, however the sequence was split.
//
// A size replaces the last mark if that is a size, too, with no output after it.
// Otherwise a window that is dragged while a reader is away would push the boundaries of
// commands out of the log.
func (l *Log) Put(m Mark) (n int64) {
	m.Off = l.markOffset(m.Off)
	if m.Kind == MarkResized && l.marks.Len() > 0 {
		n = l.marks.End() - 1
		if last := l.marks.At(n); last.Kind == MarkResized && last.Off == m.Off {
			*last = m
			return n
		}
	}
	return l.marks.Add(m)
}

// Decide turns the scanner's findings in the newest bytes into cuts, and moves the
// frontiers. final says that no more output follows.
func (l *Log) Decide(found *shellint.Result, clipboard, final bool) {
	for _, span := range found.Spans {
		if kind, ok := cutFor(span); ok && !(clipboard && span.Class == shellint.ClassClipboard) {
			l.decideText(span.Start, true)
			l.cuts.add(max(span.Start, l.texted), span.End, kind)
			l.texted = span.End
		}
	}
	l.decided = found.Decided
	l.decideText(l.decided, final)
}

// decideText adds the raw range [texted, to) to the text, and cuts bytes in it that are
// not UTF-8. Unless final, it leaves out the bytes of an incomplete character at the end,
// whose rest may still arrive.
func (l *Log) decideText(to int64, final bool) {
	if to <= l.texted {
		return
	}
	l.texted = max(l.texted, l.log.Start())
	seg, rest := l.log.Slices(l.texted, int(to-l.texted))
	if len(rest) > 0 {
		l.joined = append(append(l.joined[:0], seg...), rest...)
		seg = l.joined
	}
	if !final {
		seg = seg[:len(seg)-incomplete(seg)]
	}
	base := l.texted
	l.texted += int64(len(seg))
	if utf8.Valid(seg) {
		return
	}
	for i := 0; i < len(seg); {
		r, size := utf8.DecodeRune(seg[i:])
		if r == utf8.RuneError && size == 1 {
			l.cuts.add(base+int64(i), base+int64(i+1), cutInvalid)
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

// TextBehind returns a text offset for the raw offset to that is not before any reported
// offset: the true one, unless the list of cuts itself is broken.
func (l *Log) TextBehind(to int64) (text int64) {
	defer func() {
		if recover() != nil {
			text = l.cuts.baseText + 3*(to-l.cuts.baseRaw) // as if each byte had become U+FFFD
		}
	}()
	return l.cuts.textAt(l.texted) + to - l.texted
}

// Known returns the raw offset up to which the view is known. It includes text that is
// held back from hosts, since a host may have received it from the former daemon.
func (l *Log) Known(v View) int64 {
	switch v {
	case ViewText, ViewOutward:
		return l.texted
	case ViewScreen:
		return l.decided
	}
	return l.log.End()
}

// Fill copies the view of the raw range [pos, limit) to buf, as much as fits, and returns
// the raw offset at which that ends and the number of copied bytes. With linear it stops
// where something was left out or replaced.
func (l *Log) Fill(buf []byte, v View, pos, limit int64, linear bool) (end int64, n int) {
	for c := l.cuts.after(pos); pos < limit && n < len(buf); {
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
		k = l.log.ReadAt(buf[n:n+k], pos)
		full := k < int(plain-pos)
		if v.IsText() && full {
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

// BeforeSequence returns where the piece from pos to end should end instead, so that it
// does not end within a sequence; see begun.
func (l *Log) BeforeSequence(pos, end int64) int64 {
	if end-pos < largePiece {
		return end
	}
	var tail [usualSequence]byte
	return end - int64(begun(tail[:l.log.ReadAt(tail[:], end-usualSequence)]))
}

// markOffset returns the offset for a mark that was found at off, see Put.
func (l *Log) markOffset(off int64) int64 {
	off = max(l.cuts.behindSplice(off), l.seen)
	if l.marks.Len() > 0 {
		off = max(off, l.marks.At(l.marks.End()-1).Off)
	}
	return off
}

// lineSearch is how far lineStart looks, in bytes.
const lineSearch = 4 << 10

// LineStart returns the first start of a line at or after raw, so that a view that begins
// there does not begin within a sequence. If no line starts within lineSearch, it returns
// the next start of a character.
func (l *Log) LineStart(raw, end int64) int64 {
	if raw == 0 || raw >= end {
		return min(raw, end)
	}
	buf := make([]byte, min(lineSearch, end-raw+1))
	buf = buf[:l.log.ReadAt(buf, max(raw-1, l.log.Start()))]
	first := max(raw-1, l.log.Start())
	if i := bytes.IndexByte(buf, '\n'); i >= 0 {
		return min(first+int64(i)+1, end)
	}
	return l.charStart(raw, end)
}

// charStart returns the first start of a character, or of a replacement, at or after raw.
func (l *Log) charStart(raw, end int64) int64 {
	var buf [utf8.UTFMax]byte
	n := l.log.ReadAt(buf[:max(min(int64(len(buf)), end-raw), 0)], raw)
	for i := 0; i < n && raw > l.cuts.baseRaw && !utf8.RuneStart(buf[i]); i++ {
		raw++
	}
	return raw
}

// Weight returns how much of the log's bound the stream takes from a raw offset on, in
// bytes: the output and its cuts.
func (l *Log) Weight(from int64) int64 {
	return l.log.End() - from + l.cuts.weight(from)
}

// Overfull reports whether the output from a raw offset on with more additional bytes,
// the marks from that number on, or the masks there exceed the bound limit. Bound uses
// the same measure, so that no reader loses output for which the child is held.
func (l *Log) Overfull(from, mark int64, more, limit int) bool {
	return l.Weight(from)+int64(more) > int64(limit) || l.marks.End()-mark > int64(limit/MarkCost) || l.redaction.overfull(l, from, limit)
}

// slack is the factor by which a log may exceed its bound if a reader that may hold the
// child needs it. Each byte may have a cut, which takes a little more than two bytes.
// That happens when the next daemon adopts a holder's output.
const slack = 4

// Bound trims the log, with its cuts, marks and masks, to its bound. Since cuts count,
// fewer bytes of binary output are kept than of text. Output from the raw offset needed
// on stays: the child is held before that exceeds the bound by more than one read.
func (l *Log) Bound(needed int64) {
	limit := l.log.Limit()
	base := l.fits(limit)
	if needed < base {
		limit *= slack
		base = max(needed, l.fits(limit))
	}
	base = min(base, l.texted)
	l.trim(base, limit)
}

// fits returns the raw offset from which on everything fits the bound.
func (l *Log) fits(limit int) int64 {
	base := l.log.Start()
	for over := l.Weight(base) - int64(limit); over > 0; over = l.Weight(base) - int64(limit) {
		if n := l.cuts.blocksBefore(base); n < l.cuts.blocks.Len() {
			over = min(over, (*l.cuts.blocks.At(n)).rawEnd-base)
		}
		base += over
	}
	if over := l.marks.Len() - limit/MarkCost; over > 0 {
		base = max(base, l.marks.At(l.marks.First()+int64(over)-1).Off+1)
	}
	if v := l.redaction; v != nil {
		base = v.fits(base, l, limit)
	}
	return base
}

// Trim drops everything before a raw offset, and the screens that are stored for the next
// daemon.
func (l *Log) Trim(base int64) {
	l.trim(base, l.log.Limit())
	l.oldest.kept = nil
}

// trim drops everything before a raw offset, and marks beyond the bound.
func (l *Log) trim(base int64, limit int) {
	l.leave(base)
	l.log.Trim(base)
	l.cuts.trim(base)
	n := l.marks.First()
	for n < l.marks.End() && (l.marks.At(n).Off < base || l.marks.End()-n > int64(limit/MarkCost)) {
		switch m := l.marks.At(n); m.Kind {
		case MarkResized:
			l.before, l.since = m.Size, m.Off
		case MarkCwd:
			l.dir = m.Text
		}
		n++
	}
	l.marks.Drop(n)
	if v := l.redaction; v != nil {
		v.trim(l.cuts.textAt(base))
	}
}

// Shrink frees the memory of dropped cuts and marks.
func (l *Log) Shrink() {
	l.cuts.blocks.Shrink()
	l.marks.Shrink()
}

// Cost returns the memory that the log takes, in bytes.
func (l *Log) Cost() int {
	return l.log.Cap() + l.cuts.cost() + l.marks.Cap()*MarkCost + l.oldest.cost() + l.redaction.cost()
}
