package term

import (
	"encoding/json"
	"math"
	"slices"

	"tether/screen"
)

// The screen at the oldest byte is useless to the next daemon: the holder drops that byte
// with the next output. So if a holder keeps screens, the emulator runs ahead of the
// oldest byte once the log is full, and stores a screen at each checkpoint. It does no
// work twice: output that it has processed is not processed again when it is dropped.

// screenKeeper is a HolderPTY that keeps screens for the next daemon.
type screenKeeper interface {
	// KeepsScreens reports whether the holder can keep screens. It never changes.
	KeepsScreens() bool
	// Screen stores the screen at a raw offset, at most 1 MiB. It does not wait for the
	// holder, which drops a screen together with the output after it.
	Screen(off int64, p []byte) error
}

// screenKeeperOf returns child as a screenKeeper, or nil if it keeps no screens.
func screenKeeperOf(child HolderPTY) screenKeeper {
	if k, ok := child.(screenKeeper); ok && k.KeepsScreens() {
		return k
	}
	return nil
}

// Fractions of a log's bound: 16 is a sixteenth.
const (
	aheadFrom = 16 // free when the emulator begins to run ahead
	aheadLeft = 4  // kept behind the last screen, at least: the holder lets the child fill it until a new daemon is there
	aheadCost = 8  // taken by all screens together, at most
	giveUp    = 32 // free when the holder's newest screen is given up, although there is no newer one
)

const (
	aheadOnce = 2  // checkpoints to advance at a time, because the lock is held meanwhile
	maxStops  = 64 // checkpoints ahead
)

// emulateAhead moves the emulator ahead of the oldest output that will be kept, and keeps
// the screens on the way.
func (s *stream) emulateAhead(start int64) {
	o := &s.oldest
	limit := int64(s.log.Limit())
	if !o.ahead || o.Blank() && s.log.End() < limit-limit/aheadFrom {
		return // nothing is about to be dropped yet
	}
	far := min(max(start, s.log.Start())+limit-limit/aheadLeft, s.seen) // behind it no mark is added
	for range aheadOnce {
		for len(o.stops) > 0 && o.stops[0] < o.At() {
			o.stops = o.stops[1:]
		}
		if len(o.stops) == 0 || o.stops[0] > far {
			return
		}
		s.leaveTo(o.stops[0])
		o.stops = o.stops[1:]
		o.keep(int(limit / aheadCost))
	}
}

// stopAt arranges that a screen is stored at a raw offset, where there is a checkpoint
// from which the next daemon can scan.
func (o *oldest) stopAt(raw int64) {
	if o.ahead && len(o.stops) < maxStops {
		o.stops = append(o.stops, raw)
	}
}

// keep stores the present screen, and drops others until all fit the bound in bytes.
func (o *oldest) keep(most int) {
	o.kept = append(o.kept, o.shown())
	total := 0
	for i := range o.kept {
		total += o.kept[i].cost()
	}
	for total > most && len(o.kept) > 1 {
		least := 0
		for i := 1; i < len(o.kept)-1; i++ {
			if least == 0 || o.kept[i+1].Raw-o.kept[i-1].Raw < o.kept[least+1].Raw-o.kept[least-1].Raw {
				least = i
			}
		}
		total -= o.kept[least].cost()
		o.kept = slices.Delete(o.kept, least, least+1)
	}
}

// forget drops the screens before a raw offset.
func (o *oldest) forget(raw int64) {
	n := 0
	for n < len(o.kept) && o.kept[n].Raw < raw {
		n++
	}
	o.kept = slices.Delete(o.kept, 0, n)
}

// first returns the oldest exact screen or, if there is none, the oldest of all.
func (o *oldest) first() Screen {
	for _, k := range o.kept {
		if k.Exact {
			return k
		}
	}
	if len(o.kept) > 0 {
		return o.kept[0]
	}
	return o.shown()
}

// recordedScreen is a Screen that is exact, as JSON. The rules are those of record.
type recordedScreen struct {
	Version int    `json:"v"`
	Cols    uint16 `json:"cols"`
	Rows    uint16 `json:"rows"`
	Replay  []byte `json:"replay"`

	Judged  bool   `json:"judged,omitempty"`  // the view for hosts is known
	Outward []byte `json:"outward,omitempty"` // the view for hosts, if it differs from Replay
}

func recordedScreenOf(k *Screen) recordedScreen {
	r := recordedScreen{Version: noteVersion, Cols: k.Size.Cols, Rows: k.Size.Rows, Replay: k.Replay, Judged: k.judged}
	if r.Judged && k.isMasked() {
		r.Outward = k.outward
	}
	return r
}

// screen returns the recorded screen, for the given raw offset.
func (r *recordedScreen) screen(raw int64) Screen {
	at := Screen{Raw: raw, Size: r.size(), Replay: r.Replay, Exact: true, judged: r.Judged}
	if r.Judged {
		at.outward = at.Replay
		if len(r.Outward) > 0 {
			at.outward = r.Outward
		}
	}
	return at
}

func (r *recordedScreen) size() Size { return Size{Cols: r.Cols, Rows: r.Rows} }

