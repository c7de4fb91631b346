package term

import (
	"sort"
	"time"

	"tether/agent/outward"
)

// How long text may be held back from hosts because a secret or a control
// string may go on; see outward.Filter.
const (
	holdLong  = 200 * time.Millisecond // docs/SECURITY.md promises it
	holdBrief = 2 * time.Millisecond   // where it is likely to be nothing
)

const maskCost = 24 // bytes of memory of one mask

// redaction is what hosts do not see of a terminal's text: it exists while the
// terminal is lent. Guarded by the terminal's mutex.
type redaction struct {
	filter   *outward.Filter
	fed      int64     // raw offset up to which the filter has the text
	frontier int64     // raw offset up to which it is known what is shown
	at       int64     // the same as a text offset
	since    time.Time // when what is at the frontier was held back
	held     bool      // there is something
	renewed  time.Time
	behind   bool // it has not looked at all that was there when it began
	timer    *time.Timer

	// Masks in ascending order; those of sequences lie over the others.
	secrets, sequences queue[outward.Mask]
}

// begin starts the redaction at the oldest text there is.
func (v *redaction) begin(rules *outward.Rules, s *stream) {
	v.fed = s.log.Start()
	if v.fed > s.cuts.baseRaw {
		v.fed = s.lineStart(v.fed, s.texted)
	}
	v.frontier, v.at = v.fed, s.cuts.textAt(v.fed)
	v.filter = outward.NewFilter(rules, v.at)
	v.secrets, v.sequences = queue[outward.Mask]{}, queue[outward.Mask]{}
}

func (v *redaction) renew(now time.Time) {
	v.renewed = now
	v.filter.Renew()
}

// take moves to the masks what the filter has decided, and the frontier behind
// it.
func (v *redaction) take(s *stream, now time.Time) {
	secrets, sequences := v.filter.Take()
	for _, m := range secrets {
		v.secrets.push(m)
	}
	for _, m := range sequences {
		v.sequences.push(m)
	}
	at, end := v.filter.Decided(), s.cuts.textAt(v.fed)
	if at != v.at || !v.held {
		v.at, v.since = at, now
	}
	v.frontier, v.held = v.fed, at < end
	if v.held {
		v.frontier = s.cuts.rawAt(at)
	}
}

// patience is how much longer the held text may wait.
func (v *redaction) patience(now time.Time) time.Duration {
	hold := holdLong
	if v.filter.Brief() {
		hold = holdBrief
	}
	return hold - now.Sub(v.since)
}

// mask puts the masks over p, the text at the offset off.
func (v *redaction) mask(p []byte, off int64) {
	end := off + int64(len(p))
	for _, q := range []*queue[outward.Mask]{&v.secrets, &v.sequences} {
		n := q.len()
		for i := sort.Search(n, func(i int) bool { return q.at(i).End > off }); i < n && q.at(i).Start < end; i++ {
			q.at(i).Put(p, off)
		}
	}
}

// overfull reports whether there are more masks behind the raw offset than fit
// the bound.
func (v *redaction) overfull(s *stream, from int64, limit int) bool {
	if v == nil || max(v.secrets.len(), v.sequences.len()) <= limit/maskCost {
		return false
	}
	text := s.cuts.textAt(from)
	for _, q := range []*queue[outward.Mask]{&v.secrets, &v.sequences} {
		n := q.len()
		if n-sort.Search(n, func(i int) bool { return q.at(i).End > text }) > limit/maskCost {
			return true
		}
	}
	return false
}

// fits is the raw offset, base or later, from which on the masks fit the bound;
// what is held back is kept.
func (v *redaction) fits(base int64, s *stream, limit int) int64 {
	for _, q := range []*queue[outward.Mask]{&v.secrets, &v.sequences} {
		if over := q.len() - limit/maskCost; over > 0 {
			base = max(base, s.cuts.rawAt(q.at(over-1).End))
		}
	}
	return min(base, v.frontier)
}

// trim forgets the masks before a text offset.
func (v *redaction) trim(text int64) {
	for _, q := range []*queue[outward.Mask]{&v.secrets, &v.sequences} {
		n := 0
		for n < q.len() && q.at(n).End <= text {
			n++
		}
		q.drop(n)
	}
}

// atRest reports whether a redaction that begins here would do what this one
// does.
func (v *redaction) atRest(end int64) bool { return v == nil || v.fed == end && v.filter.AtRest() }

// later is the timer that runs releaseHeldText, nil if there is none.
func (v *redaction) later() *time.Timer {
	if v == nil {
		return nil
	}
	return v.timer
}

// cost is the memory of the masks, in bytes.
func (v *redaction) cost() int {
	if v == nil {
		return 0
	}
	return (v.secrets.cap() + v.sequences.cap()) * maskCost
}
