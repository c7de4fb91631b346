package output

import (
	"context"
	"fmt"
	"io"

	"tether/agent/redact"
	"tether/internal/change"
	"tether/vocab"
)

// Event is the result of a Reader: either Data or a Mark.
type Event struct {
	// Data is a piece of the view, in the buffer that was passed. It ends where the
	// view's borders allow (ViewText: at a character) and never spans a mark.
	Data []byte
	// Off is the offset of Data's first byte in the view's own counting.
	Off int64
	// Raw is the raw offset after the event: a Reader that starts there continues with
	// the next event.
	Raw  int64
	Mark *Mark
	// Screen is the screen before the output at Off and Raw, in the hosts' view. A reader
	// gets it after it has lost output, if it asked for ReaderOptions.Screens.
	Screen *Screen
	// Masked is the number of masked places in Data, secrets and control sequences; each
	// counts in the first event that has a part of it. It is 0 except for ViewOutward.
	Masked int
}

// LaggedError says that the log was trimmed past the reader's position. The reader has
// already moved to At, the start of a line if there is one, and the next call continues
// from there.
type LaggedError struct {
	Lost int64           // bytes of the view that this reader will never see
	At   int64           // offset in the view's own counting
	Raw  int64           // At as a raw offset
	Open []vocab.Command // commands that run at At: none, one, or an outer one and one within it
}

func (e *LaggedError) Error() string {
	return fmt.Sprintf("reader fell behind: %d bytes lost", e.Lost)
}

// Reader is a cursor into a log. It pulls: the log buffers nothing for it. It is not safe
// for concurrent use, except for Close. Its methods take the lock.
type Reader struct {
	// Set at construction.
	l      *Log
	view   View
	holds  bool          // it may hold the child
	lags   bool          // it may slow the child only a little, see agent/flow
	ready  chan struct{} // 1 slot; the log sends without blocking
	linear bool          // see ReaderOptions
	back   bool          // see ReaderOptions.Background

	// Guarded by l.mu.
	by      By
	pos     int64 // raw offset of the next byte
	off     int64 // pos as an offset of the view; still right after pos was trimmed
	mark    int64 // sequence number of the next mark
	need    int64 // signal ready when this many raw bytes can be read; 0: do not
	stalled bool  // it has held the child for too long, and does not hold it again until it has caught up
	ended   bool
	closed  bool
	screens bool     // see ReaderOptions
	next    *Screen  // a screen to return when the reader reaches it; nil if there is none
	counted [2]int64 // text offsets up to which masks of secrets and of sequences were counted
}

// ReaderOptions says where a reader starts and in which form it reads.
type ReaderOptions struct {
	View View
	// From is the raw offset to start at. If it is older than the log, a LaggedError
	// comes first; if it is newer than the end, the reader starts at the end.
	From int64
	// Tail, if not 0, starts at most this many raw bytes before the end instead, at the
	// start of a line where there is one, and never lags at the start. Negative: exactly
	// at the end.
	Tail int64
	// Hold lets the reader slow the child: with a view of text as much as the terminal
	// allows, otherwise so that it may hold the child.
	Hold bool
	// Linear ends each piece of data where something was left out or replaced, so that
	// the raw offset of each of its bytes is known: they end right before Event.Raw,
	// unless the whole piece stands for bytes that are not UTF-8.
	Linear bool
	// Screens makes a reader of ViewOutward that loses output get the screen behind the
	// loss, as soon as it is known.
	Screens bool
	// Background makes a reader of ViewOutward for which output is examined when it is
	// read, and not when it is printed, unless the terminal is lent or has another reader
	// of ViewOutward. It never holds the child.
	Background bool
	// Wake, if not nil, is the channel that Ready returns, so that one goroutine can wait
	// for many readers. It has one slot.
	Wake chan struct{}
}

// By says for whom a reader reads.
type By struct {
	Host   string        // CloseOf closes its readers; "" for others than hosts and agents there
	Awaits string        // the name under which it is awaited, before it has come and after it was closed; "": it is not
	Rules  *redact.Rules // of texts in marks; nil leaves them as they are
}

