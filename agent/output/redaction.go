package output

import (
	"math"
	"sort"
	"sync"
	"time"

	"tether/agent/redact"
	"tether/record"
)

// How long text may be withheld from hosts because it may be the beginning of a secret
// or of a control string; see redact.Filter.
const (
	withholdLong  = 200 * time.Millisecond // docs/SECURITY.md promises it
	withholdBrief = 2 * time.Millisecond   // where that is unlikely
)

const maskCost = 24 // bytes of memory of one mask

// redaction finds the parts of the text that hosts and agents do not see: the view for
// them has a frontier of its own. While all its readers are in the background it is lazy.
// All of its methods but atRest, overfull and cost need a redaction that exists.
type redaction struct {
	rules    *redact.Rules
	filter   *redact.Filter
	lazy     bool      // text is examined when it is read, so perhaps never
	final    bool      // no more text follows
	from     int64     // raw offset at which it began
	fed      int64     // raw offset up to which the filter has the text
	frontier int64     // raw offset up to which the shown text is decided
	at       int64     // frontier as a text offset
	begun    int64     // text offset at which it began
	since    time.Time // when the text at the frontier was withheld
	withheld bool      // text is withheld
	renewed  time.Time
	behind   bool // it has not yet examined all text that the log had when it began

	// Masks in ascending order; those of sequences overlay the others.
	secrets, sequences record.Queue[redact.Mask]
}

// restartRedaction makes the redaction, if there is one, begin at a raw offset. Readers
// of the view for hosts do not get the text before it.
func (l *Log) restartRedaction(raw int64) {
	v := l.redaction
	if v == nil {
		return
	}
	v.fed = l.charStart(max(raw, l.log.Start()), l.texted)
	v.from, v.frontier, v.at = v.fed, v.fed, l.cuts.textAt(v.fed)
	v.begun, v.withheld = v.at, false
	var before []byte // text before the beginning, in which a secret may have begun
	if o := &l.oldest; !o.Blank() && o.At() == raw {
		before = shownBefore(o.Screen())
	}
	v.filter = redact.NewFilter(v.rules, v.at-int64(len(before)))
	v.filter.Feed(before)
	v.secrets, v.sequences = record.Queue[redact.Mask]{}, record.Queue[redact.Mask]{}
}

// frontier returns the raw offset up to which the view may be read.
func (l *Log) frontier(v View) int64 {
	if v == ViewOutward && l.redaction != nil {
		return l.redaction.frontier
	}
	return l.known(v)
}

// oldestOf returns the raw offset before which the view cannot be read.
func (l *Log) oldestOf(v View) int64 {
	if v == ViewOutward && l.redaction != nil {
		return max(l.log.Start(), l.redaction.from)
	}
	return l.log.Start()
}

// maskText masks p, which is text of the view at a text offset, for hosts. It returns how
// many masked places it has newly counted. counted has the text offsets up to which
// secrets and sequences were counted; maskText advances them.
func (l *Log) maskText(p []byte, off int64, counted *[2]int64) (places int) {
	if l.redaction == nil {
		return 0
	}
	return l.redaction.mask(p, off, counted)
}

// withholds reports whether text is withheld although all was examined.
func (l *Log) withholds() bool { v := l.redaction; return v != nil && v.withheld && v.fed == l.texted }

const (
	redactPiece = 1 << 20 // bytes of text that are examined at a time, under the lock
	redactAgain = time.Millisecond
	renewTime   = time.Minute // period in which the number of images, notifications and titles is bounded, see redact.Filter.Renew
)

// redactBuffers are shared by all logs.
var redactBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// examine examines the next text: at least most bytes, unless there are fewer; 0 means a
// piece of the usual size, and everything at the end. It returns after which time there
// is more to do, if some. If nothing was printed for withholdLong, a lazy redaction
// withholds nothing.
func (l *Log) examine(now time.Time, most int) (again time.Duration, some bool) {
	v := l.redaction
	if most == 0 {
		if most = redactPiece; v.final {
			most = math.MaxInt
		}
	}
	if v.fed < l.log.Start() {
		l.restartRedaction(l.log.Start()) // hosts lose the text that was not examined
	}
	if now.Sub(v.renewed) >= renewTime {
		v.renew(now)
	}
	buf := redactBuffers.Get().(*[32 << 10]byte)
	pos, n := v.fed, 0
	for fed := 0; pos < l.texted && fed < most; {
		before := pos
		pos, n = l.fill(buf[:min(len(buf), max(most-fed, MinBuffer))], ViewText, pos, l.texted, false)
		v.filter.Feed(buf[:n])
		if fed += n; n == 0 && pos == before {
			break
		}
	}
	redactBuffers.Put(buf)
	v.fed = pos
	if v.behind && v.fed >= l.texted && l.log.End() >= l.restored.target {
		// The titles of hours of output have used up the allowance of a minute: later
		// output gets a new one.
		v.behind = false
		v.renew(now)
	}
	if v.fed == l.texted && (v.final || v.lazy && now.Sub(l.printed) >= withholdLong) {
		v.filter.Flush()
	}
	return l.take(now)
}