// maxRecordedScreen bounds it, in bytes.
const maxRecordedScreen = 1 << 20

// handScreensLocked gives the holder the screens that it does not have.
func (t *Terminal) handScreensLocked() {
	if t.screens == nil {
		return
	}
	for _, k := range t.stream.oldest.kept {
		if !k.Exact || k.Raw <= t.keeper.screened {
			continue
		}
		text, err := json.Marshal(recordedScreenOf(&k))
		if err == nil && len(text) <= maxRecordedScreen {
			t.keeper.screened = k.Raw
			t.keeper.screens = append(t.keeper.screens, Note{k.Raw, text})
			t.saveLocked()
		}
	}
}

// screenNeededLocked is the raw offset of the holder's newest screen, as long as the
// holder can keep the output behind it, or noOffset.
func (t *Terminal) screenNeededLocked() int64 {
	log := int64(HolderLogBytes(t.pool.opts.LogBytes))
	if t.screens == nil || t.stream.log.End()-t.keeper.screened >= log-log/giveUp {
		return noOffset // before the holder's log is full: otherwise the child would wait for ever
	}
	return t.keeper.screened
}

// takeScreens takes over the screens of an earlier daemon. Output is scanned from the
// offset raw on; the sizes are known from the offset known on.
func (t *Terminal) takeScreens(notes []Note, raw, known int64) {
	o := &t.stream.oldest
	if raw < known {
		o.lose(raw)
	} else if raw == 0 {
		return // the screen was blank there
	}
	raw = max(raw, known)
	for _, n := range notes {
		var k recordedScreen
		if n.Off < raw || json.Unmarshal(n.Text, &k) != nil || k.Version != noteVersion || checkSize(k.size()) != nil || max(len(k.Replay), len(k.Outward)) > screen.MaxReplay {
			continue
		}
		o.kept = append(o.kept, k.screen(n.Off))
	}
	if len(o.kept) == 0 {
		return
	}
	last := o.kept[len(o.kept)-1]
	is := screen.NewState(int(last.Size.Cols), int(last.Size.Rows))
	is.Write(last.Replay)
	o.Draw(is, last.Raw)
	o.outward.unjudged = !last.judged
	if last.isMasked() {
		o.outward.screen = screen.NewState(is.Size())
		o.outward.screen.Write(last.outward)
	}
	t.keeper.screened = last.Raw
}

// recordedSize is a size that the terminal got before a raw offset.
type recordedSize struct {
	Off  int64  `json:"off"`
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

func (r recordedSize) size() Size { return Size{Cols: r.Cols, Rows: r.Rows} }

// maxRecordedSizes bounds the sizes in a record.
const maxRecordedSizes = 256

// recordedSizesLocked returns the terminal's size at the oldest output, with the offset
// at which it took effect, and the later sizes. If there are more than maxRecordedSizes,
// it returns the newest.
func (t *Terminal) recordedSizesLocked() []recordedSize {
	s := &t.stream
	all := []recordedSize{{s.since, s.before.Cols, s.before.Rows}} // a holder may keep more than a daemon
	for n := s.marks.First(); n < s.marks.End(); n++ {
		if m := s.marks.At(n); m.Kind == MarkResized {
			all = append(all, recordedSize{m.Off, m.Size.Cols, m.Size.Rows})
		}
	}
	all = append(all, t.adoption.sizes...)
	return all[max(0, len(all)-maxRecordedSizes):]
}

// expectSizes restores a new terminal's size at a raw offset, and makes later sizes take
// effect at their offsets while its output is scanned. now is the last size. It returns
// the raw offset from which on sizes are known; older daemons did not record them.
func (t *Terminal) expectSizes(all []recordedSize, raw int64, past *Past) (known int64) {
	all = slices.DeleteFunc(slices.Clone(all), func(r recordedSize) bool { return checkSize(r.size()) != nil || r.Off > past.End })
	if len(all) == 0 {
		return 0
	}
	known, last := all[0].Off, all[len(all)-1]
	if last.size() != past.Size && t.origin.adopted == nil { // the output of a pane has its size
		all = append(all, recordedSize{past.End, past.Size.Cols, past.Size.Rows})
		known = math.MaxInt64 // the former daemon ended before it could record when the size changed
	}
	first := all[0]
	for len(all) > 0 && (all[0].Off < raw || all[0] == first) {
		first, all = all[0], all[1:]
	}
	t.display.size, t.stream.before = first.size(), first.size()
	if t.stream.since = first.Off; known == math.MaxInt64 {
		t.stream.since = past.End
	}
	t.stream.oldest.resize(first.size())
	t.adoption.sizes = all
	return known
}

// putSizesLocked records, up to a raw offset, the sizes that an earlier daemon has
// recorded.
func (t *Terminal) putSizesLocked(to int64) {
	for a := &t.adoption; len(a.sizes) > 0 && a.sizes[0].Off <= to; {
		r := a.sizes[0]
		a.sizes = a.sizes[1:]
		t.putMarkLocked(Mark{Kind: MarkResized, Off: min(r.Off, t.stream.texted), Size: r.size()})
	}
}