// NewReader returns a reader; the caller must Close it. It takes the lock.
func (l *Log) NewReader(o ReaderOptions, by By) *Reader {
	o.Background = o.Background && o.View == ViewOutward
	r := &Reader{l: l, view: o.View, linear: o.Linear, back: o.Background, ready: o.Wake, by: by, screens: o.Screens, counted: [2]int64{-1, -1}}
	if r.ready == nil {
		r.ready = make(chan struct{}, 1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.view == ViewOutward && !r.back {
		l.addReader(false, +1)
		l.examineAll()
	}
	o.Hold = o.Hold && !o.Background
	r.holds = o.Hold && (l.opts.Holds || !o.View.IsText())
	r.lags = o.Hold && !r.holds
	end := l.frontier(r.view)
	switch {
	case o.Tail < 0:
		r.pos = end
	case o.Tail > 0:
		r.pos = l.lineStart(max(end-o.Tail, l.log.Start()), end)
	default:
		r.pos = min(max(o.From, 0), end)
	}
	if r.pos > 0 {
		r.off = r.offset(r.pos)
	}
	r.mark = l.marks.Search(r.pos)
	if r.back {
		l.addReader(true, +1)
	}
	l.readers.open[r] = struct{}{}
	if l.readers.over {
		r.close()
	}
	if by.Awaits != "" {
		l.Arrived(by.Awaits)
	}
	return r
}

// Close ends the reader. A waiting Next returns io.ErrClosedPipe.
func (r *Reader) Close() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.close()
}

func (r *Reader) close() {
	l := r.l
	delete(l.readers.open, r)
	if r.by.Awaits != "" && r.holds && !r.closed && !l.exited {
		l.Await(r.by.Awaits, r.pos) // a link was lost
	}
	if r.view == ViewOutward && !r.closed {
		l.addReader(r.back, -1)
	}
	r.closed = true
	r.signal()
	l.owner.Moved()
}

// Next returns the next event, with as much data as fits buf, and blocks until there is
// one. buf must have at least 64 bytes. Errors: ctx's, a *LaggedError (call again),
// io.EOF after MarkExited.
func (r *Reader) Next(ctx context.Context, buf []byte) (Event, error) {
	for {
		ev, ok, err := r.TryNext(buf)
		if ok || err != nil {
			return ev, err
		}
		select {
		case <-r.Ready(1):
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// TryNext is Next without waiting; ok is false if there is nothing yet.
func (r *Reader) TryNext(buf []byte) (ev Event, ok bool, err error) {
	if len(buf) < MinBuffer {
		return Event{}, false, io.ErrShortBuffer
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	before := r.pos
	ev, ok, err = r.nextEvent(buf)
	if (r.holds || r.lags) && r.pos > before { // even if only over output that its view does not show
		r.l.owner.Moved()
	}
	return ev, ok, err
}

func (r *Reader) nextEvent(buf []byte) (Event, bool, error) {
	l := r.l
	if r.closed {
		return Event{}, false, io.ErrClosedPipe
	}
	if r.pos < l.oldestOf(r.view) || r.mark < l.marks.First() {
		return Event{}, false, r.resync()
	}
	if r.back {
		if l.examineFor(r.pos, len(buf)); r.pos < l.oldestOf(r.view) {
			return Event{}, false, r.resync()
		}
	}
	limit := l.frontier(r.view)
	if s := r.next; s != nil {
		if s.Raw <= r.pos {
			r.next = nil
			if s.Raw == r.pos {
				return Event{Screen: s, Off: r.off, Raw: r.pos}, true, nil
			}
		}
		limit = min(limit, max(s.Raw, r.pos))
	}
	if r.mark < l.marks.End() {
		m := *l.marks.At(r.mark)
		if m.Off <= r.pos {
			r.mark++
			r.ended = m.Kind == MarkExited
			m.mask(r.by.Rules)
			return Event{Mark: &m, Raw: r.pos}, true, nil
		}
		limit = min(limit, m.Off)
	}
	off := r.off
	end, n := r.pos, 0
	if r.view.IsText() {
		end, n = l.fill(buf, r.view, end, l.beforeSequence(end, limit), r.linear)
	}
	if n == 0 {
		end, n = l.fill(buf, r.view, end, limit, r.linear)
	}
	r.pos = end
	if r.off = r.pos; r.view.IsText() {
		r.off = off + int64(n)
	}
	if n > 0 {
		ev := Event{Data: buf[:n], Off: off, Raw: r.pos}
		if r.view == ViewOutward {
			ev.Masked = l.maskText(buf[:n], off, &r.counted)
		}
		return ev, true, nil
	}
	if r.mark < l.marks.End() && l.marks.At(r.mark).Off <= r.pos {
		return r.nextEvent(buf) // there were only cuts before the mark
	}
	if r.next != nil && r.next.Raw <= r.pos {
		return r.nextEvent(buf) // there were only cuts before the screen
	}
	if r.ended {
		return Event{}, false, io.EOF
	}
	return Event{}, false, nil
}

// Ready returns a channel that receives a value when at least min bytes, a mark or the
// end can be read. It may receive one value too many; it is never closed. Only the last
// call of Ready has effect.
func (r *Reader) Ready(min int) <-chan struct{} {
	r.l.mu.Lock()
	r.need = int64(max(min, 1))
	now := r.due()
	r.l.mu.Unlock()
	if now {
		r.signal()
	}
	return r.ready
}

// Pending returns the number of raw bytes between the reader and the newest byte.
func (r *Reader) Pending() int64 {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return r.end() - r.pos
}

// end returns the raw offset up to which the reader can read, if it goes on at once.
func (r *Reader) end() int64 {
	l := r.l
	if v := l.redaction; r.back && v != nil && v.lazy && v.fed < l.texted {
		return l.texted
	}
	return l.frontier(r.view)
}

// Offset returns the reader's position as an offset of its view: that of the next byte it
// returns, unless that byte is trimmed before.
func (r *Reader) Offset() int64 {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return r.off
}

// Raw returns the reader's position as a raw offset.
func (r *Reader) Raw() int64 {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return r.pos
}

// due reports whether the condition of the reader's last Ready is met.
func (r *Reader) due() bool {
	l := r.l
	if r.need == 0 {
		return false
	}
	end := r.end()
	marks := &l.marks
	marked := r.mark < marks.First() || r.mark < marks.End() && marks.At(r.mark).Off <= end
	if r.back && r.need > 1 && !l.exited {
		marked = false // it waits for an amount
	}
	return end-r.pos >= r.need || r.closed || marked || r.ended
}

func (r *Reader) signal() {
	change.Wake(r.ready)
}

// resync moves a reader whose position was trimmed to the oldest line that is kept.
// If only marks were trimmed, the reader stays where it is.
func (r *Reader) resync() error {
	l, from := r.l, r.off
	if start := l.oldestOf(r.view); r.pos < start {
		r.pos = l.lineStart(start, l.known(r.view))
		r.off = r.offset(r.pos)
		r.mark = l.marks.Search(r.pos)
		if r.screens && l.outward.rules != nil {
			r.next = l.outwardFrom(r.pos)
		}
	}
	r.mark = max(r.mark, l.marks.First())
	return r.lagged(from)
}

// lagged returns what the reader lost by moving to its position from a text offset.
func (r *Reader) lagged(from int64) *LaggedError {
	open := r.l.history.openAt(r.pos)
	for i := range open {
		open[i].Show(r.by.Rules.Redact)
	}
	return &LaggedError{Lost: max(r.off-from, 0), At: r.off, Raw: r.pos, Open: open}
}

// skipLead is how far before the new place of a reader in the background the search for
// secrets begins, in bytes: as much as may be withheld.
const skipLead = 4 << 10

// Skip moves a reader in the background over output, so that at most keep raw bytes are
// before it, from the start of a line on where there is one. It returns what the reader
// lost; nil if it has not moved.
func (r *Reader) Skip(keep int64) *LaggedError {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	from, off, end := r.pos, r.off, l.texted
	if end-from <= keep || r.closed {
		return nil
	}
	r.pos = l.lineStart(max(end-keep, l.log.Start()), end)
	r.off, r.mark = r.offset(r.pos), l.marks.Search(r.pos)
	if v := l.redaction; v != nil && v.lazy && v.fed < r.pos-skipLead {
		l.restartRedaction(r.pos - skipLead)
	}
	return r.lagged(off)
}

// Size returns the terminal's size at the reader's position.
func (r *Reader) Size() Size {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if m, ok := r.passed(MarkResized); ok {
		return m.Size
	}
	return r.l.before
}

// Dir returns the terminal's directory at the reader's position.
func (r *Reader) Dir() string {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if m, ok := r.passed(MarkCwd); ok {
		return m.Text
	}
	return r.l.dir
}

// passed returns the last mark of a kind before the reader's position, if it is kept.
func (r *Reader) passed(kind MarkKind) (*Mark, bool) {
	for n := r.mark - 1; n >= r.l.marks.First(); n-- {
		if m := r.l.marks.At(n); m.Kind == kind {
			return m, true
		}
	}
	return nil, false
}

// SeekText moves the reader to a text offset, before the marks there, as a host that
// resumes needs it. Only ViewText and ViewOutward have text offsets.
//
// If there is no such offset yet, it moves the reader to the end and returns false.
func (r *Reader) SeekText(text int64) bool {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.known(r.view)
	known := text <= l.cuts.textAt(end)
	r.pos = min(max(l.cuts.rawAt(text), 0), end)
	if r.off = max(text, 0); r.pos >= l.log.Start() {
		r.off = r.offset(r.pos) // rounded down, or moved back to the end
	}
	// Marks at that text offset come before raw bytes that have no text.
	r.mark = l.marks.End()
	for r.mark > l.marks.First() && l.cuts.textAt(l.marks.At(r.mark-1).Off) >= text {
		r.mark--
	}
	r.ended, r.next = false, nil
	if r.holds {
		l.owner.Moved()
	}
	return known
}

// offset returns the offset of the view for a raw offset.
func (r *Reader) offset(raw int64) int64 {
	if r.view.IsText() {
		return r.l.cuts.textAt(raw)
	}
	return raw
}

// Oldest moves the reader to the oldest output that is kept, or to the first offset after
// it where the screen is known, and returns the screen there. That screen and the
// reader's later output together show the same as all output from the start. For
// ViewOutward the screen is masked as the output is; if that is impossible, Replay is
// empty and the screen is not exact.
func (r *Reader) Oldest() (Screen, error) {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.closed {
		return Screen{}, io.ErrClosedPipe
	}
	at := l.firstScreen()
	if r.view == ViewOutward && l.outward.rules != nil {
		l.maskScreen(&at, l.outward.rules)
	}
	r.pos, r.ended = at.Raw, false
	r.off = r.offset(at.Raw)
	r.mark = l.marks.Search(at.Raw)
	if r.holds {
		l.owner.Moved()
	}
	return at, nil
}
