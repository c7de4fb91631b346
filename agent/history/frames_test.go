package history

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

// A search finds the text of frames whose segment is written anew, damaged or removed
// after it has read where they are.
func TestFramesOfAChangedSegment(t *testing.T) {
	const id = "pty-a"
	m := wrote(t, id, 320)
	h, _ := onDisk(t, m)
	k := &seeker{h: h, Search: Search{Expression: must.Get(Compile("x", true, false))(t)}}
	k.h.bounds.unit = 320
	trail := &trail{terminal: id, spans: []Span{{0, maxOffset}}}
	trail.open(k)
	u := trail.next(k, time.Time{})
	if n := u.to - u.from; n < 3 {
		t.Fatalf("the unit has %d frames", n)
	}
	c := m.file(t, id, segmentPrefix)
	from, to := u.pieces[u.from].off, u.pieces[u.to-1].end()
	all := printed(id, from, to)
	as := func(file []byte, want string) {
		t.Helper()
		c.data = file
		r := frames{h: h}
		defer r.close()
		var got []byte
		for i := range u.pieces[u.from:u.to] {
			got = r.expand(got, u, u.from+i)
		}
		if string(got) != want {
			t.Errorf("the text is %q, want %q", got, want)
		}
	}
	file := slices.Clone(c.data)
	as(file, string(all))
	joined := h.codec.pack(nil, &Frame{Off: from, Data: all})
	as(joined, string(all))
	first := u.pieces[u.from].text
	less := h.codec.pack(nil, &Frame{Off: from + int64(first), Data: all[first:]})
	as(less, strings.Repeat("\n", first)+string(all[first:]))
	damaged := slices.Clone(file)
	p := u.pieces[u.from]
	damaged[p.at+p.size+p.packed/2] ^= 1
	as(damaged, strings.Repeat("\n", first)+string(all[first:]))
	as(nil, strings.Repeat("\n", len(all)))
}
