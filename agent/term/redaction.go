package term

import (
	"runtime/debug"
	"time"

	"tether/agent/output"
	"tether/agent/redact"
)

// outwardLinger is how long a redaction stays after its last reader, so that the next
// reader need not wait until the whole log was examined again.
const outwardLinger = time.Minute

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
// output.ViewOutward; otherwise it drops it, or makes it lazy, after outwardLinger.
func (t *Terminal) setRedactionLocked() {
	l := &t.lending
	eager := (len(l.to) > 0 || l.outward > 0) && l.rules != nil
	switch v := t.log.Redaction(); {
	case v == nil && (eager || l.back > 0 && l.rules != nil):
		t.log.BeginRedaction(l.rules, !eager, t.ending.exit != nil, time.Now())
		t.redactLocked(time.Now(), false)
	case v == nil:
	case eager && v.Lazy():
		t.log.MakeEager()
		t.redactLocked(time.Now(), false)
	case eager && l.linger != nil:
		l.linger.Stop()
		l.linger = nil
	case eager, l.linger != nil, t.share.released:
	case !v.Lazy():
		l.linger = time.AfterFunc(outwardLinger, t.endLinger)
	case l.back == 0:
		t.dropRedactionLocked()
	}
}

// endLinger ends a redaction that nobody has needed for outwardLinger, except perhaps in
// the background.
func (t *Terminal) endLinger() {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, l := t.log.Redaction(), &t.lending
	if v == nil || l.linger == nil || len(l.to) > 0 || l.outward > 0 {
		return
	}
	if l.linger = nil; l.back > 0 {
		v.MakeLazy()
		return
	}
	t.dropRedactionLocked()
}

func (t *Terminal) dropRedactionLocked() {
	t.lending.stopRedacting()
	t.log.EndRedaction()
}

// stopRedacting stops the timers of the redaction.
func (l *lending) stopRedacting() {
	for _, timer := range []*time.Timer{l.look, l.linger} {
		if timer != nil {
			timer.Stop()
		}
	}
	l.look, l.linger = nil, nil
}

// beginOutward counts a reader of output.ViewOutward, and makes the redaction examine all
// present output, so that a single read returns all of it.
func (t *Terminal) beginOutward() {
	t.prepare()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lending.outward++
	t.setRedactionLocked()
	for goal := t.log.Texted(); ; {
		v := t.log.Redaction()
		if v == nil || v.Fed() >= goal {
			break
		}
		fed := v.Fed()
		t.redactLocked(time.Now(), false)
		if v.Fed() == fed {
			break
		}
		t.mu.Unlock() // let others take the lock
		t.mu.Lock()
	}
	if t.log.Held() && time.Since(t.activity.printed) >= output.HoldLong {
		t.lookLaterLocked(t.log.Release(time.Now())) // nothing is held back: it was printed long ago
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
	v := t.log.Redaction()
	if v == nil {
		return
	}
	if final {
		v.End()
	}
	if !v.Lazy() {
		t.examineLocked(now, 0)
	}
}

// examineLocked examines the next text, see [output.Log.Redact].
func (t *Terminal) examineLocked(now time.Time, most int) {
	t.lookLaterLocked(t.log.Redact(now, most, now.Sub(t.activity.printed) >= output.HoldLong, t.log.End() >= t.adoption.target))
}

// examineForLocked examines text for a reader in the background at a raw offset, n bytes
// behind it, if nobody else has it examined. If a panic occurs, which is a bug of ours,
// the text that there is by now stays unexamined, and the reader loses it.
func (t *Terminal) examineForLocked(raw int64, n int) {
	if !t.log.Unexamined(raw) {
		return
	}
	defer func() {
		if bug := recover(); bug != nil {
			t.log.RestartRedaction(t.log.Texted())
			if f := t.pool.opts.Recovered; f != nil {
				go f(Recovery{ID: t.id, Kind: kindOf(bug), Stack: debug.Stack()}) // it may take the lock
			}
		}
	}()
	t.examineLocked(time.Now(), int(max(raw-t.log.Redaction().Fed(), 0))+n)
}

// lookLaterLocked sets a timer for held text, if some.
func (t *Terminal) lookLaterLocked(in time.Duration, some bool) {
	l := &t.lending
	switch {
	case !some:
	case l.look == nil:
		l.look = time.AfterFunc(max(in, 0), t.releaseHeldText)
	default:
		l.look.Reset(max(in, 0))
	}
}

// releaseHeldText makes text readable that was held back for long enough.
func (t *Terminal) releaseHeldText() {
	defer t.recoverRedaction()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.log.Redaction() == nil || t.share.released {
		return
	}
	now := time.Now()
	t.redactLocked(now, false)
	if t.log.Overdue(now) {
		t.lookLaterLocked(t.log.Release(now))
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
