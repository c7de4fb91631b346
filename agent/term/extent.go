package term

// TextEnd returns how long ViewText is so far, in bytes: the text offset of
// what comes next. It is 0 if the actor may not read.
func (h Handle) TextEnd() int64 {
	if h.allow(OpRead) != nil {
		return 0
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.cuts.textAt(h.t.frontierLocked(ViewText))
}
