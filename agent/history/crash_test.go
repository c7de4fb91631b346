package history

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// printed is what a terminal prints at an offset, so that every byte can be checked.
func printed(id string, from, to int64) []byte {
	terminal, _, _ := strings.Cut(id, ".")
	p := make([]byte, 0, to-from)
	for off := from; off < to; off++ {
		c := byte('a' + (off*7+off/26+int64(terminal[len(terminal)-1]))%26)
		if off%23 == 22 {
			c = '\n'
		}
		p = append(p, c)
	}
	return p
}

// spans returns which parts of a run's text are there, and fails if a byte is wrong.
func spans(t *testing.T, h *History, id string) []Span {
	t.Helper()
	text := must.Get(h.Text(id))(t)
	defer text.Close()
	var all []Span
	for {
		f, err := text.Next()
		if err == io.EOF {
			return all
		}
		must.Do(t, err)
		if want := printed(id, f.Off, f.End()); string(f.Data) != string(want) {
			t.Fatalf("%s has %.60q at %d, want %.60q", id, f.Data, f.Off, want)
		}
		if n := len(all); n > 0 && all[n-1].To == f.Off {
			all[n-1].To = f.End()
		} else {
			all = append(all, Span{f.Off, f.End()})
		}
	}
}

// both returns what is in a and in b.
func both(a, b []Span) (all []Span) {
	for _, x := range a {
		for _, y := range b {
			if from, to := max(x.From, y.From), min(x.To, y.To); from < to {
				all = append(all, Span{from, to})
			}
		}
	}
	return all
}

func covers(have, want []Span) bool {
	return slices.Equal(both(want, have), want)
}

// world is a history, its disk, and the terminals that run.
type world struct {
	t       *testing.T
	r       *rand.Rand
	disk    *memory
	h       *History
	codec   *codec
	writers map[string]*Writer
	next    int
	now     time.Time
	// What was synced last: a run's text, and its record.
	text  map[string][]Span
	runs  map[string]Run
	notes map[string]int
	gone  map[string]bool // forgotten
	cut   map[string][]Span
}

var small = bounds{frame: 64, segment: 400, frames: 20, joined: time.Minute, head: 400, tail: 1500, notes: 4 << 10}

func (w *world) open() {
	w.h = must.Get(Open(Options{Dir: "x", Keep: time.Hour, FS: w.disk, Now: func() time.Time { return w.now }}))(w.t)
	w.h.bounds, w.h.codec = small, w.codec
	for id := range w.writers {
		r, err := w.h.Run(id)
		if err != nil || !r.Running() {
			delete(w.writers, id)
			continue
		}
		w.writers[id] = must.Get(w.h.Terminal(r))(w.t)
	}
}

// seen remembers what is there after a round.
func (w *world) seen() {
	w.text, w.runs, w.notes = map[string][]Span{}, map[string]Run{}, map[string]int{}
	for r := range w.h.List(Query{}) {
		w.runs[r.ID] = r
		w.text[r.ID] = spans(w.t, w.h, r.ID)
		if r.Command == 0 {
			w.notes[r.ID] = len(must.Get(must.Get(w.h.Text(r.ID))(w.t).Notes())(w.t))
		}
	}
}

func (w *world) step() {
	t, r := w.t, w.r
	w.now = w.now.Add(time.Duration(r.IntN(2000)) * time.Millisecond)
	ids := make([]string, 0, len(w.writers))
	for id := range w.writers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 0 || r.IntN(20) == 0 {
		id := fmt.Sprintf("pty-%d", w.next)
		w.next++
		w.writers[id] = must.Get(w.h.Terminal(Run{ID: id, Terminal: id, Started: w.now, End: -1}))(t)
		return
	}
	id := ids[r.IntN(len(ids))]
	wr := w.writers[id]
	switch k := r.IntN(40); {
	case k < 20:
		must.Do(t, wr.Append(printed(id, wr.End(), wr.End()+int64(1+r.IntN(120))), w.now))
	case k < 22:
		wr.Missing(int64(r.IntN(50)))
	case k < 26:
		must.Do(t, wr.Note(Note{Kind: NoteRound, Time: w.now}))
	case k < 29:
		n := 1 + r.IntN(100)
		run := Run{ID: fmt.Sprintf("%s.%d", id, n), Terminal: id, Command: n, Started: w.now, Ended: w.now, Start: max(0, wr.End()-50), End: wr.End()}
		must.Do(t, w.h.Put(run))
		delete(w.gone, run.ID)
	case k < 30:
		run := wr.Run()
		run.Ended = w.now
		must.Do(t, wr.Finish(run))
		delete(w.writers, id)
	case k < 31:
		w.forget()
	default:
		must.Do(t, w.h.Sync(t.Context()))
		w.seen()
	}
}

