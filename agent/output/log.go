package output

import (
	"bytes"
	"cmp"
	"sync"
	"time"
	"unicode/utf8"

	"tether/agent/ring"
	"tether/record"
	"tether/shellint"
)

// Log is the child's output, as far as it is kept, and derived state: its bytes, the cuts
// from which its views follow, the marks between the bytes, the commands of a shell, the
// screen behind dropped output and the view for hosts, all under raw offsets. One
// goroutine at a time appends.
//
// The mutex of its owner guards it: methods are called with that lock, except for those
// that take it and say so, and for the methods of a Reader, which all take it.
//
// seen <= texted <= decided <= log.End(). Cuts and marks ascend, and no mark is added
// before seen. Bytes and cuts together, and marks, are each within the bound of log.
// Needed output may exceed that bound for a moment, see bound.
type Log struct {
	// Set at construction.
	mu    *sync.Mutex
	owner Owner
	opts  Options

	// Owned by the goroutine that appends.
	scanner *shellint.Scanner
	found   shellint.Result // of the last scan

	// Guarded by mu.
	log      *ring.Log
	cuts     cutList
	marks    record.Marks[Mark]
	decided  int64     // raw offset up to which the scanner has judged
	texted   int64     // raw offset up to which the text is known
	seen     int64     // value of texted when readers could last read
	atRest   bool      // the scanner is at rest at the end of the log
	printed  time.Time // when output was last appended
	lost     int64     // raw bytes that nobody could record
	joined   []byte    // scratch for text that wraps in the log
	before   Size      // the terminal's size before the oldest mark
	since    int64     // raw offset from which on it had the size before; perhaps before the log's start
	dir      string    // the terminal's directory before the oldest mark
	oldest   oldest    // the screen at the log's oldest byte
	finished bool      // no more output follows
	exited   bool      // the exit was recorded

	title string // "" before the first title: then the terminal's name is shown
	cwd   string
	size  Size

	history   history
	readers   readers
	outward   outward
	redaction *redaction // nil while nobody needs it
	restored  restored

	// For the holder.
	note     Note   // the newest checkpoint that it does not have
	noted    int64  // raw offset of the last checkpoint
	screens  []Note // that it does not have
	screened int64  // raw offset of the newest screen that it was given
}

// Options says how a Log is kept.
type Options struct {
	Limit     int // bound of the log in bytes, rounded up to a power of two
	Size      Size
	Cwd       string
	Name      string           // shown before the first title
	Scanning  shellint.Options // of the scanner
	Clipboard bool             // the text includes sequences that set the clipboard
	Pane      bool             // the output is that of a reader of a pane, and has the pane's sizes
	Holds     bool             // readers of text that ask for Hold may hold the child; otherwise they may slow it only a little
	// IgnoreUnsigned ignores marks without the scanner's nonce when it looks for
	// commands.
	IgnoreUnsigned bool
	NoteEvery      int64 // bytes between two checkpoints for the holder; 0: there is no holder
	Screens        bool  // the holder keeps screens, too
	// IsName reports whether a title only says which program runs; IsHere whether the
	// host of a reported directory is this machine.
	IsName, IsHere func(string) bool
}

// Owner is told what follows from output. All of its methods are called with the lock,
// except Recovered, and none may wait.
type Owner interface {
	// Appended is called at the end of Append, with what the scanner has found.
	Appended(found *shellint.Result, now time.Time)
	// Marked is called when a mark was added.
	Marked(*Mark)
	// Commands is called when what is known of commands has changed.
	Commands()
	// Keep is called when TakeNotes has something.
	Keep()
	// Restored is called when all output that the holder had at Restore was scanned.
	Restored()
	// Moved is called when a reader that may make the child wait has read or was closed,
	// or one that was awaited has arrived.
	Moved()
	// Recovered is called after a panic that the log has survived, with no lock.
	Recovered(Bug)
}

// MaxSize bounds both dimensions of a terminal in cells. The protocol does not ask hosts
// to accept more, see ahp.
const MaxSize = 1000