// release makes text readable that is withheld.
func (l *Log) release(now time.Time) (again time.Duration, some bool) {
	l.redaction.filter.Flush()
	return l.take(now)
}

func (v *redaction) renew(now time.Time) {
	v.renewed = now
	v.filter.Renew()
}

// take adds the filter's decisions to the masks, and moves the frontier behind them. It
// returns after which time there is more to do, if some.
func (l *Log) take(now time.Time) (again time.Duration, some bool) {
	v := l.redaction
	secrets, sequences := v.filter.Take()
	for _, m := range secrets {
		if m.End > v.begun {
			v.secrets.Push(m)
		}
	}
	for _, m := range sequences {
		if m.End > v.begun {
			v.sequences.Push(m)
		}
	}
	at, end := max(v.filter.Decided(), v.begun), l.cuts.textAt(v.fed)
	if at != v.at || !v.withheld {
		v.at, v.since = at, now
	}
	v.frontier, v.withheld = v.fed, at < end
	if v.withheld {
		v.frontier = l.cuts.rawAt(at)
	}
	switch {
	case v.fed < l.texted:
		return redactAgain, !v.lazy
	case v.withheld:
		return v.waitLeft(now), true
	}
	return 0, false
}

// waitLeft returns how much longer the withheld text may be withheld.
func (v *redaction) waitLeft(now time.Time) time.Duration {
	most := withholdLong
	if v.filter.Brief() {
		most = withholdBrief
	}
	return most - now.Sub(v.since)
}

// mask applies the masks to p, the text at the offset off. It returns how many masked
// places it has newly counted. counted has the text offsets up to which secrets and
// sequences were counted; mask advances them.
func (v *redaction) mask(p []byte, off int64, counted *[2]int64) (places int) {
	end := off + int64(len(p))
	for k, q := range []*record.Queue[redact.Mask]{&v.secrets, &v.sequences} {
		n := q.Len()
		for i := sort.Search(n, func(i int) bool { return q.At(i).End > off }); i < n && q.At(i).Start < end; i++ {
			m := q.At(i)
			m.Put(p, off)
			// The replacement of a sequence consists of several adjacent masks.
			if m.Start > counted[k] || m.Start == counted[k] && m.Kind.Begins() {
				places++
			}
			counted[k] = max(counted[k], m.End)
		}
	}
	return places
}

// overfull reports whether there are more masks behind the raw offset than fit the bound.
func (v *redaction) overfull(l *Log, from int64, limit int) bool {
	if v == nil || max(v.secrets.Len(), v.sequences.Len()) <= limit/maskCost {
		return false
	}
	text := l.cuts.textAt(from)
	for _, q := range []*record.Queue[redact.Mask]{&v.secrets, &v.sequences} {
		n := q.Len()
		if n-sort.Search(n, func(i int) bool { return q.At(i).End > text }) > limit/maskCost {
			return true
		}
	}
	return false
}

// fits returns the raw offset, base or later, from which on the masks fit the bound;
// withheld text is kept in any case, unless the redaction is lazy.
func (v *redaction) fits(base int64, l *Log, limit int) int64 {
	for _, q := range []*record.Queue[redact.Mask]{&v.secrets, &v.sequences} {
		if over := q.Len() - limit/maskCost; over > 0 {
			base = max(base, l.cuts.rawAt(q.At(over-1).End))
		}
	}
	if v.lazy {
		return base
	}
	return min(base, v.frontier)
}

// trim forgets the masks before a text offset.
func (v *redaction) trim(text int64) {
	for _, q := range []*record.Queue[redact.Mask]{&v.secrets, &v.sequences} {
		n := 0
		for n < q.Len() && q.At(n).End <= text {
			n++
		}
		q.Drop(n)
	}
}

// atRest reports whether a redaction that begins here would decide the same as this one.
func (v *redaction) atRest(end int64) bool {
	return v == nil || v.lazy || v.fed == end && v.filter.AtRest()
}

// cost is the memory of the masks, in bytes.
func (v *redaction) cost() int {
	if v == nil {
		return 0
	}
	return (v.secrets.Cap() + v.sequences.Cap()) * maskCost
}
