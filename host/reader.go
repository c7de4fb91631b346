package host

import (
	"context"
	"io"
	"math"

	"tether/agenttools"
	"tether/internal/jsonspan"
)

// minRead is the least room that a reader must be given, in bytes.
const minRead = 64

// textReader implements agenttools.Reader over the recorded text of one terminal. It
// keeps no text: it reports text that was trimmed before it could read it as lost.
type textReader struct {
	lookedAt
	sight int64 // value of Host.sight for which p was known to see the terminal

	pos      int64 // in the stream of all text
	mark     int64 // number of the next mark
	exited   bool  // the exit was delivered
	reported int64 // position up to which losses were reported
	wait     int64 // offset to wait for, because the text has not reached it yet; 0: none

	// For the text to be decoded: how far offsets are ahead of positions, and the
	// greatest offset.
	ahead, most int64
	spans       []span // to be decoded
	text        []byte
}

// span is a part of a run, still escaped.
type span struct {
	esc  []byte
	skip int // bytes of decoded text before the wanted ones
	size int // of the whole, decoded
}

// newReader returns a reader at an offset.
func (l lookedAt) newReader(from int64) *textReader {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	r := &textReader{lookedAt: l, sight: l.h.sight - 1}
	r.beginLocked(from)
	return r
}

// beginLocked moves to an offset. If the text has not reached it, the reader waits: after
// a restart of the host, owners send their text again.
func (r *textReader) beginLocked(from int64) {
	if r.wait = 0; from > r.t.endOffsetLocked() {
		r.wait = from
	}
	r.pos, r.mark = r.t.marks.at(from, &r.t.offsets)
	if r.reported = r.pos; from < r.offLocked() {
		r.reported--
	}
}

// maySeeLocked reports whether the reader may continue, because the audience may have
// changed.
func (r *textReader) maySeeLocked() bool {
	if r.p == nil || r.sight == r.h.sight {
		return true
	}
	v := r.h.viewerLocked(*r.p)
	from, ok := r.h.seesLocked(&v, r.t)
	r.from, r.sight = from, r.h.sight
	return ok
}

// offLocked returns the reader's offset.
func (r *textReader) offLocked() int64 { return r.t.offsetLocked(r.pos, r.t.marks.before(r.mark)) }

// off returns the reader's offset in the found text.
func (r *textReader) off() int64 { return min(r.pos+r.ahead, r.most) }

// TryNext implements agenttools.Reader.
func (r *textReader) TryNext(buf []byte) (agenttools.Event, bool, error) {
	ev, ok, _, err := r.step(buf, false)
	return ev, ok, err
}

// Next implements agenttools.Reader.
func (r *textReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	for {
		ev, ok, moved, err := r.step(buf, true)
		if ok || err != nil {
			return ev, err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return agenttools.Event{}, ctx.Err()
		case <-r.h.ctx.Done():
			return agenttools.Event{}, errClosing
		}
	}
}

// Close implements agenttools.Reader.
func (r *textReader) Close() {}

// step returns the next event. If there is none and wait is set, moved is closed when
// there may be one. The host's lock is held only to find the text, not to decode it.
func (r *textReader) step(buf []byte, wait bool) (ev agenttools.Event, ok bool, moved <-chan struct{}, err error) {
	if len(buf) < minRead {
		return agenttools.Event{}, false, nil, io.ErrShortBuffer
	}
	if r.exited {
		return agenttools.Event{}, false, nil, io.EOF
	}
	r.h.mu.Lock()
	if !r.maySeeLocked() {
		r.h.mu.Unlock()
		return agenttools.Event{}, false, nil, agenttools.ErrNotFound
	}
	if r.t.mirror() != nil {
		r.h.wantLocked(r.t)
	}
	if r.wait > 0 && (r.wait <= r.t.endOffsetLocked() || r.t.state.Lifecycle.Exited()) {
		r.beginLocked(min(r.wait, r.t.endOffsetLocked()))
	}
	r.spans = r.spans[:0]
	if r.wait == 0 {
		ev, ok = r.markLocked()
	}
	if !ok {
		if r.wait == 0 {
			r.findLocked(len(buf))
		}
		if len(r.spans) == 0 && wait {
			moved = r.t.moved.Next()
		}
	}
	r.h.mu.Unlock()
	if ok || len(r.spans) == 0 {
		return ev, ok, moved, nil
	}
	return agenttools.Event{Data: r.decode(buf), Off: r.off()}, true, nil, nil
}

