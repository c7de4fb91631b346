package output

import (
	"encoding/json"
	"slices"

	"tether/screen"
)

// The screen at the oldest byte is useless to the next daemon: the holder drops that byte
// with the next output. So if a holder keeps screens, the emulator runs ahead of the
// oldest byte once the log is full, and stores a screen at each checkpoint. It does no
// work twice: output that it has processed is not processed again when it is dropped.

// Fractions of a log's bound: 16 is a sixteenth.
const (
	aheadFrom = 16 // free when the emulator begins to run ahead
	aheadLeft = 4  // kept behind the last screen, at least: the holder lets the child fill it until a new daemon is there
	aheadCost = 8  // taken by all screens together, at most
)

const (
	aheadOnce = 2  // checkpoints to advance at a time, because the lock is taken meanwhile
	maxStops  = 64 // checkpoints ahead
)

// emulateAhead moves the emulator ahead of the oldest output that will be kept, and keeps
// the screens on the way.
func (l *Log) emulateAhead(start int64) {
	o := &l.oldest
	limit := int64(l.log.Limit())
	if !o.ahead || o.Blank() && l.log.End() < limit-limit/aheadFrom {
		return // nothing is about to be dropped yet
	}
	far := min(max(start, l.log.Start())+limit-limit/aheadLeft, l.seen) // behind it no mark is added
	for range aheadOnce {
		for len(o.stops) > 0 && o.stops[0] < o.At() {
			o.stops = o.stops[1:]
		}
		if len(o.stops) == 0 || o.stops[0] > far {
			return
		}
		l.leaveTo(o.stops[0])
		o.stops = o.stops[1:]
		o.keep(int(limit / aheadCost))
	}
}

// stopAt arranges that a screen is stored at a raw offset, where there is a checkpoint
// from which the next daemon can scan.
func (l *Log) stopAt(raw int64) {
	if o := &l.oldest; o.ahead && len(o.stops) < maxStops {
		o.stops = append(o.stops, raw)
	}
}

// keep stores the present screen, and drops others until all fit the bound in bytes.
func (o *oldest) keep(most int) {
	o.kept = append(o.kept, o.shown())
	total := 0
	for i := range o.kept {
		total += o.kept[i].Cost()
	}
	for total > most && len(o.kept) > 1 {
		least := 0
		for i := 1; i < len(o.kept)-1; i++ {
			if least == 0 || o.kept[i+1].Raw-o.kept[i-1].Raw < o.kept[least+1].Raw-o.kept[least-1].Raw {
				least = i
			}
		}
		total -= o.kept[least].Cost()
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

// Kept returns the stored screens, the oldest first. The caller does not change them.
func (l *Log) Kept() []Screen { return l.oldest.kept }

// keepScreens takes over screens that an earlier daemon has stored, the oldest first.
func (l *Log) keepScreens(all []Screen) {
	if len(all) == 0 {
		return
	}
	o, last := &l.oldest, all[len(all)-1]
	is := screen.NewState(int(last.Size.Cols), int(last.Size.Rows))
	is.Write(last.Replay)
	o.kept = append(o.kept, all...)
	o.Draw(is, last.Raw)
	o.outward.unjudged = !last.judged
	if last.isMasked() {
		o.outward.screen = screen.NewState(is.Size())
		o.outward.screen.Write(last.outward)
	}
}

// recordedScreen is a Screen that is exact, as JSON. A newer or older daemon reads
// it, so a field never changes its meaning.
type recordedScreen struct {
	Version int    `json:"v"`
	Cols    uint16 `json:"cols"`
	Rows    uint16 `json:"rows"`
	Replay  []byte `json:"replay"`

	Judged  bool   `json:"judged,omitempty"`  // the view for hosts is known
	Outward []byte `json:"outward,omitempty"` // the view for hosts, if it differs from Replay
}

// Marshal returns the screen, which is exact, for the next daemon.
func (a *Screen) Marshal() ([]byte, error) {
	r := recordedScreen{Version: screenVersion, Cols: a.Size.Cols, Rows: a.Size.Rows, Replay: a.Replay, Judged: a.judged}
	if r.Judged && a.isMasked() {
		r.Outward = a.outward
	}
	return json.Marshal(r)
}

const screenVersion = 1

// ParseScreen reads a screen at a raw offset from what Marshal has returned; ok is false
// for one that cannot be used.
func ParseScreen(p []byte, raw int64) (at Screen, ok bool) {
	var r recordedScreen
	if json.Unmarshal(p, &r) != nil || r.Version != screenVersion || max(len(r.Replay), len(r.Outward)) > screen.MaxReplay {
		return at, false
	}
	at = Screen{Raw: raw, Size: Size{Cols: r.Cols, Rows: r.Rows}, Replay: r.Replay, Exact: true, judged: r.Judged}
	if r.Judged {
		at.outward = at.Replay
		if len(r.Outward) > 0 {
			at.outward = r.Outward
		}
	}
	return at, true
}