func (w *world) forget() {
	all := slices.Collect(w.h.List(Query{}))
	if len(all) == 0 {
		return
	}
	r := all[w.r.IntN(len(all))]
	from, to := r.Start, r.End
	if wr := w.writers[r.ID]; wr != nil {
		to = wr.End()
	}
	if to < 0 {
		to = maxOffset // it has no end: nobody has settled it
	}
	if wr := w.writers[r.Terminal]; wr != nil {
		to = min(to, wr.End()) // a record may be ahead of the text after a loss
	}
	if _, _, err := w.h.Forget(func(x Run) bool { return x.ID == r.ID }); err != nil {
		w.t.Fatal(err)
	}
	if !r.Running() {
		w.gone[r.ID] = true
	}
	// What was forgotten must not come back, whatever was synced before.
	w.forgotten(r, from, to)
	text, runs, notes := w.text, w.runs, w.notes
	w.seen()
	for id := range w.runs {
		if _, ok := runs[id]; !ok {
			delete(w.runs, id) // not synced yet
			continue
		}
		w.runs[id] = runs[id]
		w.text[id], w.notes[id] = both(text[id], w.text[id]), min(notes[id], w.notes[id])
	}
}

func (w *world) forgotten(r Run, from, to int64) {
	w.t.Helper()
	if _, err := w.h.Run(r.Terminal); err != nil {
		delete(w.cut, r.Terminal)
		return
	}
	w.cut[r.Terminal] = append(w.cut[r.Terminal], Span{from, to})
	if left := both(spans(w.t, w.h, r.Terminal), []Span{{from, to}}); len(left) > 0 {
		w.t.Fatalf("after forgetting %s from %d to %d there is still %v", r.ID, from, to, left)
	}
}

// check compares what is there after the loss with what was synced, and with what was
// there just before it, because the middle of a text may have gone since then.
func (w *world) check(round int, before map[string][]Span, runs map[string]bool) {
	t := w.t
	for id, run := range w.runs {
		if !runs[id] {
			continue // forgotten, or too old
		}
		got, err := w.h.Run(id)
		if err != nil {
			t.Fatalf("round %d: the record of %s is lost: %v", round, id, err)
		}
		if !run.Running() && got.Running() {
			t.Fatalf("round %d: %s runs again", round, id)
		}
		if have, want := spans(t, w.h, id), both(w.text[id], before[id]); !covers(have, want) {
			t.Fatalf("round %d: %s has %v, of what was synced %v", round, id, have, want)
		}
		if n := len(must.Get(must.Get(w.h.Text(id))(t).Notes())(t)); n < w.notes[id] && w.notes[id] < 10 {
			t.Fatalf("round %d: %s has %d notes, %d were synced", round, id, n, w.notes[id])
		}
	}
	for id, cut := range w.cut {
		if left := both(spans(t, w.h, id), cut); len(left) > 0 {
			t.Fatalf("round %d: of %s %v was forgotten and is back", round, id, left)
		}
		if wr := w.writers[id]; wr != nil && wr.End() < slices.MaxFunc(cut, func(a, b Span) int { return int(a.To - b.To) }).To {
			t.Fatalf("round %d: %s goes on at %d, before what was forgotten", round, id, wr.End())
		}
	}
	for id := range w.gone {
		if _, err := w.h.Run(id); err == nil {
			t.Fatalf("round %d: %s was forgotten and is back", round, id)
		}
	}
}

// A loss of power costs what was not synced, and nothing else.
func TestPowerLoss(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	const seed = 45
	codec := newCodec()
	var w *world
	for round := range testkit.Load(1000, 40) {
		if round%5 == 0 { // a new machine
			w = &world{t: t, r: rand.New(rand.NewPCG(seed, uint64(round))), disk: newMemory(), codec: codec, writers: map[string]*Writer{}, gone: map[string]bool{}, cut: map[string][]Span{}, now: time.Now()}
			w.open()
		}
		for range 10 + w.r.IntN(40) {
			w.step()
		}
		before, runs := map[string][]Span{}, map[string]bool{}
		for r := range w.h.List(Query{}) {
			before[r.ID], runs[r.ID] = spans(t, w.h, r.ID), true
		}
		w.disk = w.disk.lose(w.r)
		w.open()
		w.check(round, before, runs)
		w.seen()
	}
}
