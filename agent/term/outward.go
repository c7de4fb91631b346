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

const (
	maskCost  = 24      // bytes of memory of one mask
	veilPiece = 1 << 20 // bytes of text that are looked at in one go, under the lock
	veilAgain = time.Millisecond
	renewTime = time.Minute // in which there may be so many images, notifications and titles: see outward.Filter.Renew
)

// veil is what hosts do not see of a terminal's text: it exists while the
// terminal is lent. Guarded by the terminal's mutex.
type veil struct {
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

// prepare makes the rules for the terminal before it is lent. That may take a
// moment the first time, so no lock is held.
func (t *Terminal) prepare() {
	base := t.pool.opts.Outward
	if base == nil {
		return
	}
	t.mu.Lock()
	done, secrets := t.rules != nil, t.secrets
	t.mu.Unlock()
	if done {
		return
	}
	rules, complete := base.With(secrets)
	if !complete && t.pool.opts.Trouble != nil {
		t.pool.opts.Trouble("there are too many values to redact: none of them is")
	}
	t.mu.Lock()
	t.rules = rules
	t.mu.Unlock()
}

// setVeilLocked makes the veil what the lending needs.
func (t *Terminal) setVeilLocked() {
	switch lent := len(t.lentTo) > 0 && t.rules != nil; {
	case lent && t.veil == nil:
		t.veil = &veil{renewed: time.Now(), behind: true}
		t.drawLocked()
		t.veilLocked(time.Now(), t.exit != nil)
	case !lent && t.veil != nil:
		if t.veil.timer != nil {
			t.veil.timer.Stop()
		}
		t.veil = nil
	}
}

// drawLocked begins the veil at the oldest text there is.
func (t *Terminal) drawLocked() {
	v := t.veil
	v.fed = t.log.Start()
	if v.fed > t.cuts.baseRaw {
		v.fed = t.lineStartLocked(v.fed, t.texted)
	}
	v.frontier, v.at = v.fed, t.cuts.textAt(v.fed)
	v.filter = outward.NewFilter(t.rules, v.at)
	v.secrets, v.sequences = queue[outward.Mask]{}, queue[outward.Mask]{}
}

// veilLocked decides what hosts see of new text. final: nothing follows.
func (t *Terminal) veilLocked(now time.Time, final bool) {
	v := t.veil
	if v == nil {
		return
	}
	if v.fed < t.log.Start() {
		t.drawLocked() // what it had not looked at is lost
	}
	if now.Sub(v.renewed) >= renewTime {
		v.renew(now)
	}
	buf := readBuffers.Get().(*[32 << 10]byte)
	r := Reader{t: t, view: ViewText, pos: v.fed}
	for fed := 0; r.pos < t.texted && (fed < veilPiece || final); {
		before := r.pos
		n := r.fillLocked(buf[:], t.texted)
		v.filter.Feed(buf[:n])
		if fed += n; n == 0 && r.pos == before {
			break
		}
	}
	readBuffers.Put(buf)
	v.fed = r.pos
	if v.behind && v.fed >= t.texted && t.log.End() >= t.target {
		// Hours of a shell's titles use up what a minute may have: what is printed from now on has its own.
		v.behind = false
		v.renew(now)
	}
	if final {
		v.filter.Flush()
	}
	t.unveilLocked(now)
}

func (v *veil) renew(now time.Time) {
	v.renewed = now
	v.filter.Renew()
}

// unveilLocked takes from the filter what it has decided, and comes back for
// the rest.
func (t *Terminal) unveilLocked(now time.Time) {
	v := t.veil
	secrets, sequences := v.filter.Take()
	for _, m := range secrets {
		v.secrets.push(m)
	}
	for _, m := range sequences {
		v.sequences.push(m)
	}
	at, end := v.filter.Decided(), t.cuts.textAt(v.fed)
	if at != v.at || !v.held {
		v.at, v.since = at, now
	}
	v.frontier, v.held = v.fed, at < end
	if v.held {
		v.frontier = t.cuts.rawAt(at)
	}
	switch {
	case v.fed < t.texted:
		t.lookLaterLocked(veilAgain)
	case v.held:
		t.lookLaterLocked(t.patienceLocked(now))
	}
}

// patienceLocked is how much longer the held text may wait.
func (t *Terminal) patienceLocked(now time.Time) time.Duration {
	hold := holdLong
	if t.veil.filter.Brief() {
		hold = holdBrief
	}
	return hold - now.Sub(t.veil.since)
}

func (t *Terminal) lookLaterLocked(in time.Duration) {
	v := t.veil
	if v.timer == nil {
		v.timer = time.AfterFunc(max(in, 0), t.unveil)
		return
	}
	v.timer.Reset(max(in, 0))
}

// unveil lets go of text that was held back for long enough.
func (t *Terminal) unveil() {
	defer t.stumbleVeil()
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.veil
	if v == nil || t.released {
		return
	}
	now := time.Now()
	t.veilLocked(now, false)
	if v.fed == t.texted && v.held && t.patienceLocked(now) <= 0 {
		v.filter.Flush()
		t.unveilLocked(now)
	}
	t.wakeLocked()
}

// atRest reports whether a veil that begins here would do what this one
// does.
func (v *veil) atRest(end int64) bool { return v == nil || v.fed == end && v.filter.AtRest() }

// later is the timer that runs unveil, nil if there is none.
func (v *veil) later() *time.Timer {
	if v == nil {
		return nil
	}
	return v.timer
}

// cost is the memory of the masks, in bytes.
func (v *veil) cost() int {
	if v == nil {
		return 0
	}
	return (v.secrets.cap() + v.sequences.cap()) * maskCost
}

// boundVeilLocked returns the raw offset from which on the masks fit the
// bound of the log.
func (t *Terminal) boundVeilLocked(base int64) int64 {
	if t.veil == nil {
		return base
	}
	for _, q := range []*queue[outward.Mask]{&t.veil.secrets, &t.veil.sequences} {
		if over := q.len() - t.log.Limit()/maskCost; over > 0 {
			base = max(base, t.cuts.rawAt(q.at(over-1).End))
		}
	}
	return min(base, t.veil.frontier)
}

// trimVeilLocked forgets the masks before a raw offset.
func (t *Terminal) trimVeilLocked(base int64) {
	if t.veil == nil {
		return
	}
	text := t.cuts.textAt(base)
	for _, q := range []*queue[outward.Mask]{&t.veil.secrets, &t.veil.sequences} {
		n := 0
		for n < q.len() && q.at(n).End <= text {
			n++
		}
		q.drop(n)
	}
}

// coverLocked puts the masks over p, the text at the offset off.
func (t *Terminal) coverLocked(p []byte, off int64) {
	if t.veil == nil {
		return
	}
	end := off + int64(len(p))
	for _, q := range []*queue[outward.Mask]{&t.veil.secrets, &t.veil.sequences} {
		n := q.len()
		for i := sort.Search(n, func(i int) bool { return q.at(i).End > off }); i < n && q.at(i).Start < end; i++ {
			q.at(i).Put(p, off)
		}
	}
}

// Outward is what applies to texts about the terminal that a host is sent
// beside its output, such as titles. Nil changes nothing.
func (h Handle) Outward() *outward.Rules {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.rules
}
