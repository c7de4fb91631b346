package term

import (
	"bytes"
	"unicode/utf8"
)

// resyncLocked moves a reader whose place is gone to the oldest line kept. If
// nothing but marks is gone, it stays where it is.
func (r *Reader) resyncLocked() error {
	t, from := r.t, r.off
	if r.pos < t.log.Start() {
		r.pos = t.lineStartLocked(t.log.Start(), t.knownLocked(r.view))
		r.off = r.offsetLocked(r.pos)
		r.mark = t.markAtLocked(r.pos)
	}
	r.mark = max(r.mark, t.firstMark)
	return &LaggedError{Lost: max(r.off-from, 0), At: r.off, Raw: r.pos, Open: t.runningLocked(r.pos)}
}

// SeekText moves the reader to a text offset, as a host that resumes asks for it,
// before the marks there. Only ViewText and ViewOutward have text offsets.
//
// It reports false, and stands at the end, if there is no such offset yet.
func (r *Reader) SeekText(text int64) bool {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.knownLocked(r.view)
	known := text <= t.cuts.textAt(end)
	r.pos = min(max(t.cuts.rawAt(text), 0), end)
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
	if r.holds {
		t.needLocked()
		t.makeRoom()
	}
	return known
}

// offsetLocked is the view's own offset of a raw one.
func (r *Reader) offsetLocked(raw int64) int64 {
	if r.view.isText() {
		return r.t.cuts.textAt(raw)
	}
	return raw
}

// knownLocked is frontierLocked with what is held back: a host may have had it
// from the daemon before.
func (t *Terminal) knownLocked(v View) int64 {
	if v == ViewOutward {
		return t.texted
	}
	return t.frontierLocked(v)
}

// frontierLocked is the raw offset up to which the view is known.
func (t *Terminal) frontierLocked(v View) int64 {
	switch v {
	case ViewText:
		return t.texted
	case ViewOutward:
		if t.veil != nil {
			return t.veil.frontier
		}
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
