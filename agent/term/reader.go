package term

import (
	"context"
	"fmt"
	"io"

	"tether/agent/output"
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
	Mark *output.Mark
	// Screen is the screen before the output at Off and Raw, in the hosts' view. A reader
	// gets it after it has lost output, if it asked for ReaderOptions.Screens.
	Screen *output.Screen
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

// Reader is a cursor into a terminal's stream. It pulls: the terminal buffers nothing for
// it. It is not safe for concurrent use, except for Close.
type Reader struct {
	// Set at construction.
	t      *Terminal
	view   output.View
	holds  bool
	lags   bool          // it may slow the child only a little, see agent/flow
	ready  chan struct{} // 1 slot; the terminal sends without blocking
	linear bool          // see ReaderOptions
	back   bool          // see ReaderOptions.Background
	host   string        // the reader is closed when the terminal is withdrawn from this host; "" for other actors
	link   bool          // it is the host's own link, for which the child may be held after it was lost
	rules  *redact.Rules // of texts in marks; nil leaves them as they are

	// Guarded by t.mu.
	pos     int64 // raw offset of the next byte
	off     int64 // pos as an offset of the view; still right after pos was trimmed
	mark    int64 // sequence number of the next mark
	need    int64 // signal ready when this many raw bytes can be read; 0: do not
	stalled bool  // it has held the child for too long, and does not hold it again until it has caught up
	ended   bool
	closed  bool
	screens bool           // see ReaderOptions
	next    *output.Screen // a screen to return when the reader reaches it; nil if there is none
	counted [2]int64       // text offsets up to which masks of secrets and of sequences were counted
}

// ReaderOptions says where a reader starts and in which form it reads.
type ReaderOptions struct {
	View output.View
	// From is the raw offset to start at. If it is older than the log, a LaggedError
	// comes first; if it is newer than the end, the reader starts at the end.
	From int64
	// Tail, if not 0, starts at most this many raw bytes before the end instead, at the
	// start of a line where there is one, and never lags at the start. Negative: exactly
	// at the end.
	Tail int64
	// Hold lets the reader slow the child: with a view of text as much as the terminal's
	// OnSlow allows, otherwise as with OnSlow Hold.
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

// newReader returns a reader; the caller must Close it.
func (t *Terminal) newReader(o ReaderOptions) *Reader {
	r := &Reader{t: t, view: o.View, linear: o.Linear, back: o.Background, ready: o.Wake, screens: o.Screens, counted: [2]int64{-1, -1}}
	if r.ready == nil {
		r.ready = make(chan struct{}, 1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o.Hold = o.Hold && !o.Background
	r.holds = o.Hold && t.origin.onSlow == Hold || o.Hold && !o.View.IsText()
	r.lags = o.Hold && !r.holds
	end := t.log.Frontier(r.view)
	switch {
	case o.Tail < 0:
		r.pos = end
	case o.Tail > 0:
		r.pos = t.log.LineStart(max(end-o.Tail, t.log.Start()), end)
	default:
		r.pos = min(max(o.From, 0), end)
	}
	if r.pos > 0 {
		r.off = r.offsetLocked(r.pos)
	}
	r.mark = t.log.Marks().Search(r.pos)
	select {
	case <-t.life.left:
		r.closed = true // it will never get anything, not even the exit
	default:
		t.readers.open[r] = struct{}{}
		if r.view == output.ViewOutward {
			*t.lending.readersOf(r.back)++
			t.setRedactionLocked()
		}
	}
	return r
}

// bind makes the reader be closed when the lending to host ends; it returns false if that
// has ended already. awaited says that it is the host's link, for which the child may be
// held after it was lost.
func (r *Reader) bind(host string, awaited bool) bool {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	r.host, r.link = host, awaited
	if awaited {
		r.t.readers.arrived(awaitedHost(host))
		r.t.needLocked()
	}
	return r.t.lending.has(host)
}

// Close ends the reader. A waiting Next returns io.ErrClosedPipe.
func (r *Reader) Close() {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	r.closeLocked()
}

func (r *Reader) closeLocked() {
	t := r.t
	delete(t.readers.open, r)
	if r.link && r.holds && !r.closed && t.ending.exit == nil && t.lending.has(r.host) {
		t.readers.await(awaitedHost(r.host), r.pos) // a link was lost
	}
	if r.view == output.ViewOutward && !r.closed {
		t.endOutwardLocked(r.back)
	}
	t.needLocked()
	t.paceLocked()
	r.closed = true
	r.signal()
	r.t.readers.makeRoom()
}

// Next returns the next event, with as much data as fits buf, and blocks until there is
// one. buf must hold at least 64 bytes. Errors: ctx's, a *LaggedError (call again),
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
	if len(buf) < output.MinBuffer {
		return Event{}, false, io.ErrShortBuffer
	}
	r.t.mu.Lock()
	before := r.pos
	ev, ok, err = r.nextLocked(buf)
	moved := r.pos > before // even if only over output that its view does not show
	switch {
	case !moved:
	case r.holds:
		r.t.needLocked()
	case r.lags:
		r.t.stretchLocked()
		r.t.paceLocked()
	}
	r.t.mu.Unlock()
	if (r.holds || r.lags) && moved {
		r.t.readers.makeRoom()
	}
	return ev, ok, err
}

func (r *Reader) nextLocked(buf []byte) (Event, bool, error) {
	t := r.t
	if r.closed {
		return Event{}, false, io.ErrClosedPipe
	}
	if r.pos < t.log.Oldest(r.view) || r.mark < t.log.Marks().First() {
		return Event{}, false, r.resyncLocked()
	}
	if r.back {
		if t.examineForLocked(r.pos, len(buf)); r.pos < t.log.Oldest(r.view) {
			return Event{}, false, r.resyncLocked()
		}
	}
	limit := t.log.Frontier(r.view)
	if s := r.next; s != nil {
		if s.Raw <= r.pos {
			r.next = nil
			if s.Raw == r.pos {
				return Event{Screen: s, Off: r.off, Raw: r.pos}, true, nil
			}
		}
		limit = min(limit, max(s.Raw, r.pos))
	}
	if r.mark < t.log.Marks().End() {
		m := *t.log.Marks().At(r.mark)
		if m.Off <= r.pos {
			r.mark++
			r.ended = m.Kind == output.MarkExited
			m.Mask(r.rules)
			return Event{Mark: &m, Raw: r.pos}, true, nil
		}
		limit = min(limit, m.Off)
	}
	off := r.off
	end, n := r.pos, 0
	if r.view.IsText() {
		end, n = t.log.Fill(buf, r.view, end, t.log.BeforeSequence(end, limit), r.linear)
	}
	if n == 0 {
		end, n = t.log.Fill(buf, r.view, end, limit, r.linear)
	}
	r.pos = end
	if r.off = r.pos; r.view.IsText() {
		r.off = off + int64(n)
	}
	if n > 0 {
		ev := Event{Data: buf[:n], Off: off, Raw: r.pos}
		if r.view == output.ViewOutward {
			ev.Masked = t.log.Mask(buf[:n], off, &r.counted)
		}
		return ev, true, nil
	}
	if r.mark < t.log.Marks().End() && t.log.Marks().At(r.mark).Off <= r.pos {
		return r.nextLocked(buf) // there were only cuts before the mark
	}
	if r.next != nil && r.next.Raw <= r.pos {
		return r.nextLocked(buf) // there were only cuts before the screen
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
	r.t.mu.Lock()
	r.need = int64(max(min, 1))
	now := r.dueLocked()
	r.t.mu.Unlock()
	if now {
		r.signal()
	}
	return r.ready
}

// Pending returns the number of raw bytes between the reader and the newest byte.
func (r *Reader) Pending() int64 {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return r.endLocked() - r.pos
}

// endLocked returns the raw offset up to which the reader can read, if it goes on at
// once.
func (r *Reader) endLocked() int64 {
	log := r.t.log
	if v := log.Redaction(); r.back && v != nil && v.Lazy() && v.Fed() < log.Texted() {
		return log.Texted()
	}
	return log.Frontier(r.view)
}

// Offset returns the reader's position as an offset of its view: that of the next byte it
// returns, unless that byte is trimmed before.
func (r *Reader) Offset() int64 {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return r.off
}

// Raw returns the reader's position as a raw offset.
func (r *Reader) Raw() int64 {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return r.pos
}

// dueLocked reports whether the condition of the reader's last Ready is met.
func (r *Reader) dueLocked() bool {
	t := r.t
	if r.need == 0 {
		return false
	}
	end := r.endLocked()
	marks := t.log.Marks()
	marked := r.mark < marks.First() || r.mark < marks.End() && marks.At(r.mark).Off <= end
	if r.back && r.need > 1 && t.ending.exit == nil {
		marked = false // it waits for an amount
	}
	return end-r.pos >= r.need || r.closed || marked || r.ended
}

func (r *Reader) signal() {
	change.Wake(r.ready)
}

// wakeLocked signals the readers whose condition is met.
func (t *Terminal) wakeLocked() {
	for r := range t.readers.open {
		if r.dueLocked() {
			r.need = 0
			r.signal()
		}
	}
}

// resyncLocked moves a reader whose position was trimmed to the oldest line that is kept.
// If only marks were trimmed, the reader stays where it is.
func (r *Reader) resyncLocked() error {
	t, from := r.t, r.off
	if start := t.log.Oldest(r.view); r.pos < start {
		r.pos = t.log.LineStart(start, t.log.Known(r.view))
		r.off = r.offsetLocked(r.pos)
		r.mark = t.log.Marks().Search(r.pos)
		if r.screens && t.lending.rules != nil {
			r.next = t.log.OutwardFrom(r.pos)
		}
	}
	r.mark = max(r.mark, t.log.Marks().First())
	return r.laggedLocked(from)
}

// laggedLocked returns what the reader lost by moving to its position from a text offset.
func (r *Reader) laggedLocked(from int64) *LaggedError {
	open := r.t.commands.openAt(r.pos)
	for i := range open {
		open[i].Show(r.rules.Redact)
	}
	return &LaggedError{Lost: max(r.off-from, 0), At: r.off, Raw: r.pos, Open: open}
}

// skipLead is how far before the new place of a reader in the background the search for
// secrets begins, in bytes: as much as may be held back.
const skipLead = 4 << 10

// Skip moves a reader in the background over output, so that at most keep raw bytes are
// before it, from the start of a line on where there is one. It returns what the reader
// lost; nil if it has not moved.
func (r *Reader) Skip(keep int64) *LaggedError {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	from, off, end := r.pos, r.off, t.log.Texted()
	if end-from <= keep || r.closed {
		return nil
	}
	r.pos = t.log.LineStart(max(end-keep, t.log.Start()), end)
	r.off, r.mark = r.offsetLocked(r.pos), t.log.Marks().Search(r.pos)
	if v := t.log.Redaction(); v != nil && v.Lazy() && v.Fed() < r.pos-skipLead {
		t.log.RestartRedaction(r.pos - skipLead)
	}
	return r.laggedLocked(off)
}

// Size returns the terminal's size at the reader's position.
func (r *Reader) Size() Size {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	marks := r.t.log.Marks()
	for n := r.mark - 1; n >= marks.First(); n-- {
		if m := marks.At(n); m.Kind == output.MarkResized {
			return m.Size
		}
	}
	size, _, _ := r.t.log.Before()
	return size
}

// Dir returns the terminal's directory at the reader's position.
func (r *Reader) Dir() string {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	marks := r.t.log.Marks()
	for n := r.mark - 1; n >= marks.First(); n-- {
		if m := marks.At(n); m.Kind == output.MarkCwd {
			return m.Text
		}
	}
	_, _, dir := r.t.log.Before()
	return dir
}

// SeekText moves the reader to a text offset, before the marks there, as a host that
// resumes needs it. Only ViewText and ViewOutward have text offsets.
//
// If there is no such offset yet, it moves the reader to the end and returns false.
func (r *Reader) SeekText(text int64) bool {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.log.Known(r.view)
	known := text <= t.log.TextAt(end)
	r.pos = min(max(t.log.RawAt(text), 0), end)
	if r.off = max(text, 0); r.pos >= t.log.Start() {
		r.off = r.offsetLocked(r.pos) // rounded down, or moved back to the end
	}
	// Marks at that text offset come before raw bytes that have no text.
	r.mark = t.log.Marks().End()
	for r.mark > t.log.Marks().First() && t.log.TextAt(t.log.Marks().At(r.mark-1).Off) >= text {
		r.mark--
	}
	r.ended, r.next = false, nil
	if r.holds {
		t.needLocked()
		t.readers.makeRoom()
	}
	return known
}

// offsetLocked returns the offset of the view for a raw offset.
func (r *Reader) offsetLocked(raw int64) int64 {
	if r.view.IsText() {
		return r.t.log.TextAt(raw)
	}
	return raw
}

// Oldest moves the reader to the oldest output that is kept, or to the first offset after
// it where the screen is known, and returns the screen there. That screen and the
// reader's later output together show the same as all output from the start. For
// ViewOutward the screen is masked as the output is; if that is impossible, Replay is
// empty and the screen is not exact.
func (r *Reader) Oldest() (output.Screen, error) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.closed {
		return output.Screen{}, io.ErrClosedPipe
	}
	at := t.log.First()
	if r.view == output.ViewOutward && t.lending.rules != nil {
		t.log.MaskScreen(&at, t.lending.rules)
	}
	r.pos, r.ended = at.Raw, false
	r.off = r.offsetLocked(at.Raw)
	r.mark = t.log.Marks().Search(at.Raw)
	if r.holds {
		t.needLocked()
		t.readers.makeRoom()
	}
	return at, nil
}
