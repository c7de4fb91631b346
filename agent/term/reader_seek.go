package term

// resyncLocked moves a reader whose place is gone to the oldest line kept. If
// nothing but marks is gone, it stays where it is.
func (r *Reader) resyncLocked() error {
	t, from := r.t, r.off
	if r.pos < t.stream.log.Start() {
		r.pos = t.stream.lineStart(t.stream.log.Start(), t.stream.known(r.view))
		r.off = r.offsetLocked(r.pos)
		r.mark = t.stream.markAt(r.pos)
	}
	r.mark = max(r.mark, t.stream.firstMark)
	return &LaggedError{Lost: max(r.off-from, 0), At: r.off, Raw: r.pos, Open: t.commands.running(r.pos)}
}

// SeekText moves the reader to a text offset, as a host that resumes asks for it,
// before the marks there. Only ViewText and ViewOutward have text offsets.
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
	r.ended = false
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
