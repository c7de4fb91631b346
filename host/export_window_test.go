package host

// Fragment is fragment.
func Fragment(text []byte, units int) int { return fragment(text, units) }

// FlowBytes is flowBytes.
func FlowBytes(text []byte) int64 { return flowBytes(text) }
