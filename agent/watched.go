package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"sync"
	"time"

	"tether/agent/policy"
	"tether/agent/term"
	"tether/vocab"
)

// watchLog records who watched which terminal at a host and when, who asked about
// earlier runs, and who asked lent ports, according to hosts: at most one record per
// person, terminal and minute, even if somebody comes and goes all the time. The zero
// value with audit set is ready.
type watchLog struct {
	audit func(policy.Event) // set once

	mu      sync.Mutex
	all     map[watchKey]*watching
	fresh   int // records of new watchers since the last sweep
	dropped int // new watchers for which there was no room
	sweeper *time.Timer
	closed  bool
}

type watchKey struct {
	host      string
	id        term.ID
	who, kind string
}

// watching is a watcher, present or gone within the last minute.
type watching struct {
	since   time.Time
	until   time.Time // zero while the watcher is present
	written time.Time // when the last record about it was written
	ended   bool      // its end was written
	more    int64     // requests that no record tells of
}

const (
	watchEvery = time.Minute
	// maxWatching bounds the remembered watchers, and maxFresh the records of new
	// watchers in a minute: a hostile host invents names.
	maxWatching = 4096
	maxFresh    = 128
)

// note takes the list of the present watchers of a terminal at a host. It blocks only for
// the audit log.
func (l *watchLog) note(host string, id term.ID, who []vocab.Watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	here := map[watchKey]bool{}
	for _, one := range who {
		key := watchKey{host, id, one.Who, one.Kind}
		here[key] = true
		l.beganLocked(key, one.Since, now)
	}
	for key, w := range l.all {
		if key.host == host && key.id == id && !here[key] && w.until.IsZero() {
			w.until = now
		}
	}
	l.sweepLaterLocked()
}

func (l *watchLog) sweepLaterLocked() {
	if len(l.all)+l.dropped > 0 && l.sweeper == nil && !l.closed {
		l.sweeper = time.AfterFunc(watchEvery, l.sweep)
	}
}

// roomLocked makes room for a new record.
func (l *watchLog) roomLocked() bool {
	switch {
	case l.closed:
		return false
	case len(l.all) >= maxWatching, l.fresh >= maxFresh:
		l.dropped++
		return false
	}
	if l.all == nil {
		l.all = map[watchKey]*watching{}
	}
	l.fresh++
	return true
}

func (l *watchLog) beganLocked(key watchKey, since, now time.Time) {
	w := l.all[key]
	switch {
	case w != nil && w.ended: // the record of the end is recent: a sweep after the end of this watch records it
		*w = watching{since: since, written: w.written}
	case w != nil:
		w.until = time.Time{}
	case l.roomLocked():
		l.all[key] = &watching{since: since, written: now}
		l.write(key, "watches since "+stamp(since))
	}
}

// asked takes a question of somebody at a host about earlier runs, of which one a minute
// is recorded. id is the terminal that it is about, if it is about one.
func (l *watchLog) asked(host string, id term.ID, who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, now := watchKey{host, id, who, "earlier runs"}, time.Now()
	if l.all[key] != nil || !l.roomLocked() {
		return
	}
	l.all[key] = &watching{since: now, until: now, written: now, ended: true} // a sweep forgets it
	l.audit(policy.Event{Type: policy.EventWatch, Actor: term.Host(host), Terminal: id, Host: host, Detail: cmp.Or(who, "somebody") + " asks about earlier runs, as the host says"})
	l.sweepLaterLocked()
}

// fetched takes a request of somebody at a host to a lent port, of which the first one is
// recorded, and once a minute the number of the others.
func (l *watchLog) fetched(host string, id term.ID, port int, who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, now := watchKey{host, id, who, portKind + strconv.Itoa(port)}, time.Now()
	if w := l.all[key]; w != nil {
		w.more++
		return
	}
	if !l.roomLocked() {
		return
	}
	l.all[key] = &watching{since: now, until: now, written: now, ended: true}
	l.writeRequests(key, "asks "+key.kind)
	l.sweepLaterLocked()
}

// portKind begins watchKey.kind of requests to a lent port.
const portKind = "port "

func (l *watchLog) writeRequests(key watchKey, what string) {
	l.audit(policy.Event{Type: policy.EventFetch, Actor: term.Host(key.host), Terminal: key.id, Host: key.host, Detail: fmt.Sprintf("%s %s, as the host says", cmp.Or(key.who, "somebody"), what)})
}

// moreLocked records the requests since the last record.
func (l *watchLog) moreLocked(key watchKey, w *watching) {
	l.writeRequests(key, fmt.Sprintf("has asked %s %d more times since %s", key.kind, w.more, stamp(w.written)))
	w.more, w.written = 0, time.Now()
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (l *watchLog) write(key watchKey, what string) {
	l.audit(policy.Event{Type: policy.EventWatch, Actor: term.Host(key.host), Terminal: key.id, Host: key.host,
		Detail: fmt.Sprintf("%s (%s) %s, as the host says", cmp.Or(key.who, "somebody"), cmp.Or(key.kind, "unknown"), what)})
}

// sweep records the ends of watches, and forgets watches whose end was recorded at least
// a minute ago.
func (l *watchLog) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for key, w := range l.all {
		switch due := now.Sub(w.written) >= watchEvery; {
		case !due || w.until.IsZero():
		case w.more > 0:
			l.moreLocked(key, w)
		case w.ended:
			delete(l.all, key)
		default:
			l.endLocked(key, w, w.until)
		}
	}
	if l.dropped > 0 {
		l.audit(policy.Event{Type: policy.EventWatch, Detail: fmt.Sprintf("%d more were said to watch within a minute, and not written down", l.dropped)})
	}
	l.fresh, l.dropped, l.sweeper = 0, 0, nil
	l.sweepLaterLocked()
}

func (l *watchLog) endLocked(key watchKey, w *watching, until time.Time) {
	w.ended, w.written = true, time.Now()
	l.write(key, "watched from "+stamp(w.since)+" until "+stamp(until))
}

// close records the present time as the end of the watches that continue. It may be
// called more than once.
func (l *watchLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.sweeper != nil {
		l.sweeper.Stop()
	}
	for key, w := range l.all {
		if w.more > 0 {
			l.moreLocked(key, w)
		}
		if !w.ended {
			l.endLocked(key, w, cmp.Or(w.until, time.Now()))
		}
	}
	clear(l.all)
}
