package history

// SmallUnits makes a search look at that many bytes of text in one step.
func (h *History) SmallUnits(bytes int) { h.bounds.unit = bytes }
