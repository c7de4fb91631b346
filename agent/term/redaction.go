package term

import (
	"math"
	"runtime/debug"
	"sort"
	"time"

	"tether/agent/redact"
	"tether/record"
)

// How long text may be held back from hosts because it may be the beginning of a secret
// or of a control string; see redact.Filter.
const (
	holdLong  = 200 * time.Millisecond // docs/SECURITY.md promises it
	holdBrief = 2 * time.Millisecond   // where that is unlikely
)

const maskCost = 24 // bytes of memory of one mask

// outwardLinger is how long a redaction stays after its last reader, so that the next
// reader need not wait until the whole log was examined again.
const outwardLinger = time.Minute

// redaction finds the parts of a terminal's text that hosts and agents do not see. It
// exists while the terminal is lent or somebody reads ViewOutward, and for outwardLinger
// after that. While all its readers are in the background it is lazy. Guarded by the
// terminal's mutex.
type redaction struct {
	filter   *redact.Filter
	lazy     bool      // text is examined when it is read, so perhaps never
	final    bool      // no more text follows
	from     int64     // raw offset at which it began
	fed      int64     // raw offset up to which the filter has the text
	frontier int64     // raw offset up to which the shown text is decided
	at       int64     // frontier as a text offset
	begun    int64     // text offset at which it began
	since    time.Time // when the text at the frontier was held back
	held     bool      // text is held back
	renewed  time.Time
	behind   bool // it has not yet examined all text that the log had when it began
	timer    *time.Timer
	linger   *time.Timer // runs endLinger; nil while it is lent or read

	// Masks in ascending order; those of sequences overlay the others.
	secrets, sequences record.Queue[redact.Mask]
}

// begin starts the redaction at the oldest text in the log.
func (v *redaction) begin(rules *redact.Rules, s *stream) { v.beginAt(rules, s, s.log.Start()) }

// beginAt starts the redaction at a raw offset.
func (v *redaction) beginAt(rules *redact.Rules, s *stream, raw int64) {
	v.fed = s.charStart(raw, s.texted)
	v.from, v.frontier, v.at = v.fed, v.fed, s.cuts.textAt(v.fed)
	v.begun, v.held = v.at, false
	var before []byte // text before the beginning, in which a secret may have begun
	if o := &s.oldest; !o.Blank() && o.At() == raw {
		before = shownBefore(o.Screen())
	}
	v.filter = redact.NewFilter(rules, v.at-int64(len(before)))
	v.filter.Feed(before)
	v.secrets, v.sequences = record.Queue[redact.Mask]{}, record.Queue[redact.Mask]{}
}

func (v *redaction) renew(now time.Time) {
	v.renewed = now
	v.filter.Renew()
}

// take adds the filter's decisions to the masks, and moves the frontier behind them.
func (v *redaction) take(s *stream, now time.Time) {
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
	at, end := max(v.filter.Decided(), v.begun), s.cuts.textAt(v.fed)
	if at != v.at || !v.held {
		v.at, v.since = at, now
	}
	v.frontier, v.held = v.fed, at < end
	if v.held {
		v.frontier = s.cuts.rawAt(at)
	}
}

