package term

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// minReadBuffer is the smallest buffer a Reader takes, in bytes; less could
// not hold what stands for one cut.
const minReadBuffer = 64

// Event is what a Reader returns: either Data or a Mark.
type Event struct {
	// Data is a piece of the view, in the buffer that was passed. It ends
	// where the view's borders allow (ViewText: at a character) and never
	// spans a mark.
	Data []byte
	// Off is the offset of Data's first byte in the view's own counting.
	Off int64
	// Raw is the raw offset after the event: a Reader started there goes on
	// with what follows.
	Raw  int64
	Mark *Mark
}

// LaggedError says that the log was trimmed past the reader's position. The
// reader stands at At already, at the start of a line where there is one, and
// the next call goes on from there.
type LaggedError struct {
	Lost int64    // bytes of the view that this reader will never see
	At   int64    // offset in the view's own counting
	Open *Command // the command that runs at At, nil if none
}

func (e *LaggedError) Error() string {
	return fmt.Sprintf("reader fell behind: %d bytes lost", e.Lost)
}

// Reader is a cursor into a terminal's stream. It pulls; the terminal keeps
// nothing for it. It is not safe for concurrent use, except Close.
type Reader struct {
	// Set at construction.
	t     *Terminal
	view  View
	holds bool
	ready chan struct{} // 1 slot; the terminal sends without blocking

	// Guarded by t.mu.
	pos     int64 // raw offset of the next byte
	off     int64 // the same in the view's own counting; still right when pos is trimmed
	mark    int64 // sequence number of the next mark
	need    int64 // wake when this many raw bytes are there; 0 = asleep
	stalled bool  // held the child too long; does not hold until it caught up
	ended   bool
	closed  bool
}

// ReaderOptions says where a reader starts and in which form it reads.
type ReaderOptions struct {
	View View
	// From is the raw offset to start at. What is older than the log gives a
	// LaggedError first; what is newer than the end starts at the end.
	From int64
	// Tail, if not 0, starts at most this many raw bytes before the end
	// instead, at the start of a line where there is one, and never lags at
	// the start. Negative: exactly at the end.
	Tail int64
	// Hold lets the reader slow the child, if the terminal allows it.
	Hold bool
}

// newReader returns a reader; the caller must Close it.
func (t *Terminal) newReader(o ReaderOptions) *Reader {
	r := &Reader{t: t, view: o.View, ready: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.holds = o.Hold && t.onSlow == Hold || o.Hold && o.View != ViewText
	end := t.frontierLocked(r.view)
	switch {
	case o.Tail < 0:
		r.pos = end
	case o.Tail > 0:
		r.pos = t.lineStartLocked(max(end-o.Tail, t.log.Start()), end)
	default:
		r.pos = min(max(o.From, 0), end)
	}
	if r.pos > 0 {
		r.off = r.offsetLocked(r.pos)
	}
	r.mark = t.markAtLocked(r.pos)
	t.readers[r] = struct{}{}
	return r
}

// Close ends the reader. A waiting Next returns io.ErrClosedPipe.
func (r *Reader) Close() {
	r.t.mu.Lock()
	delete(r.t.readers, r)
	r.closed = true
	r.t.mu.Unlock()
	r.signal()
	r.t.makeRoom()
}

// Next returns the next event, as much data as fits buf, waiting for it if
// need be. buf must hold at least 64 bytes. Errors: ctx's, a *LaggedError
// (call again), io.EOF after MarkExited.
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
	moved := r.pos > before // also over what its view does not show
	r.t.mu.Unlock()
	if r.holds && moved {
		r.t.makeRoom()
	}
	return ev, ok, err
}

func (r *Reader) nextLocked(buf []byte) (Event, bool, error) {
	t := r.t
	if r.closed {
		return Event{}, false, io.ErrClosedPipe
	}
	if r.pos < t.log.Start() || r.mark < t.firstMark {
		return Event{}, false, r.resyncLocked()
	}
	limit := t.frontierLocked(r.view)
	if i := int(r.mark - t.firstMark); i < t.marks.len() {
		m := *t.marks.at(i)
		if m.Off <= r.pos {
			r.mark++
			r.ended = m.Kind == MarkExited
			return Event{Mark: &m, Raw: r.pos}, true, nil
		}
		limit = min(limit, m.Off)
	}
	off := r.off
	n := r.fillLocked(buf, limit)
	if r.off = r.pos; r.view == ViewText {
		r.off = off + int64(n)
	}
	if n > 0 {
		return Event{Data: buf[:n], Off: off, Raw: r.pos}, true, nil
	}
	if i := int(r.mark - t.firstMark); i < t.marks.len() && t.marks.at(i).Off <= r.pos {
		return r.nextLocked(buf) // only cuts lay before the mark
	}
	if r.ended {
		return Event{}, false, io.EOF
	}
	return Event{}, false, nil
}

// fillLocked copies the view of [pos, limit) as far as buf holds it.
func (r *Reader) fillLocked(buf []byte, limit int64) int {
	t, n := r.t, 0
	for i := t.cuts.after(r.pos); r.pos < limit && n < len(buf); {
		plain := limit
		if i < t.cuts.items.len() {
			c := t.cuts.items.at(i)
			if c.shown(r.view) {
				i++
				continue
			}
			if c.start <= r.pos {
				// Ends of marks may lie beyond limit while they grow.
				pos, k := c.standIn(buf[n:], r.pos, limit)
				n += k
				if pos == r.pos {
					break
				}
				r.pos = pos
				if pos == c.end {
					i++
				}
				continue
			}
			plain = min(plain, c.start)
		}
		k := int(min(plain-r.pos, int64(len(buf)-n)))
		k = t.log.ReadAt(buf[n:n+k], r.pos)
		if r.view == ViewText && k < int(plain-r.pos) {
			k -= incomplete(buf[n : n+k])
		}
		if k == 0 {
			break
		}
		n += k
		r.pos += int64(k)
	}
	return n
}

