package view

import "bytes"

// trailBytes is the length of the remembered output, in bytes: enough to find it again only at its place, except in output that repeats
// itself, where it does not matter.
const trailBytes = 4 << 10

// trail remembers the end of the shown output.
type trail struct{ last []byte }

func (t *trail) add(p []byte) {
	if len(p) >= trailBytes {
		t.last = append(t.last[:0], p[len(p)-trailBytes:]...)
		return
	}
	if over := len(t.last) + len(p) - trailBytes; over > 0 {
		t.last = t.last[:copy(t.last, t.last[over:])]
	}
	t.last = append(t.last, p...)
}

// join returns the part of p after the shown output. p may begin anywhere in the past; joined is false if it does not contain the end of
// the shown output, and then rest is all of it.
func (t *trail) join(p []byte) (rest []byte, joined bool) {
	if len(t.last) == 0 {
		return p, true
	}
	if i := bytes.LastIndex(p, t.last); i >= 0 {
		return p[i+len(t.last):], true
	}
	// The host may have kept less than we remember.
	for n := min(len(p), len(t.last)-1); n >= leastOverlap; n-- {
		if bytes.HasSuffix(t.last, p[:n]) {
			return p[n:], true
		}
	}
	return p, false
}

// leastOverlap is the shortest piece in bytes that is taken for a repetition.
const leastOverlap = 16
