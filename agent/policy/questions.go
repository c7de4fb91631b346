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
	"tether/internal/change"
)

// Bounds of questions and grants.
const (
	maxQuestions = 32               // most questions that wait, of all principals together
	maxExpired   = 32               // most questions that nobody answered in time and that can still be approved
	keepExpired  = 15 * time.Minute // how long an expired question can be approved
	lateGrant    = 10 * time.Minute // how long a late approval lasts that names no time
	maxGrants    = 256
	// MaxGrant is the longest time for which something may be approved.
	MaxGrant = 24 * time.Hour
)

// Question is a request that waits for the person's decision. If Expired is set, it waits
// no more, and approving it lets the next attempt through.
type Question struct {
	ID string // "q-…"
	// Request has in Env the values that decide which code runs, and others with secrets
	// masked.
	Request Request
	Scripts []Script // the scripts that it runs
	Why     Decision
	Asked   time.Time
	Expires time.Time // the question expires at this time, and the request is denied
	Expired bool
}

// Grant is a standing approval of one command, in one directory, for one principal at one
// door.
type Grant struct {
	ID      string // "g-…"
	Request Request
	Since   time.Time
	Expires time.Time
}

// Answer is the person's answer to a question.
type Answer struct {
	Allow bool
	// For, if not 0, makes an approval a grant: for that time, at most MaxGrant, the same
	// request is allowed without a question.
	For time.Duration
}

// Errors of Answer and Revoke.
var (
	ErrNoQuestion = errors.New("no such approval request or approval; it may have been answered or withdrawn")
	ErrTooLong    = fmt.Errorf("an approval lasts at most %s", MaxGrant)
)

// verdict is the outcome of a question: the person's answer, or none.
type verdict struct {
	Answer
	nobody bool // nobody has answered in time
}

// pending is a question with the channel on which its caller waits for the answer.
type pending struct {
	Question
	answer chan verdict // 1 slot; written by the goroutine that takes the question from the queue
	// left reports that the requester was told to ask again, and nobody waits for answer
	// now. Guarded by questions.mu until the question is taken.
	left bool
	end  *time.Timer // calls lapse at the end of the time to answer
}

// questions is the queue and the grants. It is safe for concurrent use.
type questions struct {
	mu      sync.Mutex
	waiting []*pending // oldest first
	settled []*pending // answered while nobody waited: the next attempt takes the answer, until Expires
	expired []Question
	grants  []Grant
	version uint64
	watch   change.Signal
}

func (q *questions) changedLocked() {
	q.version++
	q.watch.Raise()
}

// newID returns a random id, short enough to be typed.
func newID(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:6]) }

// same reports whether a grant of one request covers the other. It covers exactly the
// parts that the person was shown, and those bound to it (bind).
func same(a, b Request) bool {
	return a.Actor == b.Actor && a.Door == b.Door && a.Line == b.Line && a.Shell == b.Shell && a.Cwd == b.Cwd &&
		slices.Equal(a.Argv, b.Argv) && a.bound == b.bound
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

// sweepLocked removes expired questions and grants.
func (q *questions) sweepLocked() {
	now := time.Now()
	q.grants = slices.DeleteFunc(q.grants, func(g Grant) bool { return over(g.Expires, now, now) })
	q.expired = slices.DeleteFunc(q.expired, func(e Question) bool { return now.Sub(e.Expires) >= keepExpired })
	q.settled = slices.DeleteFunc(q.settled, func(p *pending) bool { return over(p.Expires, now, now) })
}

// over reports whether the time t has come, by the wall clock or by the monotonic clock,
// which may stop while the machine sleeps; whichever is first counts. So an approval for
// an hour does not outlast a night.
func over(t, now, wall time.Time) bool {
	return !now.Before(t) || !wall.Round(0).Before(t.Round(0))
}

// known reports whether the person was asked about the request before, and its requester
// was told to repeat it for the answer.
func (q *questions) known(r Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	is := func(p *pending) bool { return p.left && same(p.Request, r) }
	return slices.ContainsFunc(q.settled, is) || slices.ContainsFunc(q.waiting, is)
}

// join returns the question that an earlier attempt at the request has asked and left, or
// nil. The caller must then wait for its answer.
func (q *questions) join(r Request) *pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	is := func(p *pending) bool { return p.left && same(p.Request, r) }
	if i := slices.IndexFunc(q.settled, is); i >= 0 {
		p := q.settled[i]
		q.settled = slices.Delete(q.settled, i, i+1)
		return p
	}
	if i := slices.IndexFunc(q.waiting, is); i >= 0 {
		q.waiting[i].left = false
		return q.waiting[i]
	}
	return nil
}

