package history

import (
	"slices"
	"time"
)

// Bounds of what a search looks at in one step.
const (
	unitPieces = 256      // frames, and bounds.unit
	sideText   = 64 << 10 // bytes of text before a unit and after it, for the ends of its lines and for the lines around hits
	sidePieces = 64
)

// piece is a frame: where it is in its segment, or its text if that is in no file yet.
type piece struct {
	header  // without the filter and lines
	segment int64
	plain   []byte
	may     bool // it may have what is looked for
	open    bool // its text ends within a line
}

func (p *piece) end() int64          { return p.off + int64(p.text) }
func (p *piece) time() time.Time     { return time.UnixMicro(p.last).UTC() }
func (p *piece) before(q piece) bool { return p.end() == q.off }

// command is a command of a shell in its terminal's text.
type command struct {
	Span
	id string
}

// trail is how far a search has come in one terminal. It goes back in time.
type trail struct {
	terminal string
	newest   time.Time // no text that is left is newer
	spans    []Span    // what may be searched, in order
	commands []command
	opened   bool
	segments []int64 // those that were not read, oldest first
	pieces   []piece // those of the last segments that were read, and some after them
	left     int     // so many of pieces were not searched
	over     bool
}

// trails is a heap: the first has the newest text.
type trails []*trail

func (t trails) Len() int           { return len(t) }
func (t trails) Less(i, j int) bool { return t[i].newest.After(t[j].newest) }
func (t trails) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// second is the time of the newest text of all but the first.
func (t trails) second() (at time.Time) {
	for _, one := range t[1:min(len(t), 3)] {
		if one.newest.After(at) {
			at = one.newest
		}
	}
	return at
}

// Push implements heap.Interface.
func (t *trails) Push(x any) { *t = append(*t, x.(*trail)) }

// Pop implements heap.Interface.
func (t *trails) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// open finds the terminal's segments and the text that is in no file yet, and so when its
// newest text was printed.
func (t *trail) open(k *seeker) {
	t.opened = true
	segments, tail, err := k.h.parts(t.terminal)
	if err == nil { // otherwise it has no text that can be read
		t.segments = segments
	}
	if len(tail.Data) > 0 {
		hd := header{off: tail.Off, text: len(tail.Data), first: tail.First.UnixMicro(), last: tail.Time.UnixMicro()}
		t.pieces = []piece{{header: hd, plain: tail.Data, may: true, open: tail.Data[len(tail.Data)-1] != '\n'}}
		t.left = 1
	}
	t.fill(k)
}

// next returns the unit before those that it has returned. It has no further frames with
// text that is older than that time. The trail must be open, and not over.
func (t *trail) next(k *seeker, oldest time.Time) *unit {
	u := &unit{of: t, newest: t.pieces[t.left-1].time(), done: make(chan struct{})}
	from, text := t.left-1, t.pieces[t.left-1].text
	for from > 0 && t.left-from < unitPieces && text+t.pieces[from-1].text <= k.h.bounds.unit && t.pieces[from-1].last >= oldest.UnixMicro() && t.pieces[from-1].before(t.pieces[from]) {
		from--
		text += t.pieces[from].text
	}
	least := max(0, from-sidePieces)
	u.pieces, u.from, u.to = t.pieces[least:min(len(t.pieces), t.left+sidePieces)], from-least, t.left-least
	t.left = from
	t.fill(k)
	return u
}

// fill reads segments until there are a unit and what stands before it, if there is more.
func (t *trail) fill(k *seeker) {
	text := 0
	for _, p := range t.pieces[:t.left] {
		text += p.text
	}
	for len(t.segments) > 0 && text < k.h.bounds.unit+sideText && t.left < unitPieces+sidePieces {
		last := len(t.segments) - 1
		off := t.segments[last]
		t.segments = t.segments[:last]
		if len(t.pieces) > 0 && !slices.ContainsFunc(t.spans, func(s Span) bool { return s.To > off && s.From < t.pieces[0].off }) {
			continue
		}
		data, err := k.h.readFile(k.segment, t.terminal+"/"+segmentName(off), maxSegment)
		if err != nil {
			continue // what cannot be read has no hits
		}
		k.segment = data
		var all []piece
		for hd := range headers(data) {
			p := piece{header: hd, segment: off, may: mayHave(hd.filter, k.Expression.slots), open: isOpen(hd.filter)}
			p.filter, p.drawn = nil, nil // they are in the buffer
			all = append(all, p)
			text += hd.text
		}
		n := len(all)
		t.pieces = append(all, t.pieces[:min(len(t.pieces), t.left+sidePieces)]...)
		t.left += n
	}
	if t.over = t.left == 0; !t.over {
		t.newest = t.pieces[t.left-1].time()
	}
}

// unit is text that is searched in one step: pieces[from:to], which follow each other
// without a gap.
type unit struct {
	of       *trail
	newest   time.Time
	pieces   []piece // with some before and after it
	from, to int
	done     chan struct{} // closed when it was searched
	hits     []Hit         // oldest first; only the id of their runs is set
	err      error
}

// bounds are the offsets of the unit's text.
func (u *unit) bounds() (from, to int64) { return u.pieces[u.from].off, u.pieces[u.to-1].end() }
