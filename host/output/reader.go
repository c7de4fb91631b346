package output

import (
	"io"
	"math"

	"tether/agenttools"
	"tether/internal/jsonspan"
)

// minRead is the least room that a reader must be given, in bytes.
const minRead = 64

// Reader reads a log from an offset on, for agents and people. It keeps no text: it
// reports text that was dropped before it could read it as lost. [Reader.Find] needs the
// lock of the log's owner; [Reader.Decode], which is slow, does not.
type Reader struct {
	l        *Log
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

// Reader returns a reader at an offset. If the text has not reached it, the reader waits:
// after a restart of the host, owners send their text again.
func (l *Log) Reader(from int64) *Reader {
	r := &Reader{l: l}
	r.begin(from)
	return r
}

func (r *Reader) begin(from int64) {
	if r.wait = 0; from > r.l.EndOffset() {
		r.wait = from
	}
	r.pos, r.mark = r.l.marks.at(from, &r.l.offsets)
	if r.reported = r.pos; from < r.offset() {
		r.reported--
	}
}

// offset returns the reader's offset.
func (r *Reader) offset() int64 { return r.l.offsets.at(r.pos) + r.l.marks.before(r.mark) }

// Find finds what comes next: an event without text, or, if found is set, text for
// Decode, at most about room bytes. The reader gets no text before the position since.
// The error is io.EOF after the exit, and io.ErrShortBuffer if room is below 64.
func (r *Reader) Find(room int, since int64) (ev agenttools.Event, ok, found bool, err error) {
	switch {
	case room < minRead:
		return ev, false, false, io.ErrShortBuffer
	case r.exited:
		return ev, false, false, io.EOF
	}
	if end := r.l.EndOffset(); r.wait > 0 && (r.wait <= end || r.l.State.Lifecycle.Exited()) {
		r.begin(min(r.wait, end))
	}
	r.spans = r.spans[:0]
	if r.wait > 0 {
		return ev, false, false, nil
	}
	if ev, ok = r.event(since); !ok {
		r.find(room)
	}
	return ev, ok, len(r.spans) > 0, nil
}

// Over reports whether the exit was delivered.
func (r *Reader) Over() bool { return r.exited }

// event returns the event before the next text, if there is one: a gap, or a mark.
func (r *Reader) event(since int64) (ev agenttools.Event, ok bool) {
	m := &r.l.marks
	if start := max(r.l.readable(), since); r.pos < start {
		from := r.offset()
		r.pos, r.mark, r.reported = start, max(r.mark, m.Search(start)), start
		return agenttools.Event{Lost: max(1, r.offset()-from), Off: r.offset()}, true
	}
	r.mark = max(r.mark, m.First())
	if _, _, missing := r.l.offsets.piece(r.pos); missing > 0 && r.reported < r.pos {
		r.reported = r.pos
		return agenttools.Event{Missing: missing, Off: r.offset()}, true
	}
	if r.mark == m.End() {
		return agenttools.Event{}, false
	}
	next := m.At(r.mark)
	if next.pos > r.pos {
		return agenttools.Event{}, false
	}
	r.mark++
	r.exited = next.exited
	return agenttools.Event{Off: r.offset(), Finished: next.finished, Resized: next.resized, Exited: next.exited}, true
}

// find finds at most about room bytes of text up to the next mark.
func (r *Reader) find(room int) {
	c, m := &r.l.content, &r.l.marks
	end := c.end
	if r.mark < m.End() {
		end = m.At(r.mark).pos
	}
	ended := m.before(r.mark)
	ahead, next, _ := r.l.offsets.piece(r.pos)
	r.ahead, r.most = ahead+ended, math.MaxInt64
	if next >= 0 {
		end, r.most = min(end, next), r.l.offsets.at(next)+ended
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

// Decode decodes the found text into buf, as much as fits, and moves on.
func (r *Reader) Decode(buf []byte) agenttools.Event {
	out := r.text[:0] // not buf: unquoting may need more room than its result
	for _, s := range r.spans {
		at, skipped := jsonspan.Skip(s.esc, s.skip)
		end, size := escapedPrefix(s.esc[at:], min(s.size-skipped, len(buf)-len(out)))
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
	return agenttools.Event{Data: buf[:copy(buf, out)], Off: min(r.pos+r.ahead, r.most)}
}
