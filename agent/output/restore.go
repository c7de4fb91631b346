package output

import (
	"math"
	"slices"
	"time"

	"tether/internal/clip"
	"tether/vocab"
)

// Past is what a holder keeps of a log that an earlier daemon had.
type Past struct {
	Size Size // the last one
	// The holder's log has the raw range [Base, End). Earlier daemons have received the
	// output up to Taken, and perhaps up to Window bytes more.
	Base, End, Taken, Window int64
	Notes                    []Note // checkpoints, by ascending offset
	Screens                  []Note // by ascending offset; of a holder that keeps them
}

// Recorded is what an earlier daemon has recorded of a log beside its checkpoints.
type Recorded struct {
	Commands  []PastCommand
	Checkouts []vocab.Checkout // of Commands
	Sizes     []SizeAt         // see Log.Sizes
	Clipboard bool             // the text includes sequences that set the clipboard
}

// restored is a log's state while the output that a holder has is scanned again. The zero
// value belongs to a log that has begun here.
type restored struct {
	underWay bool
	target   int64                 // end of the output that the holder had
	recalled map[int]vocab.Command // commands of the earlier daemons, by number; nil at the end
	sizes    []SizeAt              // recorded sizes whose offsets were not scanned yet
}

// recallTimes gives a command that is scanned again the times and the checkout that an
// earlier daemon recorded.
func (a *restored) recallTimes(c *vocab.Command) {
	if was, ok := a.recalled[c.N]; ok && was.Start == c.Start {
		c.Started, c.Checkout = was.Started, was.Checkout
		if !c.Running && !was.Running {
			c.DurationMs = was.DurationMs
		}
	}
}

// Restore puts a new log into the state that it had at the oldest offset in the holder's
// log from which the output can be scanned. It returns that raw offset. The output from
// there on, which Append then gets, has its marks and commands at the same places and
// times.
func (l *Log) Restore(p *Past, r Recorded) (raw int64) {
	l.opts.Clipboard = r.Clipboard
	l.restored = restored{underWay: true, target: p.End, recalled: map[int]vocab.Command{}}
	raw, text, n := p.place()
	if raw == p.Base {
		n.countLost(r.Commands, raw)
	}
	if raw > 0 {
		l.resume(raw, text, &n)
	}
	l.restoreScreens(p.Screens, raw, l.expectSizes(r.Sizes, raw, p))
	l.recall(&r, &n)
	return raw
}

// Restoring reports whether output that the holder had at Restore is still to be scanned.
func (l *Log) Restoring() bool { return l.restored.underWay }

// EndRestore ends the restoring if all output that the holder had was scanned.
func (l *Log) EndRestore() {
	if a := &l.restored; a.underWay && l.log.End() >= a.target {
		l.markSizes(math.MaxInt64)
		a.underWay, a.recalled = false, nil
		l.owner.Restored()
	}
}

// place chooses where to begin: at the start, or at the oldest checkpoint in the log.
// Without a checkpoint, the output before the log is lost, and only an upper bound of its
// length as text is known: each byte became at most one replacement character. The bound
// is needed only for output that a daemon may have received. With it an offset never
// names two different texts; a host may see a longer gap than there is.
func (p *Past) place() (raw, text int64, n checkpoint) {
	if p.Base == 0 {
		return 0, 0, n
	}
	off := int64(0) // of n
	for _, one := range p.Notes {
		parsed, ok := parseCheckpoint(one.Text)
		if !ok || one.Off > p.End {
			continue
		}
		if n, off = parsed, one.Off; off >= p.Base {
			return off, n.Text, n
		}
	}
	shown := max(min(p.Base, p.Taken+p.Window)-off, 0)
	n.Lost += max(p.Base-p.Taken, 0)
	n.Tracker.Seen = p.Base
	return p.Base, n.Text + p.Base - off + shown*int64(len("\uFFFD")-1), n
}

// countLost makes later commands get higher numbers than those that began in lost output,
// so that a number names one command.
func (n *checkpoint) countLost(all []PastCommand, base int64) {
	for _, c := range all {
		if c.Start < base {
			n.Tracker.IDs = max(n.Tracker.IDs, int64(c.N))
		}
	}
}

// recall remembers the commands that began before the log, and the times of those that
// will be scanned again.
func (l *Log) recall(r *Recorded, n *checkpoint) {
	all := r.Commands
	for _, c := range n.Open {
		if !slices.ContainsFunc(all, func(o PastCommand) bool { return o.N == c.N }) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b PastCommand) int { return a.N - b.N })
	for i := range all {
		c := all[i].command()
		if at := all[i].Checkout; at > 0 && at <= len(r.Checkouts) {
			c.Checkout = &r.Checkouts[at-1]
		}
		l.restored.recalled[c.N] = c
		if int64(c.N) > n.Tracker.IDs {
			continue // its beginning will be scanned again
		}
		if c.End > l.log.Start() {
			c.Running, c.End, c.DurationMs, c.Exit = true, 0, nil, nil // its end will be scanned again
		}
		l.history.remember(c, l.log.Limit())
	}
}

