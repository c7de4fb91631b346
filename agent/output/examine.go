package output

import (
	"time"

	"tether/agent/redact"
)

// outward says who needs the view for hosts, and so whether there is a redaction.
type outward struct {
	rules   *redact.Rules // nil before SetRules, and if nothing is redacted
	lent    bool          // a host has the terminal
	readers int           // of ViewOutward, that read as text is printed
	back    int           // those in the background
	look    *time.Timer   // runs releaseWithheld; nil before there was withheld text
	linger  *time.Timer   // runs endLinger; nil while the redaction is needed
	stopped bool          // the timers stay stopped
}

// outwardLinger is how long a redaction stays after its last reader, so that the next
// reader need not wait until the whole log was examined again.
const outwardLinger = time.Minute

// Rules returns the rules of SetRules, or nil.
func (l *Log) Rules() *redact.Rules { return l.outward.rules }

// SetRules sets the rules of the view for hosts; nil redacts nothing. It is called before
// SetLent, and before the first reader of that view.
func (l *Log) SetRules(rules *redact.Rules) { l.outward.rules = rules }

// SetLent says whether a host has the terminal, for which text is examined as it is
// printed.
func (l *Log) SetLent(lent bool) {
	l.outward.lent = lent
	l.setRedaction()
}

// setRedaction creates the redaction if a host has the terminal or there are readers of
// ViewOutward; otherwise it drops the redaction, or makes it lazy, after outwardLinger.
func (l *Log) setRedaction() {
	o, now := &l.outward, time.Now()
	eager := (o.lent || o.readers > 0) && o.rules != nil
	switch v := l.redaction; {
	case v == nil && (eager || o.back > 0 && o.rules != nil):
		l.redaction = &redaction{rules: o.rules, renewed: now, behind: true, lazy: !eager, final: l.finished}
		l.oldest.outward.judge = l.redaction
		l.restartRedaction(l.log.Start())
		l.redact(now, false)
	case v == nil:
	case eager && v.lazy:
		v.lazy, v.behind = false, v.behind || v.fed < l.texted
		l.redact(now, false)
	case eager && o.linger != nil:
		o.linger.Stop()
		o.linger = nil
	case eager, o.linger != nil, o.stopped:
	case !v.lazy:
		o.linger = time.AfterFunc(outwardLinger, l.endLinger)
	case o.back == 0:
		l.dropRedaction()
	}
}

// endLinger ends a redaction that nobody has needed for outwardLinger, except perhaps in
// the background.
func (l *Log) endLinger() {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, o := l.redaction, &l.outward
	if v == nil || o.linger == nil || o.lent || o.readers > 0 {
		return
	}
	if o.linger = nil; o.back > 0 {
		v.lazy = true
		return
	}
	l.dropRedaction()
}

// dropRedaction ends the redaction: from now on, the view for hosts is that of the text.
func (l *Log) dropRedaction() {
	l.stopTimers()
	l.redaction, l.oldest.outward.judge = nil, nil
}

func (l *Log) stopTimers() {
	o := &l.outward
	for _, timer := range []*time.Timer{o.look, o.linger} {
		if timer != nil {
			timer.Stop()
		}
	}
	o.look, o.linger = nil, nil
}

// Stop stops the timers for good: the terminal was removed.
func (l *Log) Stop() {
	l.outward.stopped = true
	l.stopTimers()
}

// addReader counts a reader of ViewOutward, or, with -1, one less.
func (l *Log) addReader(back bool, by int) {
	if back {
		l.outward.back += by
	} else {
		l.outward.readers += by
	}
	l.setRedaction()
}

// examineAll makes the redaction examine all present output, so that a single read
// returns all of it.
func (l *Log) examineAll() {
	for goal := l.texted; ; {
		v := l.redaction
		if v == nil || v.fed >= goal {
			break
		}
		fed := v.fed
		l.redact(time.Now(), false)
		if v.fed == fed {
			break
		}
		l.mu.Unlock() // let others take the lock
		l.mu.Lock()
	}
	if l.withholds() && time.Since(l.printed) >= withholdLong {
		l.lookLater(l.release(time.Now())) // it was printed long ago
		l.wake()
	}
}

// redact decides the hosts' view of new text. final: there is no more.
func (l *Log) redact(now time.Time, final bool) {
	v := l.redaction
	if v == nil {
		return
	}
	v.final = v.final || final
	if !v.lazy {
		l.lookLater(l.examine(now, 0))
	}
}

// examineFor examines text for a reader in the background at a raw offset, n bytes behind
// it, if nobody else has it examined. If a panic occurs, which is a bug of ours, the text
// that there is by now stays unexamined, and the reader loses it.
func (l *Log) examineFor(raw int64, n int) {
	v := l.redaction
	if v == nil || !v.lazy || v.frontier > raw || v.fed == l.texted && !v.withheld {
		return
	}
	defer func() {
		if bug := recover(); bug != nil {
			l.restartRedaction(l.texted)
			go l.owner.Recovered(bugOf(bug, 0)) // which may take the lock
		}
	}()
	l.lookLater(l.examine(time.Now(), int(max(raw-v.fed, 0))+n))
}

// lookLater sets a timer for withheld text, if some.
func (l *Log) lookLater(in time.Duration, some bool) {
	o := &l.outward
	switch {
	case !some:
	case o.look == nil:
		o.look = time.AfterFunc(max(in, 0), l.releaseWithheld)
	default:
		o.look.Reset(max(in, 0))
	}
}

// releaseWithheld makes text readable that was withheld for long enough.
func (l *Log) releaseWithheld() {
	defer l.surviveRedaction()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.redaction == nil || l.outward.stopped {
		return
	}
	now := time.Now()
	l.redact(now, false)
	if l.withholds() && l.redaction.waitLeft(now) <= 0 {
		l.lookLater(l.release(now))
	}
	l.wake()
}
