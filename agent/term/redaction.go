package term

import (
	"sort"
	"time"

	"tether/agent/redact"
)

// How long text may be held back from hosts because a secret or a control
// string may go on; see redact.Filter.
const (
	holdLong  = 200 * time.Millisecond // docs/SECURITY.md promises it
	holdBrief = 2 * time.Millisecond   // where it is likely to be nothing
)

const maskCost = 24 // bytes of memory of one mask

// redaction is what hosts do not see of a terminal's text: it exists while the
// terminal is lent. Guarded by the terminal's mutex.
type redaction struct {
	filter   *redact.Filter
	fed      int64     // raw offset up to which the filter has the text
	frontier int64     // raw offset up to which it is known what is shown
	at       int64     // the same as a text offset
	since    time.Time // when what is at the frontier was held back
	held     bool      // there is something
	renewed  time.Time
	behind   bool // it has not looked at all that was there when it began
	timer    *time.Timer

	// Masks in ascending order; those of sequences lie over the others.
	secrets, sequences queue[redact.Mask]
}

// begin starts the redaction at the oldest text there is.
func (v *redaction) begin(rules *redact.Rules, s *stream) {
	v.fed = s.log.Start()
	if v.fed > s.cuts.baseRaw {
		v.fed = s.lineStart(v.fed, s.texted)
	}
	v.frontier, v.at = v.fed, s.cuts.textAt(v.fed)
	v.filter = redact.NewFilter(rules, v.at)
	v.secrets, v.sequences = queue[redact.Mask]{}, queue[redact.Mask]{}
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
	for _, q := range []*queue[redact.Mask]{&v.secrets, &v.sequences} {
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
	for _, q := range []*queue[redact.Mask]{&v.secrets, &v.sequences} {
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
	for _, q := range []*queue[redact.Mask]{&v.secrets, &v.sequences} {
		if over := q.len() - limit/maskCost; over > 0 {
			base = max(base, s.cuts.rawAt(q.at(over-1).End))
		}
	}
	return min(base, v.frontier)
}

// trim forgets the masks before a text offset.
func (v *redaction) trim(text int64) {
	for _, q := range []*queue[redact.Mask]{&v.secrets, &v.sequences} {
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

const (
	redactPiece = 1 << 20 // bytes of text that are looked at in one go, under the lock
	redactAgain = time.Millisecond
	renewTime   = time.Minute // in which there may be so many images, notifications and titles: see redact.Filter.Renew
)

// prepare makes the rules for the terminal before it is lent. That may take a
// moment the first time, so no lock is held.
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

// setRedactionLocked makes the redaction what the lending needs.
func (t *Terminal) setRedactionLocked() {
	switch lent := len(t.lending.to) > 0 && t.lending.rules != nil; {
	case lent && t.lending.redaction == nil:
		t.lending.redaction = &redaction{renewed: time.Now(), behind: true}
		t.lending.redaction.begin(t.lending.rules, &t.stream)
		t.redactLocked(time.Now(), t.ending.exit != nil)
	case !lent && t.lending.redaction != nil:
		if t.lending.redaction.timer != nil {
			t.lending.redaction.timer.Stop()
		}
		t.lending.redaction = nil
	}
}

// redactLocked decides what hosts see of new text. final: nothing follows.
func (t *Terminal) redactLocked(now time.Time, final bool) {
	v := t.lending.redaction
	if v == nil {
		return
	}
	if v.fed < t.stream.log.Start() {
		v.begin(t.lending.rules, &t.stream) // what it had not looked at is lost
	}
	if now.Sub(v.renewed) >= renewTime {
		v.renew(now)
	}
	buf := readBuffers.Get().(*[32 << 10]byte)
	pos, n := v.fed, 0
	for fed := 0; pos < t.stream.texted && (fed < redactPiece || final); {
		before := pos
		pos, n = t.stream.fill(buf[:], ViewText, pos, t.stream.texted)
		v.filter.Feed(buf[:n])
		if fed += n; n == 0 && pos == before {
			break
		}
	}
	readBuffers.Put(buf)
	v.fed = pos
	if v.behind && v.fed >= t.stream.texted && t.stream.log.End() >= t.adoption.target {
		// Hours of a shell's titles use up what a minute may have: what is printed from now on has its own.
		v.behind = false
		v.renew(now)
	}
	if final {
		v.filter.Flush()
	}
	t.releaseLocked(now)
}

// releaseLocked shows what the filter has decided, and comes back for the rest.
func (t *Terminal) releaseLocked(now time.Time) {
	v := t.lending.redaction
	v.take(&t.stream, now)
	switch {
	case v.fed < t.stream.texted:
		t.lookLaterLocked(redactAgain)
	case v.held:
		t.lookLaterLocked(v.patience(now))
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

// releaseHeldText lets go of text that was held back for long enough.
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
	if v.fed == t.stream.texted && v.held && v.patience(now) <= 0 {
		v.filter.Flush()
		t.releaseLocked(now)
	}
	t.wakeLocked()
}

// Outward is what applies to texts about the terminal that a host is sent
// beside its output, such as titles. Nil changes nothing.
func (h Handle) Outward() *redact.Rules {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.lending.rules
}

// Redaction is what applies to a terminal's output for hosts, also if it is lent to none. Nil changes nothing.
func (h Handle) Redaction() *redact.Rules {
	h.t.prepare()
	return h.Outward()
}