// restoreScreens takes over the screens of an earlier daemon. Output is scanned from the
// offset raw on; the sizes are known from the offset known on.
func (l *Log) restoreScreens(notes []Note, raw, known int64) {
	if raw < known {
		l.oldest.lose(raw)
	} else if raw == 0 {
		return // the screen was blank there
	}
	raw = max(raw, known)
	var all []Screen
	for _, n := range notes {
		if at, ok := ParseScreen(n.Text, n.Off); ok && n.Off >= raw && ValidSize(at.Size) {
			all = append(all, at)
			l.screened = n.Off
		}
	}
	l.keepScreens(all)
}

// PastCommand holds the facts about a shell's command that its marks lack, as a holder
// keeps them in JSON. A field never changes its meaning.
type PastCommand struct {
	N        int    `json:"n"`
	Line     string `json:"line,omitempty"`
	HasLine  bool   `json:"has_line,omitempty"`
	Start    int64  `json:"start"`
	End      int64  `json:"end,omitempty"`
	Began    int64  `json:"began"`        // Unix µs
	Took     int64  `json:"us,omitempty"` // µs
	Exit     *int   `json:"exit,omitempty"`
	Done     bool   `json:"done,omitempty"`
	Verified bool   `json:"verified,omitempty"`
	Within   int    `json:"within,omitempty"`
	Checkout int    `json:"checkout,omitempty"` // place in Recorded.Checkouts, from 1
}

const (
	maxPastLine = 1 << 10                        // bytes
	maxPastTime = 10 * 366 * 24 * 3600 * 1000000 // µs: ten years
)

// PastOf returns a command as a holder keeps it, without its checkout.
func PastOf(c *vocab.Command) PastCommand {
	o := PastCommand{
		N: c.N, Line: clip.Text(c.Text(), maxPastLine), HasLine: c.Line != nil, Start: c.Start, End: c.End,
		Began: c.Started.UnixMicro(), Exit: c.Exit, Done: !c.Running, Verified: c.Verified, Within: c.Within,
	}
	if c.DurationMs != nil {
		o.Took = int64(math.Round(*c.DurationMs * 1000))
	}
	return o
}

func (o *PastCommand) command() vocab.Command {
	c := vocab.Command{N: o.N, Start: o.Start, End: o.End, Started: time.UnixMicro(o.Began), Exit: o.Exit, Running: !o.Done, Verified: o.Verified, Within: o.Within}
	if o.HasLine {
		c.Line = &o.Line
	}
	if o.Done {
		c.Took(time.Duration(min(max(o.Took, 0), maxPastTime)) * time.Microsecond)
	}
	return c
}

// SizeAt is a size that the terminal got before a raw offset, as a holder keeps it in
// JSON.
type SizeAt struct {
	Off  int64  `json:"off"`
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

func (r SizeAt) size() Size { return Size{Cols: r.Cols, Rows: r.Rows} }

// maxSizes bounds what Sizes returns.
const maxSizes = 256

// Sizes returns the terminal's size at the oldest output, with the offset at which it
// took effect, and the later sizes; the newest 256 if there are more.
func (l *Log) Sizes() []SizeAt {
	all := []SizeAt{{l.since, l.before.Cols, l.before.Rows}} // a holder may keep more than a daemon
	for n := l.marks.First(); n < l.marks.End(); n++ {
		if m := l.marks.At(n); m.Kind == MarkResized {
			all = append(all, SizeAt{m.Off, m.Size.Cols, m.Size.Rows})
		}
	}
	all = append(all, l.restored.sizes...)
	return all[max(0, len(all)-maxSizes):]
}

// expectSizes restores a new log's size at a raw offset, and makes later sizes take
// effect at their offsets while its output is scanned. It returns the raw offset from
// which on sizes are known; older daemons did not record them.
func (l *Log) expectSizes(all []SizeAt, raw int64, past *Past) (known int64) {
	all = slices.DeleteFunc(slices.Clone(all), func(r SizeAt) bool { return !ValidSize(r.size()) || r.Off > past.End })
	if len(all) == 0 {
		return 0
	}
	known, last := all[0].Off, all[len(all)-1]
	if last.size() != past.Size && !l.opts.Pane { // the output of a pane has its size
		all = append(all, SizeAt{past.End, past.Size.Cols, past.Size.Rows})
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
	l.size, l.before, l.since = first.size(), first.size(), since
	l.oldest.resize(l.before)
	l.restored.sizes = all
	return known
}

// markSizes records, up to a raw offset, the sizes that an earlier daemon has recorded.
func (l *Log) markSizes(to int64) {
	for a := &l.restored; len(a.sizes) > 0 && a.sizes[0].Off <= to; {
		r := a.sizes[0]
		a.sizes = a.sizes[1:]
		l.mark(Mark{Kind: MarkResized, Off: min(r.Off, l.texted), Size: r.size()})
	}
}
