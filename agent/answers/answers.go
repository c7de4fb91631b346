package answers

import (
	"slices"
	"sync"
	"time"

	"tether/agent/output"
	"tether/internal/change"
	"tether/internal/escape"
	"tether/shellint"
)

// Terminal is what answers need of a terminal.
type Terminal interface {
	// ReadsKeys reports whether the program in the foreground reads keys without line
	// editing and echo, and returns its process group. It takes the lock.
	ReadsKeys() (front int, ok bool)
	// Shows reports whether the alternate screen is shown, and how long nothing was
	// printed. It takes the lock.
	Shows() (alt bool, quiet time.Duration)
	// Screen returns the screen at the oldest offset at which it is known. The caller
	// closes it. It takes the lock.
	Screen() (*output.ScreenAt, error)
	// Reply puts an answer into the input, if there is room; it counts as nobody's
	// typing. It takes the lock.
	Reply(text string)
	// Attach counts a person who attaches (+1) or leaves (-1). It takes the lock.
	Attach(by int)
	// Over returns channels that are closed when the terminal has ended, and when another
	// daemon is to control it.
	Over() (ended, left <-chan struct{})
}

// Answering decides who answers what a program asks its terminal: the attached
// terminal whose person typed last, before that the first one. With none, this process
// answers, in fixed forms that contain nothing of what was printed. Guarded by its
// owner's lock.
//
//	question ──a seat──▶ the seat's terminal has it as output
//	   ├──(a seat is expected)──▶ nobody; its terminal gets the output when it comes
//	   └──▶ waiting ──answer: still in place, and the program reads keys as they come──▶ input
type Answering struct {
	mu        *sync.Mutex // the owner's
	of        Terminal
	log       *output.Log
	elsewhere bool // the answers are given elsewhere

	seats   []*Seat // in the order in which they came
	typed   *Seat   // that typed last; nil: none of them has
	until   time.Time
	dealt   int64 // raw offset behind the last question that was for no seat
	waiting []question
	running bool                        // answer runs
	wake    chan struct{}               // 1 slot: a question waits
	given   [answersPerSecond]time.Time // when the last answers were given, the oldest at next; owned by answer
	next    int
}

const (
	answersPerSecond = 20
	maxQuestions     = answersPerSecond // that wait; more are not answered

	// An answer waits until nothing was printed for settleQuiet, or for settleMost: a
	// program that waits for it prints nothing, and a shell that was not asked prints its
	// prompt. On the alternate screen no shell reads.
	settleQuiet = 20 * time.Millisecond
	settleMost  = 100 * time.Millisecond

	// answererIdle is how long the goroutine that answers waits for another question.
	answererIdle = 2 * time.Second

	// seatWithin is how long a seat is expected after a start for somebody who attaches,
	// and after another daemon.
	seatWithin = 10 * time.Second
)

// New returns the answering of a terminal, which the mutex guards. elsewhere says that
// the answers are given elsewhere: by the multiplexer of a pane.
func New(mu *sync.Mutex, of Terminal, log *output.Log, elsewhere bool) *Answering {
	return &Answering{mu: mu, of: of, log: log, elsewhere: elsewhere}
}

// Expect leaves questions to a terminal that will be attached.
func (a *Answering) Expect() { a.until = time.Now().Add(seatWithin) }

// Asked takes the questions among what was found in new output. If can is true, this
// process may answer them. It is called with the lock.
func (a *Answering) Asked(found *shellint.Result, now time.Time, can bool) {
	if a.elsewhere || len(a.seats) > 0 || now.Before(a.until) {
		return
	}
	for i := range found.Marks {
		m := &found.Marks[i]
		if m.Kind != shellint.KindQuery {
			continue
		}
		a.dealt = m.End
		if !can || len(a.waiting) >= maxQuestions || !answerable(m.Query) {
			continue
		}
		text := make([]byte, min(m.End-m.Off, 32))
		text = text[:a.log.ReadAt(text, m.Off)]
		a.waiting = append(a.waiting, question{m.Query, m.Off, m.End, string(text), a.commandAt(m.Off)})
		if !a.running {
			a.running, a.wake = true, make(chan struct{}, 1)
			go a.answer(a.wake)
		}
		change.Wake(a.wake)
	}
}

