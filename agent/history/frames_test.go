package history

import (
	"fmt"
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

// A frame has the text of its lines that must be drawn, as far as that takes no more than
// the frame's text itself.
func TestFrameKeepsDrawnLines(t *testing.T) {
	codec := newCodec()
	wide := strings.Repeat("\x1b[900Cx\n", 1000)
	for in, want := range map[string]string{
		"plain\n\x1b[1mbold\x1b[m\n":             "",
		"a\n10%\r20%\nb\n30%\r40%\r\nlast\rhalf": "[2 10 \"20%\\n\"] [12 21 \"40%\\n\"] ",
		"up\x1b[1Adown\n":                        "[0 11 \"up\\ndown\\n\"] ",
		wide:                                     strings.Repeat("x", 8), // of 8,000 bytes
	} {
		var got strings.Builder
		for hd := range headers(codec.pack(nil, &Frame{Data: []byte(in), First: time.UnixMicro(1), Time: time.UnixMicro(2)})) {
			drawn, _ := codec.unpackDrawn(nil, nil, hd, 0)
			for _, d := range drawn {
				fmt.Fprintf(&got, "[%d %d %q] ", d.Start, d.End, d.Text)
			}
		}
		if s := got.String(); s != want && (in != wide || strings.Count(s, "x") != len(want)) {
			t.Errorf("the drawn lines of %.50q are %.200s, want %s", in, s, want)
		}
	}
}
