package term

import (
	"context"
	"fmt"
	"io"

	"tether/agent/redact"
)

// minReadBuffer is the smallest buffer that a Reader takes, in bytes; less could not hold the replacement of one cut.
const minReadBuffer = 64

// Event is the result of a Reader: either Data or a Mark.
type Event struct {
	// Data is a piece of the view, in the buffer that was passed. It ends where the view's borders allow (ViewText: at a character) and never
	// spans a mark.
	Data []byte
	// Off is the offset of Data's first byte in the view's own counting.
	Off int64
	// Raw is the raw offset after the event: a Reader started there continues with the next one.
	Raw  int64
	Mark *Mark
	// Screen is the screen at Off, Raw, in the hosts' view: the reader has lost the output before it. The offset is that of the next output.
	// Only readers that asked for Screens get it.
	Screen *Screen
	// Masked is how many places of Data hosts do not see as they are: secrets and control sequences, each in the first event that has some of
	// it. Only ViewOutward has any.
	Masked int
}

// LaggedError says that the log was trimmed past the reader's position. The reader stands at At already, at the start of a line where there
// is one, and the next call goes on from there.
type LaggedError struct {
	Lost int64     // bytes of the view that this reader will never see
	At   int64     // offset in the view's own counting
	Raw  int64     // the same as a raw offset
	Open []Command // commands that run at At: none, one, or one and another within it
}

func (e *LaggedError) Error() string {
	return fmt.Sprintf("reader fell behind: %d bytes lost", e.Lost)
}

// Reader is a cursor into a terminal's stream. It pulls; the terminal keeps nothing for it. It is not safe for concurrent use, except
// Close.
type Reader struct {
	// Set at construction.
	t      *Terminal
	view   View
	holds  bool
	lags   bool          // it may slow the child only a little, see agent/flow
	ready  chan struct{} // 1 slot; the terminal sends without blocking
	linear bool          // see ReaderOptions
	host   string        // the reader ends when the terminal is withdrawn from it; "" for other actors
	link   bool          // it is the host's own link, which the child may be held for when it is lost
	rules  *redact.Rules // of texts in marks; nil leaves them as they are

	// Guarded by t.mu.
	pos     int64 // raw offset of the next byte
	off     int64 // the same in the view's own counting; still right when pos is trimmed
	mark    int64 // sequence number of the next mark
	need    int64 // wake when this many raw bytes are there; 0 = asleep
	stalled bool  // held the child too long; does not hold until it caught up
	ended   bool
	closed  bool
	screens bool     // see ReaderOptions
	next    *Screen  // to be returned when it is reached
	counted [2]int64 // text offsets up to which masks of secrets and of sequences were counted
}

// ReaderOptions says where a reader starts and in which form it reads.
type ReaderOptions struct {
	View View
	// From is the raw offset to start at. If it is older than the log, a LaggedError comes first; if it is newer than the end, the reader
	// starts at the end.
	From int64
	// Tail, if not 0, starts at most this many raw bytes before the end instead, at the start of a line where there is one, and never lags at
	// the start. Negative: exactly at the end.
	Tail int64
	// Hold lets the reader slow the child: as much as the terminal's OnSlow allows where the view is of text, else as with the policy Hold.
	Hold bool
	// Linear ends each piece of data where something was left out or replaced, so that the offset of each of its bytes is known: the last one
	// is right before Event.Raw, unless all of the piece stands for bytes that are no UTF-8.
	Linear bool
	// Screens makes a reader of ViewOutward that loses output get the screen behind the loss, as soon as it is known.
	Screens bool
	// Wake, if not nil, is returned by Ready instead of a channel of the reader's own, so that one goroutine can wait for many. It has one
	// slot.
	Wake chan struct{}
}