// commandAt returns the number of the innermost command that runs at a raw offset; 0:
// none.
func (a *Answering) commandAt(raw int64) (n int) {
	for _, c := range a.log.OpenAt(raw) {
		n = c.N
	}
	return n
}

// answer answers the waiting questions, and ends when none has come for a while.
func (a *Answering) answer(wake <-chan struct{}) {
	var now *output.ScreenAt
	defer func() {
		if now != nil {
			now.Close()
		}
	}()
	for a.pause(answererIdle, wake) {
		for q, ok := a.nextQuestion(); ok; q, ok = a.nextQuestion() {
			a.allowance()
			if !a.stillAsked(&q) {
				continue
			}
			if now == nil {
				var err error
				if now, err = a.of.Screen(); err != nil {
					continue
				}
			}
			now.Until(q.end)
			if text := q.answer(now.Is); text != "" {
				a.given[a.next], a.next = time.Now(), (a.next+1)%answersPerSecond
				a.of.Reply(text)
			}
		}
	}
}

// nextQuestion takes the next question that waits.
func (a *Answering) nextQuestion() (q question, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 || a.isOver() {
		return question{}, false
	}
	q = a.waiting[0]
	a.waiting = slices.Delete(a.waiting, 0, 1)
	return q, true
}

// isOver reports whether the terminal has ended, or another daemon controls it.
func (a *Answering) isOver() bool {
	ended, left := a.of.Over()
	select {
	case <-ended:
	case <-left:
	default:
		return false
	}
	return true
}

// pause waits for d, or for wake. If neither wake nor a further question comes, or the
// terminal has ended, the answering ends, and pause returns false.
func (a *Answering) pause(d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	ended, left := a.of.Over()
	over := true
	select {
	case <-wake:
		return true
	case <-timer.C:
		over = false
	case <-ended:
	case <-left:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if over || len(a.waiting) == 0 {
		a.running, a.waiting = false, nil
		return false
	}
	return true
}

// wait waits for d, or less if the terminal ends.
func (a *Answering) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	ended, left := a.of.Over()
	select {
	case <-timer.C:
	case <-ended:
	case <-left:
	}
}

// stillAsked reports whether the program that has asked waits for the answer, as far as
// that can be known.
func (a *Answering) stillAsked(q *question) bool {
	front, ok := a.readsKeys(q)
	if !ok || !a.settle(q) {
		return false
	}
	again, ok := a.readsKeys(q)
	return ok && again == front
}

// readsKeys reports whether the program that has asked reads keys, and returns its
// process group.
func (a *Answering) readsKeys(q *question) (front int, ok bool) {
	a.mu.Lock()
	same := a.commandAt(a.log.End()) == q.command
	a.mu.Unlock()
	if !same {
		return 0, false
	}
	return a.of.ReadsKeys()
}

// settle waits until it is known whether the program waits for the answer. It reports
// false if it has printed text instead, on the main screen.
func (a *Answering) settle(q *question) bool {
	for began := time.Now(); ; a.wait(settleQuiet / 4) {
		alt, quiet := a.of.Shows()
		switch {
		case alt:
			return true
		case a.printed(q.end):
			return false
		case quiet >= settleQuiet, time.Since(began) >= settleMost:
			return true
		}
	}
}

// mostPrinted bounds the output behind a question that is searched for text, in bytes.
// There is text in more.
const mostPrinted = 8 << 10

// printed reports whether text was printed behind a raw offset.
func (a *Answering) printed(from int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if from < a.log.Start() || a.log.End()-from > mostPrinted {
		return true
	}
	p := make([]byte, a.log.End()-from)
	p = p[:a.log.ReadAt(p, from)]
	var s escape.Scanner
	return slices.ContainsFunc(p, func(c byte) bool { return s.Next(c) == escape.Text && (c >= ' ' || c == '\n') })
}

// allowance waits until another answer may be given. Only answer calls it.
func (a *Answering) allowance() {
	if left := time.Second - time.Since(a.given[a.next]); left > 0 {
		a.wait(left)
	}
}