// markLocked returns the event before the next text, if there is one: a gap, or a mark.
func (r *textReader) markLocked() (ev agenttools.Event, ok bool) {
	m := &r.t.marks
	if start := max(r.t.readableLocked(), r.from); r.pos < start {
		from := r.offLocked()
		r.pos, r.mark = start, max(r.mark, m.first)
		for r.mark < m.end() && m.list[r.mark-m.first].pos < start {
			r.mark++
		}
		r.reported = r.pos
		return agenttools.Event{Lost: max(1, r.offLocked()-from), Off: r.offLocked()}, true
	}
	r.mark = max(r.mark, m.first)
	if _, _, missing := r.t.offsets.piece(r.pos); missing > 0 && r.reported < r.pos {
		r.reported = r.pos
		return agenttools.Event{Missing: missing, Off: r.offLocked()}, true
	}
	if r.mark == m.end() {
		return agenttools.Event{}, false
	}
	next := &m.list[r.mark-m.first]
	if next.pos > r.pos {
		return agenttools.Event{}, false
	}
	r.mark++
	r.exited = next.exited
	return agenttools.Event{Off: r.offLocked(), Finished: next.finished, Resized: next.resized, Exited: next.exited}, true
}

// findLocked finds at most about room bytes of text up to the next mark.
func (r *textReader) findLocked(room int) {
	r.spans = r.spans[:0]
	c, m := &r.t.content, &r.t.marks
	end := c.end
	if r.mark < m.end() {
		end = m.list[r.mark-m.first].pos
	}
	ended := m.before(r.mark)
	ahead, next, _ := r.t.offsets.piece(r.pos)
	r.ahead, r.most = ahead+ended, math.MaxInt64
	if next >= 0 {
		end, r.most = min(end, next), r.t.offsets.at(next)+ended
	}
	at := c.oldest()
	for i := range c.parts {
		p := &c.parts[i]
		if at+int64(p.size) <= r.pos {
			at += int64(p.size)
			continue
		}
		for _, run := range p.runs {
			if at >= end || room <= 0 {
				return
			}
			next := at + int64(run.size)
			if next > r.pos {
				skip := int(max(0, r.pos-at))
				r.spans = append(r.spans, span{esc: run.esc, skip: skip, size: int(min(next, end) - at)})
				room -= int(min(next, end)-at) - skip
			}
			at = next
		}
	}
}

// decode decodes the found text into buf, as much as fits, and moves on.
func (r *textReader) decode(buf []byte) []byte {
	out := r.text[:0] // not buf: unquoting may need more room than its result
	for _, s := range r.spans {
		at, skipped := escapedPrefix(s.esc, s.skip, false)
		end, size := escapedPrefix(s.esc[at:], min(s.size-skipped, len(buf)-len(out)), true)
		text, err := jsonspan.AppendUnescape(out, s.esc[at:at+end])
		if err != nil {
			break // impossible: it was checked on arrival
		}
		out = text
		r.pos += int64(skipped-s.skip) + int64(size)
		if skipped+size < s.size {
			break // the rest does not fit
		}
	}
	r.text = out
	return buf[:copy(buf, out)]
}

// escapedPrefix finds where n decoded bytes end in checked escaped text, or a few more to
// the end of a character or, with under, a few less. It returns the index in esc and the
// number of decoded bytes before it.
func escapedPrefix(esc []byte, n int, under bool) (at, size int) {
	for at < len(esc) && size < n {
		w, s := jsonspan.Skip(esc[at:], 1)
		if under && size+s > n {
			break
		}
		at, size = at+w, size+s
	}
	return at, size
}

// oldest returns the position of the oldest kept text.
func (c *content) oldest() int64 {
	from := c.end
	for i := range c.parts {
		from -= int64(c.parts[i].size)
	}
	return from
}

// readableLocked returns the position from which on readers get everything.
func (t *terminal) readableLocked() int64 { return max(t.content.oldest(), t.marks.from) }