// leave keeps the question although nobody waits for it; false if it has been answered.
func (q *questions) leave(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.left = slices.Contains(q.waiting, p)
	return p.left
}

// keep puts back an approval that could not be used, for the next attempt.
func (q *questions) keep(p *pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.answer <- verdict{Answer: Answer{Allow: true}}
	q.settleLocked(p)
}

func (q *questions) settleLocked(p *pending) {
	p.left, p.Expires = true, time.Now().Add(lateGrant)
	q.settled = append(q.settled, p)
	q.settled = q.settled[max(0, len(q.settled)-maxQuestions):]
}

// put queues a question, unless too many wait. When timeout has passed, lapse is called.
func (q *questions) put(r Request, scripts []Script, why Decision, timeout time.Duration, most int, lapse func(*pending)) (*pending, bool) {
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
	p := &pending{Question: Question{ID: newID("q"), Request: r, Scripts: scripts, Why: why, Asked: now, Expires: now.Add(timeout)}, answer: make(chan verdict, 1)}
	p.end = time.AfterFunc(timeout, func() { lapse(p) })
	q.waiting = append(q.waiting, p)
	q.expired = slices.DeleteFunc(q.expired, func(e Question) bool { return same(e.Request, r) })
	q.changedLocked()
	return p, true
}

func copied(r Request) Request {
	r.Argv, r.Env = slices.Clone(r.Argv), slices.Clone(r.Env)
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
	p.end.Stop()
	if expired {
		p.Expired = true
		q.expired = append(q.expired, p.Question)
		q.expired = q.expired[max(0, len(q.expired)-maxExpired):]
	}
	q.changedLocked()
	return true
}

// answer answers the question and returns it, with the grant if there is one. left says
// that nobody waited for the answer.
func (q *questions) answer(id string, a Answer) (asked Question, g *Grant, left bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	asked, late, ok := q.findLocked(id)
	switch {
	case !ok:
		return Question{}, nil, false, ErrNoQuestion
	case a.For < 0 || a.For > MaxGrant:
		return Question{}, nil, false, ErrTooLong
	case late && a.Allow:
		a.For = cmp.Or(a.For, lateGrant)
	}
	if a.Allow && a.For > 0 {
		now := time.Now()
		g = &Grant{ID: newID("g"), Request: asked.Request, Since: now, Expires: now.Add(a.For)}
		q.grants = append(q.grants, *g)
		q.grants = q.grants[max(0, len(q.grants)-maxGrants):]
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(p *pending) bool {
		answered := p.ID == id || g != nil && same(p.Request, asked.Request)
		if answered {
			p.end.Stop()
			p.answer <- verdict{Answer: a}
			if p.left && g == nil { // with a grant, the next attempt needs no answer
				q.settleLocked(p)
			}
			left = left || p.left && p.ID == id
		}
		return answered
	})
	q.expired = slices.DeleteFunc(q.expired, func(e Question) bool { return e.ID == id })
	q.changedLocked()
	return asked, g, left, nil
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

// list returns the waiting questions, those that expired lately, and the grants.
func (q *questions) list() (asked []Question, grants []Grant, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweepLocked()
	for _, p := range q.waiting {
		asked = append(asked, p.Question)
	}
	return append(asked, q.expired...), slices.Clone(q.grants), q.version
}

// changed waits until the version differs from since, and returns the version, or ctx's
// error.
func (q *questions) changed(ctx context.Context, since uint64) (uint64, error) {
	return change.Await(ctx, since, func() (uint64, <-chan struct{}) {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.version, q.watch.Next()
	})
}

// waitingFor returns the number of waiting questions: the actor's own, or all of them for
// the user.
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