// resyncLocked moves a reader whose place is gone to the oldest line kept. If
// nothing but marks is gone, it stays where it is.
func (r *Reader) resyncLocked() error {
	t, from := r.t, r.off
	if r.pos < t.log.Start() {
		r.pos = t.lineStartLocked(t.log.Start(), t.frontierLocked(r.view))
		r.off = r.offsetLocked(r.pos)
		r.mark = t.markAtLocked(r.pos)
	}
	r.mark = max(r.mark, t.firstMark)
	e := &LaggedError{Lost: max(r.off-from, 0), At: r.off}
	if c := t.runningLocked(r.pos); c != nil {
		open := *c
		e.Open = &open
	}
	return e
}

// SeekText moves the reader to a text offset, as a host that resumes asks for it,
// before the marks there. Only ViewText has text offsets.
//
// It reports false, and stands at the end, if there is no such offset yet.
func (r *Reader) SeekText(text int64) bool {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	known := text <= t.cuts.textAt(t.frontierLocked(r.view))
	r.pos = min(max(t.cuts.rawAt(text), 0), t.frontierLocked(r.view))
	if r.off = max(text, 0); r.pos >= t.log.Start() {
		r.off = r.offsetLocked(r.pos) // rounded down, or brought to the end
	}
	// Marks at that text offset lie before the bytes that stand for nothing.
	i := t.marks.len()
	for i > 0 && t.cuts.textAt(t.marks.at(i-1).Off) >= text {
		i--
	}
	r.mark = t.firstMark + int64(i)
	r.ended = false
	return known
}

// offsetLocked is the view's own offset of a raw one.
func (r *Reader) offsetLocked(raw int64) int64 {
	if r.view == ViewText {
		return r.t.cuts.textAt(raw)
	}
	return raw
}

// Ready returns a channel that receives a value when at least min bytes can
// be read, or a mark, or the end. It may receive one too many; it is never
// closed. At most one call is armed at a time, the last.
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

// dueLocked reports whether an armed reader has what it waits for.
func (r *Reader) dueLocked() bool {
	t := r.t
	if r.need == 0 {
		return false
	}
	end := t.frontierLocked(r.view)
	return end-r.pos >= r.need || r.closed || r.mark < t.firstMark+int64(t.marks.len()) || r.ended
}

func (r *Reader) signal() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// wakeLocked signals the readers that have what they wait for.
func (t *Terminal) wakeLocked() {
	for r := range t.readers {
		if r.dueLocked() {
			r.need = 0
			r.signal()
		}
	}
}

// frontierLocked is the raw offset up to which the view is known.
func (t *Terminal) frontierLocked(v View) int64 {
	switch v {
	case ViewText:
		return t.texted
	case ViewScreen:
		return t.decided
	}
	return t.log.End()
}

// markAtLocked is the sequence number of the first mark at or after raw.
func (t *Terminal) markAtLocked(raw int64) int64 {
	n := t.marks.len()
	i := n
	for i > 0 && t.marks.at(i-1).Off >= raw {
		i--
	}
	return t.firstMark + int64(i)
}

// lineSearch is how far lineStartLocked looks, in bytes.
const lineSearch = 4 << 10

// lineStartLocked is the first line start at or after raw, so that a view
// that begins there cuts no sequence; without one nearby it is the next start
// of a character.
func (t *Terminal) lineStartLocked(raw, end int64) int64 {
	if raw == 0 || raw >= end {
		return min(raw, end)
	}
	buf := make([]byte, min(lineSearch, end-raw+1))
	buf = buf[:t.log.ReadAt(buf, max(raw-1, t.log.Start()))]
	first := max(raw-1, t.log.Start())
	if i := bytes.IndexByte(buf, '\n'); i >= 0 {
		return min(first+int64(i)+1, end)
	}
	for raw < end && int(raw-first) < len(buf) && !utf8.RuneStart(buf[raw-first]) {
		raw++
	}
	return raw
}

// hold waits while appending n bytes would drop what a holding reader has
// not read yet, at most for the pool's stall time.
func (t *Terminal) hold(n int) {
	if !t.blocked(n) {
		return
	}
	stall := time.NewTimer(t.pool.opts.Stall)
	defer stall.Stop()
	for t.blocked(n) {
		select {
		case <-t.room:
		case <-t.killed:
			return
		case <-stall.C:
			t.mu.Lock()
			for r := range t.readers {
				r.stalled = r.stalled || t.blocksLocked(r, n)
			}
			t.mu.Unlock()
			return
		}
	}
}

func (t *Terminal) blocked(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.readers {
		if t.blocksLocked(r, n) {
			return true
		}
	}
	return false
}

// blocksLocked reports whether r holds the child back from n more bytes.
func (t *Terminal) blocksLocked(r *Reader, n int) bool {
	if !r.holds {
		return false
	}
	behind := t.log.End() + int64(n) - r.pos
	if r.stalled {
		r.stalled = behind > int64(t.log.Limit()/2)
		return false
	}
	return behind > int64(t.log.Limit())
}

// makeRoom tells a waiting pump that a reader moved.
func (t *Terminal) makeRoom() {
	select {
	case t.room <- struct{}{}:
	default:
	}
}
