package term

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/agent/output"
	"tether/internal/change"
	"tether/internal/escape"
	"tether/screen"
	"tether/shellint"
)

// answering decides who answers what a program asks its terminal: the attached terminal
// whose person typed last, before that the first one. With none, this process answers, in
// fixed forms that contain nothing of what was printed. Guarded by the terminal's mutex.
//
//	question ──a seat──▶ the seat's terminal has it as output
//	   ├──(a seat is expected)──▶ nobody; its terminal gets the output when it comes
//	   └──▶ waiting ──answer: still in place, and the program reads keys as they come──▶ input
type answering struct {
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

// question is a question that this process may answer.
type question struct {
	kind     shellint.Query
	off, end int64
	text     string // the sequence
	command  int    // number of the shell's command that was running, 0: none
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

// expectSeatLocked leaves questions to a terminal that will be attached.
func (t *Terminal) expectSeatLocked() { t.answering.until = time.Now().Add(seatWithin) }

// askedLocked takes the questions of the last scan.
func (t *Terminal) askedLocked(found *shellint.Result, now time.Time) {
	a := &t.answering
	if t.origin.adopted != nil {
		return // the multiplexer answers
	}
	for i := range found.Marks {
		m := &found.Marks[i]
		if m.Kind != shellint.KindQuery || t.log.Restoring() || len(a.seats) > 0 || now.Before(a.until) {
			continue
		}
		a.dealt = m.End
		if _, ok := t.pty.(looker); !ok || len(a.waiting) >= maxQuestions || !answerable(m.Query) {
			continue
		}
		text := make([]byte, min(m.End-m.Off, 32))
		text = text[:t.log.ReadAt(text, m.Off)]
		a.waiting = append(a.waiting, question{m.Query, m.Off, m.End, string(text), t.commandLocked(m.Off)})
		if !a.running {
			a.running, a.wake = true, make(chan struct{}, 1)
			go t.answer(a.wake)
		}
		change.Wake(a.wake)
	}
}

func answerable(q shellint.Query) bool {
	switch q {
	case shellint.QueryDA1, shellint.QueryStatus, shellint.QueryCursor, shellint.QueryMode, shellint.QueryKeyboard, shellint.QueryVersion, shellint.QueryColour:
		return true
	}
	return false
}

// commandLocked returns the number of the innermost command that runs at a raw offset; 0:
// none.
func (t *Terminal) commandLocked(raw int64) (n int) {
	for _, c := range t.log.OpenAt(raw) {
		n = c.N
	}
	return n
}

// answer answers the waiting questions, and ends when none has come for a while.
func (t *Terminal) answer(wake <-chan struct{}) {
	var now *output.ScreenAt
	defer func() {
		if now != nil {
			now.Close()
		}
	}()
	for t.pause(answererIdle, wake) {
		for q, ok := t.nextQuestion(); ok; q, ok = t.nextQuestion() {
			t.allowance()
			if !t.stillAsked(&q) {
				continue
			}
			if now == nil {
				var err error
				if now, err = (Handle{t: t, actor: User}).OldestScreen(); err != nil {
					continue
				}
			}
			now.Until(q.end)
			if text := q.answer(now.Is); text != "" {
				t.reply(text)
			}
		}
	}
}

// nextQuestion takes the next question that waits.
func (t *Terminal) nextQuestion() (q question, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := &t.answering
	if len(a.waiting) == 0 || t.ending.exit != nil || t.life.isLeaving() {
		return question{}, false
	}
	q = a.waiting[0]
	a.waiting = slices.Delete(a.waiting, 0, 1)
	return q, true
}

// pause waits for d, or for wake. If neither wake nor a further question comes, or the
// terminal has ended, the answering ends, and pause returns false.
func (t *Terminal) pause(d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	over := true
	select {
	case <-wake:
		return true
	case <-timer.C:
		over = false
	case <-t.life.done:
	case <-t.life.leaving:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := &t.answering; over || len(a.waiting) == 0 {
		a.running, a.waiting = false, nil
		return false
	}
	return true
}

// wait waits for d, or less if the terminal ends.
func (t *Terminal) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.life.done:
	case <-t.life.leaving:
	}
}

// stillAsked reports whether the program that has asked waits for the answer, as far as
// that can be known.
func (t *Terminal) stillAsked(q *question) bool {
	front, ok := t.readsKeys(q)
	if !ok || !t.settle(q) {
		return false
	}
	again, ok := t.readsKeys(q)
	return ok && again == front
}

// readsKeys reports whether the program in the foreground reads keys without line editing
// and echo, and returns its process group. A program that passes them on to an unknown
// reader elsewhere does so only on the alternate screen.
func (t *Terminal) readsKeys(q *question) (front int, ok bool) {
	t.mu.Lock()
	e := t.evidenceLocked()
	same := t.commandLocked(t.log.End()) == q.command
	t.mu.Unlock()
	t.lookInto(&e)
	return e.look.Front, same && e.looked && !e.look.Lines && !e.look.Echo && (e.alt || !e.isRelay())
}

// settle waits until it is known whether the program waits for the answer. It reports
// false if it has printed text instead, on the main screen.
func (t *Terminal) settle(q *question) bool {
	for began := time.Now(); ; t.wait(settleQuiet / 4) {
		t.mu.Lock()
		t.findModesLocked()
		alt, quiet := t.attention.alt, time.Since(t.activity.printed)
		text := !alt && t.printedLocked(q.end)
		t.mu.Unlock()
		switch {
		case alt:
			return true
		case text:
			return false
		case quiet >= settleQuiet, time.Since(began) >= settleMost:
			return true
		}
	}
}

// printedLocked reports whether text was printed behind a raw offset.
func (t *Terminal) printedLocked(from int64) bool {
	log := t.log
	if from < log.Start() || log.End()-from > promptTail {
		return true
	}
	p := make([]byte, log.End()-from)
	p = p[:log.ReadAt(p, from)]
	var s escape.Scanner
	return slices.ContainsFunc(p, func(c byte) bool { return s.Next(c) == escape.Text && (c >= ' ' || c == '\n') })
}

// allowance waits until another answer may be given. Only answer calls it, and reply.
func (t *Terminal) allowance() {
	a := &t.answering
	if left := time.Second - time.Since(a.given[a.next]); left > 0 {
		t.wait(left)
	}
}

// answer returns the answer to a question, in a fixed form, "" if there is none. now is
// the screen at the question.
func (q *question) answer(now *screen.Screen) string {
	private := ""
	if strings.Contains(q.text, "?") {
		private = "?"
	}
	switch q.kind {
	case shellint.QueryDA1:
		return "\x1b[?62;22c"
	case shellint.QueryStatus:
		return "\x1b[0n"
	case shellint.QueryCursor:
		col, row := now.Cursor()
		return fmt.Sprintf("\x1b[%s%d;%dR", private, row+1, col+1)
	case shellint.QueryMode:
		n, err := strconv.Atoi(strings.Trim(q.text, "\x1b\u009b[?$p"))
		if err != nil || n < 0 || n > 65535 {
			return ""
		}
		return fmt.Sprintf("\x1b[%s%d;%d$y", private, n, now.Mode(n, private != ""))
	case shellint.QueryKeyboard:
		return fmt.Sprintf("\x1b[?%du", now.KeyboardFlags())
	case shellint.QueryVersion:
		return "\x1bP>|tether\x1b\\"
	}
	return q.colour()
}

// colour answers for the colours of text and background: white on black, as most
// terminals are.
func (q *question) colour() string {
	for _, c := range [...]struct{ ask, answer string }{{"10;?", "\x1b]10;rgb:ffff/ffff/ffff"}, {"11;?", "\x1b]11;rgb:0000/0000/0000"}} {
		for _, intro := range []string{"\x1b]", "\u009d"} {
			switch q.text {
			case intro + c.ask + "\a":
				return c.answer + "\a"
			case intro + c.ask + "\x1b\\", intro + c.ask + "\u009c":
				return c.answer + "\x1b\\"
			}
		}
	}
	return ""
}

// reply puts an answer into the input. It counts as nobody's typing.
func (t *Terminal) reply(text string) {
	t.mu.Lock()
	q, a := &t.input, &t.answering
	a.given[a.next], a.next = time.Now(), (a.next+1)%answersPerSecond
	if q.closed || len(q.waiting)+len(text) > maxInput {
		t.mu.Unlock()
		return
	}
	q.waiting = append(q.waiting, text...)
	types := !q.typing
	q.typing = true
	t.mu.Unlock()
	if types {
		t.typeNow()
	}
}