// ValidSize reports whether a terminal may have that size.
func ValidSize(s Size) bool {
	return s.Cols >= 1 && s.Cols <= MaxSize && s.Rows >= 1 && s.Rows <= MaxSize
}

// New returns an empty log, which the mutex guards.
func New(mu *sync.Mutex, owner Owner, o Options) *Log {
	l := &Log{
		mu: mu, owner: owner, opts: o, scanner: shellint.NewScanner(o.Scanning), log: ring.New(o.Limit), atRest: true,
		before: o.Size, size: o.Size, dir: o.Cwd, cwd: o.Cwd, readers: readers{open: map[*Reader]struct{}{}},
	}
	l.history.tracker.Unsigned, l.history.tracker.Reader = !o.IgnoreUnsigned, o.Pane
	l.oldest.Backdrop = record.NewBackdrop(int(o.Size.Cols), int(o.Size.Rows), 0, l.log.Limit()/advancePart)
	l.oldest.ahead = o.Screens
	return l
}

// begin replaces the log by an empty one that begins at a raw and a text offset. Of what
// was before, only marks are kept. Readers before that offset have lost their place.
func (l *Log) begin(raw, text int64) {
	l.scanner = shellint.NewScannerAt(l.opts.Scanning, raw)
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
	l.restartRedaction(raw)
	l.bound(NoOffset)
}

// Start returns the raw offset of the oldest output that is kept.
func (l *Log) Start() int64 { return l.log.Start() }

// End returns the raw offset behind the newest output: how much there has been.
func (l *Log) End() int64 { return l.log.End() }

// Limit returns the bound of the log in bytes.
func (l *Log) Limit() int { return l.log.Limit() }

// TextAt returns the text offset for a raw one. Inside a replacement it is that of the
// replacement's start.
func (l *Log) TextAt(raw int64) int64 { return l.cuts.textAt(raw) }

// ReadAt copies output from a raw offset on to p and returns its length; 0 if that is not
// kept.
func (l *Log) ReadAt(p []byte, off int64) int { return l.log.ReadAt(p, off) }

// Bytes returns the output from a raw offset on, in two parts that are valid until the
// log changes.
func (l *Log) Bytes(from int64) (first, second []byte) {
	return l.log.Slices(from, int(l.log.End()-from))
}

// TextEnd returns the text offset of the end of the known text.
func (l *Log) TextEnd() int64 { return l.cuts.textAt(l.texted) }

// Lost returns how many raw bytes nobody could record.
func (l *Log) Lost() int64 { return l.lost }

// Title returns the latest title, or the terminal's name.
func (l *Log) Title() string { return cmp.Or(l.title, l.opts.Name) }

// Cwd returns the terminal's directory.
func (l *Log) Cwd() string { return l.cwd }

// Size returns the terminal's size.
func (l *Log) Size() Size { return l.size }

// isAtRest reports whether a daemon that begins to scan at the log's end would find the
// same as this one.
func (l *Log) isAtRest() bool {
	return l.atRest && l.texted == l.log.End() && l.redaction.atRest(l.log.End())
}

