package term

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

// Offset is where the reader stands, in the view's own counting: the offset
// of the next byte it returns, unless that is trimmed before.
func (r *Reader) Offset() int64 {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return r.off
}

// dueLocked reports whether an armed reader has what it waits for.
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

// wakeLocked signals the readers that have what they wait for.
func (t *Terminal) wakeLocked() {
	for r := range t.readers.open {
		if r.dueLocked() {
			r.need = 0
			r.signal()
		}
	}
}