// newReader returns a reader; the caller must Close it.
func (t *Terminal) newReader(o ReaderOptions) *Reader {
	r := &Reader{t: t, view: o.View, linear: o.Linear, ready: o.Wake, screens: o.Screens, counted: [2]int64{-1, -1}}
	if r.ready == nil {
		r.ready = make(chan struct{}, 1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.holds = o.Hold && t.origin.onSlow == Hold || o.Hold && !o.View.isText()
	r.lags = o.Hold && !r.holds
	end := t.frontierLocked(r.view)
	switch {
	case o.Tail < 0:
		r.pos = end
	case o.Tail > 0:
		r.pos = t.stream.lineStart(max(end-o.Tail, t.stream.log.Start()), end)
	default:
		r.pos = min(max(o.From, 0), end)
	}
	if r.pos > 0 {
		r.off = r.offsetLocked(r.pos)
	}
	r.mark = t.stream.markAt(r.pos)
	select {
	case <-t.life.left:
		r.closed = true // nothing comes any more, not even the exit
	default:
		t.readers.open[r] = struct{}{}
		if r.view == ViewOutward {
			t.lending.outward++
			t.setRedactionLocked()
		}
	}
	return r
}

// bind makes the reader end with the lending to host; false if it has ended. awaited: it is the link that the child may be held for.
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
	if r.view == ViewOutward && !r.closed {
		t.endOutwardLocked()
	}
	t.needLocked()
	t.paceLocked()
	r.closed = true
	r.signal()
	r.t.readers.makeRoom()
}

// Next returns the next event, with as much data as fits buf, and blocks until there is one. buf must hold at least 64 bytes. Errors: ctx's, a
// *LaggedError (call again), io.EOF after MarkExited.
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
	if len(buf) < minReadBuffer {
		return Event{}, false, io.ErrShortBuffer
	}
	r.t.mu.Lock()
	before := r.pos
	ev, ok, err = r.nextLocked(buf)
	moved := r.pos > before // also over output that its view does not show
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
	if r.pos < t.stream.log.Start() || r.mark < t.stream.firstMark {
		return Event{}, false, r.resyncLocked()
	}
	limit := t.frontierLocked(r.view)
	if s := r.next; s != nil {
		if s.Raw <= r.pos {
			r.next = nil
			if s.Raw == r.pos {
				return Event{Screen: s, Off: r.off, Raw: r.pos}, true, nil
			}
		}
		limit = min(limit, max(s.Raw, r.pos))
	}
	if i := int(r.mark - t.stream.firstMark); i < t.stream.marks.len() {
		m := *t.stream.marks.at(i)
		if m.Off <= r.pos {
			r.mark++
			r.ended = m.Kind == MarkExited
			m.mask(r.rules)
			return Event{Mark: &m, Raw: r.pos}, true, nil
		}
		limit = min(limit, m.Off)
	}
	off := r.off
	end, n := r.pos, 0
	if r.view.isText() {
		end, n = t.stream.fill(buf, r.view, end, t.stream.beforeSequence(end, limit), r.linear)
	}
	if n == 0 {
		end, n = t.stream.fill(buf, r.view, end, limit, r.linear)
	}
	r.pos = end
	if r.off = r.pos; r.view.isText() {
		r.off = off + int64(n)
	}
	if n > 0 {
		ev := Event{Data: buf[:n], Off: off, Raw: r.pos}
		if r.view == ViewOutward && t.lending.redaction != nil {
			ev.Masked = t.lending.redaction.mask(buf[:n], off, &r.counted)
		}
		return ev, true, nil
	}
	if i := int(r.mark - t.stream.firstMark); i < t.stream.marks.len() && t.stream.marks.at(i).Off <= r.pos {
		return r.nextLocked(buf) // only cuts lay before the mark
	}
	if r.next != nil && r.next.Raw <= r.pos {
		return r.nextLocked(buf) // or before the screen
	}
	if r.ended {
		return Event{}, false, io.EOF
	}
	return Event{}, false, nil
}

// Ready returns a channel that receives a value when at least min bytes can be read, or a mark, or the end. It may receive one too many; it
// is never closed. At most one call is armed at a time, the last.
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

// Pending is the number of raw bytes between the reader and the newest one.
func (r *Reader) Pending() int64 {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return r.t.frontierLocked(r.view) - r.pos
}

// Offset is where the reader stands, in the view's own counting: the offset of the next byte it returns, unless that is trimmed before.
func (r *Reader) Offset() int64 {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return r.off
}

// dueLocked reports whether an armed reader's condition is met.
func (r *Reader) dueLocked() bool {
	t := r.t
	if r.need == 0 {
		return false
	}
	end := t.frontierLocked(r.view)
	i := int(r.mark - t.stream.firstMark)
	marked := i < 0 || i < t.stream.marks.len() && t.stream.marks.at(i).Off <= end
	return end-r.pos >= r.need || r.closed || marked || r.ended
}

func (r *Reader) signal() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
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

// resyncLocked moves a reader whose place is gone to the oldest line kept. If nothing but marks is gone, it stays where it is.
func (r *Reader) resyncLocked() error {
	t, from := r.t, r.off
	if r.pos < t.stream.log.Start() {
		r.pos = t.stream.lineStart(t.stream.log.Start(), t.stream.known(r.view))
		r.off = r.offsetLocked(r.pos)
		r.mark = t.stream.markAt(r.pos)
		if r.screens && t.lending.rules != nil {
			r.next = t.stream.outwardFrom(r.pos)
		}
	}
	r.mark = max(r.mark, t.stream.firstMark)
	open := t.commands.openAt(r.pos)
	for i := range open {
		open[i].Line = r.rules.Redact(open[i].Line)
	}
	return &LaggedError{Lost: max(r.off-from, 0), At: r.off, Raw: r.pos, Open: open}
}

// Size is the terminal's size where the reader stands.
func (r *Reader) Size() Size {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	s := &r.t.stream
	for i := int(r.mark-s.firstMark) - 1; i >= 0; i-- {
		if m := s.marks.at(i); m.Kind == MarkResized {
			return m.Size
		}
	}
	return s.before
}

// SeekText moves the reader to a text offset, as a host that resumes asks for it, before the marks there. Only ViewText and ViewOutward
// have text offsets.
//
// It reports false, and stands at the end, if there is no such offset yet.
func (r *Reader) SeekText(text int64) bool {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.stream.known(r.view)
	known := text <= t.stream.cuts.textAt(end)
	r.pos = min(max(t.stream.cuts.rawAt(text), 0), end)
	if r.off = max(text, 0); r.pos >= t.stream.log.Start() {
		r.off = r.offsetLocked(r.pos) // rounded down, or brought to the end
	}
	// Marks at that text offset lie before the bytes that stand for nothing.
	i := t.stream.marks.len()
	for i > 0 && t.stream.cuts.textAt(t.stream.marks.at(i-1).Off) >= text {
		i--
	}
	r.mark = t.stream.firstMark + int64(i)
	r.ended, r.next = false, nil
	if r.holds {
		t.needLocked()
		t.readers.makeRoom()
	}
	return known
}

// offsetLocked is the view's own offset of a raw one.
func (r *Reader) offsetLocked(raw int64) int64 {
	if r.view.isText() {
		return r.t.stream.cuts.textAt(raw)
	}
	return raw
}

// frontierLocked is the raw offset up to which the view may be read.
func (t *Terminal) frontierLocked(v View) int64 {
	if v == ViewOutward && t.lending.redaction != nil {
		return t.lending.redaction.frontier
	}
	return t.stream.known(v)
}