// waitLeft returns how much longer the held text may be held back.
func (v *redaction) waitLeft(now time.Time) time.Duration {
	hold := holdLong
	if v.filter.Brief() {
		hold = holdBrief
	}
	return hold - now.Sub(v.since)
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
func (v *redaction) overfull(s *stream, from int64, limit int) bool {
	if v == nil || max(v.secrets.Len(), v.sequences.Len()) <= limit/maskCost {
		return false
	}
	text := s.cuts.textAt(from)
	for _, q := range []*record.Queue[redact.Mask]{&v.secrets, &v.sequences} {
		n := q.Len()
		if n-sort.Search(n, func(i int) bool { return q.At(i).End > text }) > limit/maskCost {
			return true
		}
	}
	return false
}

// fits returns the raw offset, base or later, from which on the masks fit the bound; held
// text is kept in any case, unless the redaction is lazy.
func (v *redaction) fits(base int64, s *stream, limit int) int64 {
	for _, q := range []*record.Queue[redact.Mask]{&v.secrets, &v.sequences} {
		if over := q.Len() - limit/maskCost; over > 0 {
			base = max(base, s.cuts.rawAt(q.At(over-1).End))
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

// stop stops the timers.
func (v *redaction) stop() {
	if v == nil {
		return
	}
	for _, timer := range []*time.Timer{v.timer, v.linger} {
		if timer != nil {
			timer.Stop()
		}
	}
}

// cost is the memory of the masks, in bytes.
func (v *redaction) cost() int {
	if v == nil {
		return 0
	}
	return (v.secrets.Cap() + v.sequences.Cap()) * maskCost
}

const (
	redactPiece = 1 << 20 // bytes of text that are examined at a time, under the lock
	redactAgain = time.Millisecond
	renewTime   = time.Minute // period in which the number of images, notifications and titles is bounded, see redact.Filter.Renew
)

// prepare makes the terminal's redaction rules before it is lent. It must be called
// without the lock, because the first call may take a moment.
func (t *Terminal) prepare() {
	base := t.pool.opts.Outward
	if base == nil {
		return
	}
	t.mu.Lock()
	done, secrets := t.lending.rules != nil, t.origin.secrets
	t.mu.Unlock()
	if done {
		return
	}
	rules, complete := base.With(secrets)
	if !complete && t.pool.opts.Trouble != nil {
		t.pool.opts.Trouble("too many values to redact: none is redacted")
	}
	t.mu.Lock()
	t.lending.rules = rules
	t.mu.Unlock()
}

// setRedactionLocked creates the redaction if the terminal is lent or has readers of
// ViewOutward; otherwise it drops it, or makes it lazy, after outwardLinger.
func (t *Terminal) setRedactionLocked() {
	l := &t.lending
	eager := (len(l.to) > 0 || l.outward > 0) && l.rules != nil
	switch v := l.redaction; {
	case v == nil && (eager || l.back > 0 && l.rules != nil):
		l.redaction = &redaction{renewed: time.Now(), behind: true, lazy: !eager, final: t.ending.exit != nil}
		t.stream.oldest.outward.judge = l.redaction
		l.redaction.begin(l.rules, &t.stream)
		t.redactLocked(time.Now(), false)
	case v == nil:
	case eager && v.lazy:
		v.lazy, v.behind = false, v.behind || v.fed < t.stream.texted
		t.redactLocked(time.Now(), false)
	case eager && v.linger != nil:
		v.linger.Stop()
		v.linger = nil
	case eager, v.linger != nil, t.share.released:
	case !v.lazy:
		v.linger = time.AfterFunc(outwardLinger, t.endLinger)
	case l.back == 0:
		t.dropRedactionLocked()
	}
}

// endLinger ends a redaction that nobody has needed for outwardLinger, except perhaps in
// the background.
func (t *Terminal) endLinger() {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.lending.redaction
	if v == nil || v.linger == nil || len(t.lending.to) > 0 || t.lending.outward > 0 {
		return
	}
	if v.linger = nil; t.lending.back > 0 {
		v.lazy = true
		return
	}
	t.dropRedactionLocked()
}

func (t *Terminal) dropRedactionLocked() {
	t.lending.redaction.stop()
	t.lending.redaction, t.stream.oldest.outward.judge = nil, nil
}

// beginOutward counts a reader of ViewOutward, and makes the redaction examine all
// present output, so that a single read returns all of it.
func (t *Terminal) beginOutward() {
	t.prepare()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lending.outward++
	t.setRedactionLocked()
	for goal := t.stream.texted; ; {
		v := t.lending.redaction
		if v == nil || v.fed >= goal {
			break
		}
		fed := v.fed
		t.redactLocked(time.Now(), false)
		if t.lending.redaction.fed == fed {
			break
		}
		t.mu.Unlock() // let others take the lock
		t.mu.Lock()
	}
	if v := t.lending.redaction; v != nil && v.held && v.fed == t.stream.texted && time.Since(t.activity.printed) >= holdLong {
		v.filter.Flush() // nothing is held back: it was printed long ago
		t.releaseLocked(time.Now())
		t.wakeLocked()
	}
}

// endOutward reverses beginOutward.
func (t *Terminal) endOutward() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endOutwardLocked(false)
}

func (t *Terminal) endOutwardLocked(back bool) {
	*t.lending.readersOf(back)--
	t.setRedactionLocked()
}

// redactLocked decides the hosts' view of new text. final: there is no more.
func (t *Terminal) redactLocked(now time.Time, final bool) {
	v := t.lending.redaction
	if v == nil {
		return
	}
	if v.final = v.final || final; v.lazy {
		return
	}
	most := redactPiece
	if v.final {
		most = math.MaxInt
	}
	t.feedRedactionLocked(now, most)
}

// feedRedactionLocked examines at least most bytes of text, unless there are fewer.
func (t *Terminal) feedRedactionLocked(now time.Time, most int) {
	v := t.lending.redaction
	if v.fed < t.stream.log.Start() {
		v.begin(t.lending.rules, &t.stream) // hosts lose the text that was not examined
	}
	if now.Sub(v.renewed) >= renewTime {
		v.renew(now)
	}
	buf := readBuffers.Get().(*[32 << 10]byte)
	pos, n := v.fed, 0
	for fed := 0; pos < t.stream.texted && fed < most; {
		before := pos
		pos, n = t.stream.fill(buf[:min(len(buf), max(most-fed, minReadBuffer))], ViewText, pos, t.stream.texted, false)
		v.filter.Feed(buf[:n])
		if fed += n; n == 0 && pos == before {
			break
		}
	}
	readBuffers.Put(buf)
	v.fed = pos
	if v.behind && v.fed >= t.stream.texted && t.stream.log.End() >= t.adoption.target {
		// The titles of hours of output have used up the allowance of a minute: later
		// output gets a new one.
		v.behind = false
		v.renew(now)
	}
	if v.fed == t.stream.texted && (v.final || v.lazy && now.Sub(t.activity.printed) >= holdLong) {
		v.filter.Flush()
	}
	t.releaseLocked(now)
}

// examineLocked examines text for a reader in the background at a raw offset, n bytes
// behind it, if nobody else has it examined. If a panic occurs, which is a bug of ours,
// the text that there is by now stays unexamined, and the reader loses it.
func (t *Terminal) examineLocked(raw int64, n int) {
	v := t.lending.redaction
	if v == nil || !v.lazy || v.frontier > raw || v.fed == t.stream.texted && !v.held {
		return
	}
	defer func() {
		if bug := recover(); bug != nil {
			v.beginAt(t.lending.rules, &t.stream, t.stream.texted)
			if f := t.pool.opts.Recovered; f != nil {
				go f(Recovery{ID: t.id, Kind: kindOf(bug), Stack: debug.Stack()}) // it may take the lock
			}
		}
	}()
	t.feedRedactionLocked(time.Now(), int(max(raw-v.fed, 0))+n)
}

// releaseLocked makes decided text readable, and sets a timer for the held text.
func (t *Terminal) releaseLocked(now time.Time) {
	v := t.lending.redaction
	v.take(&t.stream, now)
	switch {
	case v.fed < t.stream.texted && v.lazy:
	case v.fed < t.stream.texted:
		t.lookLaterLocked(redactAgain)
	case v.held:
		t.lookLaterLocked(v.waitLeft(now))
	}
}

func (t *Terminal) lookLaterLocked(in time.Duration) {
	v := t.lending.redaction
	if v.timer == nil {
		v.timer = time.AfterFunc(max(in, 0), t.releaseHeldText)
		return
	}
	v.timer.Reset(max(in, 0))
}

// releaseHeldText makes text readable that was held back for long enough.
func (t *Terminal) releaseHeldText() {
	defer t.recoverRedaction()
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.lending.redaction
	if v == nil || t.share.released {
		return
	}
	now := time.Now()
	t.redactLocked(now, false)
	if v.fed == t.stream.texted && v.held && v.waitLeft(now) <= 0 {
		v.filter.Flush()
		t.releaseLocked(now)
	}
	t.wakeLocked()
}

// Outward returns the rules for texts about the terminal that a host gets besides the
// output, such as titles. Nil rules redact nothing.
func (h Handle) Outward() *redact.Rules {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.lending.rules
}

// redaction returns the rules for a terminal's output, even if it is lent to no host. Nil
// rules redact nothing.
func (h Handle) redaction() *redact.Rules {
	h.t.prepare()
	return h.Outward()
}
