package policy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agent/term"
)

// Bounds of questions and grants.
const (
	maxQuestions = 32               // that wait, of all principals
	maxExpired   = 32               // that nobody answered in time and can still be approved
	keepExpired  = 15 * time.Minute // how long they can
	lateGrant    = 10 * time.Minute // for what a late approval without a time allows it
	maxGrants    = 256
	// MaxGrant is the longest time for which something may be approved.
	MaxGrant = 24 * time.Hour
)

// Question is something that waits for the person, or did: then Expired is set
// and approving it lets the next attempt through.
type Question struct {
	ID      string // "q-…"
	Request Request
	Why     Decision
	Asked   time.Time
	Expires time.Time // denied then
	Expired bool
}

// Grant is a standing approval of one command, in one directory, for one
// principal at one door.
type Grant struct {
	ID      string // "g-…"
	Request Request
	Since   time.Time
	Expires time.Time
}

// Answer is what the person says to a question.
type Answer struct {
	Allow bool
	// For makes an approval a grant: the same is allowed without a question
	// for so long, at most MaxGrant.
	For time.Duration
}

// Errors of Answer and Revoke.
var (
	ErrNoQuestion = errors.New("no such question or grant; it may have been answered, or withdrawn")
	ErrTooLong    = fmt.Errorf("an approval lasts at most %s", MaxGrant)
)

// pending is a question with the one who waits.
type pending struct {
	Question
	answer chan Answer // 1 slot; written once, by who takes the question from the queue
}

// questions is the queue and the grants. It is safe for concurrent use.
type questions struct {
	mu      sync.Mutex
	waiting []*pending // oldest first
	expired []Question
	grants  []Grant
	version uint64
	watch   chan struct{} // closed and replaced at each change
}

func (q *questions) changedLocked() {
	q.version++
	close(q.watch)
	q.watch = make(chan struct{})
}

// newID returns an id that can be typed.
func newID(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:6]) }

// same reports whether a grant of one request covers the other. It is about
// exactly what was shown to the person.
func same(a, b Request) bool {
	return a.Actor == b.Actor && a.Door == b.Door && a.Line == b.Line && a.Shell == b.Shell && a.Cwd == b.Cwd &&
		slices.Equal(a.Argv, b.Argv) && slices.Equal(a.EnvNames, b.EnvNames)
}

// granted returns the grant that covers r.
func (q *questions) granted(r Request) (Grant, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	i := slices.IndexFunc(q.grants, func(g Grant) bool { return same(g.Request, r) })
	if i < 0 {
		return Grant{}, false
	}
	return q.grants[i], true
}

// sweepLocked forgets what is over.
func (q *questions) sweepLocked() {
	now := time.Now()
	q.grants = slices.DeleteFunc(q.grants, func(g Grant) bool { return over(g.Expires, now, now) })
	q.expired = slices.DeleteFunc(q.expired, func(e Question) bool { return now.Sub(e.Expires) >= keepExpired })
}

// over reports whether a time has come, by the wall clock or by the one that
// stands still while the machine sleeps, whichever is there first: an hour's
// approval does not go on after a night.
func over(t, now, wall time.Time) bool {
	return !now.Before(t) || !wall.Round(0).Before(t.Round(0))
}

// put queues a question, unless too many wait.
func (q *questions) put(r Request, why Decision, patience time.Duration, most int) (*pending, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	own := 0
	for _, p := range q.waiting {
		if counted(p.Request.Actor) == counted(r.Actor) {
			own++
		}
	}
	if own >= most || len(q.waiting) >= maxQuestions {
		return nil, false
	}
	now := time.Now()
	p := &pending{Question{ID: newID("q"), Request: copied(r), Why: why, Asked: now, Expires: now.Add(patience)}, make(chan Answer, 1)}
	q.waiting = append(q.waiting, p)
	q.expired = slices.DeleteFunc(q.expired, func(e Question) bool { return same(e.Request, r) })
	q.changedLocked()
	return p, true
}

func copied(r Request) Request {
	r.Argv, r.EnvNames = slices.Clone(r.Argv), slices.Clone(r.EnvNames)
	return r
}

// take removes the question from the queue; false if it was answered.
func (q *questions) take(p *pending, expired bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, p)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if expired {
		p.Expired = true
		q.expired = append(q.expired, p.Question)
		q.expired = q.expired[max(0, len(q.expired)-maxExpired):]
	}
	q.changedLocked()
	return true
}

// answer answers the question and returns it, with the grant if there is one.
func (q *questions) answer(id string, a Answer) (Question, *Grant, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	asked, late, ok := q.findLocked(id)
	switch {
	case !ok:
		return Question{}, nil, ErrNoQuestion
	case a.For < 0 || a.For > MaxGrant:
		return Question{}, nil, ErrTooLong
	case late && a.Allow:
		a.For = cmp.Or(a.For, lateGrant)
	}
	var g *Grant
	if a.Allow && a.For > 0 {
		now := time.Now()
		g = &Grant{ID: newID("g"), Request: asked.Request, Since: now, Expires: now.Add(a.For)}
		q.grants = append(q.grants, *g)
		q.grants = q.grants[max(0, len(q.grants)-maxGrants):]
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(p *pending) bool {
		answered := p.ID == id || g != nil && same(p.Request, asked.Request)
		if answered {
			p.answer <- a
		}
		return answered
	})
	q.expired = slices.DeleteFunc(q.expired, func(e Question) bool { return e.ID == id })
	q.changedLocked()
	return asked, g, nil
}

func (q *questions) findLocked(id string) (asked Question, late, ok bool) {
	for _, p := range q.waiting {
		if p.ID == id {
			return p.Question, false, true
		}
	}
	for _, e := range q.expired {
		if e.ID == id {
			return e, true, true
		}
	}
	return Question{}, false, false
}

// revoke ends a grant.
func (q *questions) revoke(id string) (Grant, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	i := slices.IndexFunc(q.grants, func(g Grant) bool { return g.ID == id })
	if i < 0 {
		return Grant{}, ErrNoQuestion
	}
	g := q.grants[i]
	q.grants = slices.Delete(q.grants, i, i+1)
	q.changedLocked()
	return g, nil
}

// list returns what waits, what expired lately, and the grants.
func (q *questions) list() (asked []Question, grants []Grant, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	for _, p := range q.waiting {
		asked = append(asked, p.Question)
	}
	return append(asked, q.expired...), slices.Clone(q.grants), q.version
}

// changed returns when the version is not since any more.
func (q *questions) changed(ctx context.Context, since uint64) (uint64, error) {
	for {
		q.mu.Lock()
		version, watch := q.version, q.watch
		q.mu.Unlock()
		if version != since {
			return version, nil
		}
		select {
		case <-watch:
		case <-ctx.Done():
			return version, ctx.Err()
		}
	}
}

// waitingFor counts the questions that wait, of one actor or, for the user, of
// all.
func (q *questions) waitingFor(a term.Actor) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, p := range q.waiting {
		if a.Role == term.RoleUser || p.Request.Actor == a {
			n++
		}
	}
	return n
}
