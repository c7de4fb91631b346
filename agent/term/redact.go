package term

import (
	"time"

	"tether/agent/outward"
)

const (
	redactPiece = 1 << 20 // bytes of text that are looked at in one go, under the lock
	redactAgain = time.Millisecond
	renewTime   = time.Minute // in which there may be so many images, notifications and titles: see outward.Filter.Renew
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
func (h Handle) Outward() *outward.Rules {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.lending.rules
}
