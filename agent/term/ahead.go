package term

import (
	"encoding/json"
	"math"
	"slices"

	"tether/screen"
)

// The screen at the oldest byte is useless to the next daemon: the holder drops that byte with the next output. So if a holder keeps
// screens, the emulator runs ahead of the oldest byte once the log is full, and stores a screen at each checkpoint. It does no work twice:
// output that it has processed is not processed again when it is dropped.

// screenKeeper is a HolderPTY that keeps screens for the next daemon.
type screenKeeper interface {
	// KeepsScreens reports whether the holder can. It never changes.
	KeepsScreens() bool
	// Screen leaves the screen at a raw offset, at most 1 MiB. It does not wait for the holder, which forgets a screen with the output that
	// follows it.
	Screen(off int64, p []byte) error
}

// screenKeeperOf is the holder of child as a screenKeeper, or nil.
func screenKeeperOf(child HolderPTY) screenKeeper {
	if k, ok := child.(screenKeeper); ok && k.KeepsScreens() {
		return k
	}
	return nil
}

// Parts of a log's bound.
const (
	aheadFrom = 16 // that is free when it begins
	aheadLeft = 4  // behind the last one, at least: until a new daemon is there the holder has the child wait before more goes
	aheadCost = 8  // that all screens may take
	giveUp    = 32 // that is left when a screen is not needed any more although there is no newer one
)

const (
	aheadOnce = 2  // checkpoints that are reached in one go: the lock is held meanwhile
	maxStops  = 64 // checkpoints ahead
)

// emulateAhead moves the emulator ahead of the oldest output that will be kept, and keeps the screens on the way.
func (s *stream) emulateAhead(start int64) {
	o := &s.oldest
	limit := int64(s.log.Limit())
	if !o.ahead || o.screen == nil && len(o.waits) == 0 && s.log.End() < limit-limit/aheadFrom {
		return // nothing is about to be dropped yet
	}
	far := min(max(start, s.log.Start())+limit-limit/aheadLeft, s.seen) // behind it no mark is added
	for range aheadOnce {
		for len(o.stops) > 0 && o.stops[0] < o.pos {
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

// stopAt stores a screen at a raw offset: that of a checkpoint, from which the next daemon can scan.
func (o *oldest) stopAt(raw int64) {
	if o.ahead && len(o.stops) < maxStops {
		o.stops = append(o.stops, raw)
	}
}

// keep keeps the screen, and few enough of all to fit the bound in bytes.
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

// first is the oldest screen that is known, as well as any is.
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
	Outward []byte `json:"outward,omitempty"` // that, if it is not Replay
}

func recordedScreenOf(k *Screen) recordedScreen {
	r := recordedScreen{Version: noteVersion, Cols: k.Size.Cols, Rows: k.Size.Rows, Replay: k.Replay, Judged: k.judged}
	if r.Judged && k.isMasked() {
		r.Outward = k.outward
	}
	return r
}

// screen is the Screen at a raw offset.
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

// screenNeededLocked is the raw offset of the holder's newest screen, as long as the holder can keep the output behind it, or keepNothing.
func (t *Terminal) screenNeededLocked() int64 {
	log := int64(HolderLogBytes(t.pool.opts.LogBytes))
	if t.screens == nil || t.stream.log.End()-t.keeper.screened >= log-log/giveUp {
		return keepNothing // before the holder is full: it would have the child wait for ever
	}
	return t.keeper.screened
}

// takeScreens takes the screens of an earlier daemon. Output is scanned from a raw offset on; the sizes are known from known on.
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
	o.pos, o.screen = last.Raw, screen.NewState(int(last.Size.Cols), int(last.Size.Rows))
	o.screen.Write(last.Replay)
	o.outward.unjudged = !last.judged
	if last.isMasked() {
		o.outward.screen = screen.NewState(o.screen.Size())
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

// recordedSizesLocked is the size of the terminal at the oldest output, with the offset at which it began, and the later ones. If there are
// very many, the newest are included.
func (t *Terminal) recordedSizesLocked() []recordedSize {
	s := &t.stream
	all := []recordedSize{{s.since, s.before.Cols, s.before.Rows}} // a holder may keep more than a daemon
	for i := range s.marks.len() {
		if m := s.marks.at(i); m.Kind == MarkResized {
			all = append(all, recordedSize{m.Off, m.Size.Cols, m.Size.Rows})
		}
	}
	all = append(all, t.adoption.sizes...)
	return all[max(0, len(all)-maxRecordedSizes):]
}

// expectSizes restores a new terminal's size at a raw offset, and makes the later sizes take effect at their offsets when its output is
// scanned. now is the last one. It returns the raw offset from which on they are known; those of an older daemon are not.
func (t *Terminal) expectSizes(all []recordedSize, raw int64, past *Past) (known int64) {
	all = slices.DeleteFunc(slices.Clone(all), func(r recordedSize) bool { return checkSize(r.size()) != nil || r.Off > past.End })
	if len(all) == 0 {
		return 0
	}
	known, last := all[0].Off, all[len(all)-1]
	if last.size() != past.Size {
		all = append(all, recordedSize{past.End, past.Size.Cols, past.Size.Rows})
		known = math.MaxInt64 // the daemon ended before it could say when
	}
	first := all[0]
	for len(all) > 0 && (all[0].Off < raw || all[0] == first) {
		first, all = all[0], all[1:]
	}
	t.display.size, t.stream.before, t.stream.oldest.size = first.size(), first.size(), first.size()
	if t.stream.since = first.Off; known == math.MaxInt64 {
		t.stream.since = past.End
	}
	if o := &t.stream.oldest; o.screen != nil {
		o.resize(first.size())
	}
	t.adoption.sizes = all
	return known
}

// putSizesLocked puts the sizes of before this daemon that lie no further than a raw offset.
func (t *Terminal) putSizesLocked(to int64) {
	for a := &t.adoption; len(a.sizes) > 0 && a.sizes[0].Off <= to; {
		r := a.sizes[0]
		a.sizes = a.sizes[1:]
		t.putMarkLocked(Mark{Kind: MarkResized, Off: min(r.Off, t.stream.texted), Size: r.size()})
	}
}
