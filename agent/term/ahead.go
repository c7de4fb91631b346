package term

import (
	"math"
	"slices"

	"tether/agent/output"
)

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

// giveUp is the fraction of a holder's log that is free when its newest screen is given
// up, although there is no newer one.
const giveUp = 32

// maxRecordedScreen bounds it, in bytes.
const maxRecordedScreen = 1 << 20

// handScreensLocked gives the holder the screens that it does not have.
func (t *Terminal) handScreensLocked() {
	if t.screens == nil {
		return
	}
	for _, k := range t.log.Kept() {
		if !k.Exact || k.Raw <= t.keeper.screened {
			continue
		}
		text, err := k.Marshal()
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
	if t.screens == nil || t.log.End()-t.keeper.screened >= log-log/giveUp {
		return noOffset // before the holder's log is full: otherwise the child would wait for ever
	}
	return t.keeper.screened
}

// takeScreens takes over the screens of an earlier daemon. Output is scanned from the
// offset raw on; the sizes are known from the offset known on.
func (t *Terminal) takeScreens(notes []Note, raw, known int64) {
	if raw < known {
		t.log.LoseScreen(raw)
	} else if raw == 0 {
		return // the screen was blank there
	}
	raw = max(raw, known)
	var all []output.Screen
	for _, n := range notes {
		if at, ok := output.ParseScreen(n.Text, n.Off); ok && n.Off >= raw && checkSize(at.Size) == nil {
			all = append(all, at)
			t.keeper.screened = n.Off
		}
	}
	t.log.Keep(all)
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
	before, since, _ := t.log.Before()
	all := []recordedSize{{since, before.Cols, before.Rows}} // a holder may keep more than a daemon
	marks := t.log.Marks()
	for n := marks.First(); n < marks.End(); n++ {
		if m := marks.At(n); m.Kind == output.MarkResized {
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
	since := first.Off
	if known == math.MaxInt64 {
		since = past.End
	}
	t.display.size = first.size()
	t.log.SetBefore(first.size(), since)
	t.adoption.sizes = all
	return known
}

// putSizesLocked records, up to a raw offset, the sizes that an earlier daemon has
// recorded.
func (t *Terminal) putSizesLocked(to int64) {
	for a := &t.adoption; len(a.sizes) > 0 && a.sizes[0].Off <= to; {
		r := a.sizes[0]
		a.sizes = a.sizes[1:]
		t.putMarkLocked(output.Mark{Kind: output.MarkResized, Off: min(r.Off, t.log.Texted()), Size: r.size()})
	}
}