// put adds a mark and returns its number. Whatever its offset, marks stay in ascending
// order and never come before text that readers may have seen: a reader that resumes
// behind that text would miss them. For the same reason, a mark whose sequence has a
// replacement comes behind the replacement, however the sequence was split.
//
// A size replaces the last mark if that is a size, too, with no output after it.
// Otherwise a window that is dragged while a reader is away would push the boundaries of
// commands out of the log.
func (l *Log) put(m Mark) (n int64) {
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

// decide turns the scanner's findings in the newest bytes into cuts, and moves the
// frontiers. final says that no more output follows.
func (l *Log) decide(final bool) {
	for _, span := range l.found.Spans {
		if kind, ok := cutFor(span); ok && !(l.opts.Clipboard && span.Class == shellint.ClassClipboard) {
			l.decideText(span.Start, true)
			l.cuts.add(max(span.Start, l.texted), span.End, kind)
			l.texted = span.End
		}
	}
	l.decided = l.found.Decided
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

// textBehind returns a text offset for the raw offset to that is not before any reported
// offset: the true one, unless the list of cuts itself is broken.
func (l *Log) textBehind(to int64) (text int64) {
	defer func() {
		if recover() != nil {
			text = l.cuts.baseText + 3*(to-l.cuts.baseRaw) // as if each byte had become U+FFFD
		}
	}()
	return l.cuts.textAt(l.texted) + to - l.texted
}

// known returns the raw offset up to which the view is known. It includes text that is
// withheld from hosts, since a host may have received it from the former daemon.
func (l *Log) known(v View) int64 {
	switch v {
	case ViewText, ViewOutward:
		return l.texted
	case ViewScreen:
		return l.decided
	}
	return l.log.End()
}

// fill copies the view of the raw range [pos, limit) to buf, as much as fits, and returns
// the raw offset at which that ends and the number of copied bytes. With linear it stops
// where something was left out or replaced.
func (l *Log) fill(buf []byte, v View, pos, limit int64, linear bool) (end int64, n int) {
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

// beforeSequence returns where the piece from pos to end should end instead, so that it
// does not end within a sequence; see begun.
func (l *Log) beforeSequence(pos, end int64) int64 {
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

// lineStart returns the first start of a line at or after raw, so that a view that begins
// there does not begin within a sequence. If no line starts within lineSearch, it returns
// the next start of a character.
func (l *Log) lineStart(raw, end int64) int64 {
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

// weight returns how much of the log's bound the stream takes from a raw offset on, in
// bytes: the output and its cuts.
func (l *Log) weight(from int64) int64 {
	return l.log.End() - from + l.cuts.weight(from)
}

// overfull reports whether the output from a raw offset on with more additional bytes,
// the marks from that number on, or the masks there exceed the bound limit. bound uses
// the same measure, so that no reader loses output for which the child is held.
func (l *Log) overfull(from, mark int64, more, limit int) bool {
	return l.weight(from)+int64(more) > int64(limit) || l.marks.End()-mark > int64(limit/markCost) || l.redaction.overfull(l, from, limit)
}

// slack is the factor by which a log may exceed its bound if a reader that may hold the
// child needs it. Each byte may have a cut, which takes a little more than two bytes.
// That happens when the next daemon adopts a holder's output.
const slack = 4

// bound trims the log, with its cuts, marks and masks, to its bound. Since cuts count,
// fewer bytes of binary output are kept than of text. Output from the raw offset needed
// on stays: the child is held before that exceeds the bound by more than one read.
func (l *Log) bound(needed int64) {
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
	for over := l.weight(base) - int64(limit); over > 0; over = l.weight(base) - int64(limit) {
		if n := l.cuts.blocksBefore(base); n < l.cuts.blocks.Len() {
			over = min(over, (*l.cuts.blocks.At(n)).rawEnd-base)
		}
		base += over
	}
	if over := l.marks.Len() - limit/markCost; over > 0 {
		base = max(base, l.marks.At(l.marks.First()+int64(over)-1).Off+1)
	}
	if v := l.redaction; v != nil {
		base = v.fits(base, l, limit)
	}
	return base
}

// trim drops everything before a raw offset, and marks beyond the bound.
func (l *Log) trim(base int64, limit int) {
	l.leave(base)
	l.log.Trim(base)
	l.cuts.trim(base)
	n := l.marks.First()
	for n < l.marks.End() && (l.marks.At(n).Off < base || l.marks.End()-n > int64(limit/markCost)) {
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

// Fit changes the bound of the log, in bytes, drops what no longer fits, even if a reader
// needs it, and frees the memory.
func (l *Log) Fit(limit int) {
	l.SetLimit(limit)
	l.bound(NoOffset)
	l.history.bound(l.log.Limit())
	l.cuts.blocks.Shrink()
	l.marks.Shrink()
	l.wake()
}

// Cost returns the memory that the log takes, in bytes.
func (l *Log) Cost() int {
	return l.log.Cap() + l.cuts.cost() + l.marks.Cap()*markCost + l.oldest.cost() + l.redaction.cost() + l.history.lineBytes
}
