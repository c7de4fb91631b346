package notify

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"tether/agent/config"
	"tether/internal/clip"
)

const (
	// gather is how long a rule waits for more news after the first.
	gather = 3 * time.Second
	// apart is the shortest time between two messages of a rule.
	apart = 15 * time.Second
	// maxLines and maxLine bound what a message says of a burst; maxLine in characters.
	maxLines = 5
	maxLine  = 200
)

// rule gathers news into messages. Its timer runs only while there is news.
type rule struct {
	config.Notify
	title string
	send  func(message)

	mu    sync.Mutex
	lines []string  // of the first news, and of the last one if there was more
	count int       // of all news
	since time.Time // of the first news
	timer *time.Timer
	sent  []time.Time // times of messages in the last hour, the oldest first
	ended bool
}

// add adds news.
func (r *rule) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if r.count++; len(r.lines) == maxLines {
		r.lines = r.lines[:maxLines-1]
	}
	r.lines = append(r.lines, text)
	if r.count == 1 {
		r.beginLocked()
	}
}

// beginLocked starts the timer for the first news.
func (r *rule) beginLocked() {
	now := time.Now()
	r.since = now
	r.timer = time.AfterFunc(r.dueLocked(now).Sub(now), r.flush)
}

// dueLocked returns when the news may be sent.
func (r *rule) dueLocked(now time.Time) time.Time {
	due := r.since.Add(gather)
	for len(r.sent) > 0 && now.Sub(r.sent[0]) >= time.Hour {
		r.sent = r.sent[1:]
	}
	if n := len(r.sent); n > 0 {
		if next := r.sent[n-1].Add(apart); next.After(due) {
			due = next
		}
		if most := cmp.Or(r.PerHour, config.NotifyPerHour); n >= most {
			if next := r.sent[n-most].Add(time.Hour); next.After(due) {
				due = next
			}
		}
	}
	if due.Before(now) {
		due = now
	}
	due, _ = r.QuietUntil(due.Local())
	return due
}

// flush sends the news, or waits on: the machine may have slept, and its clock may have
// been set.
func (r *rule) flush() {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	now := time.Now()
	if wait := r.dueLocked(now).Sub(now); wait > 0 {
		r.timer.Reset(wait)
		r.mu.Unlock()
		return
	}
	m := message{Rule: r.Name, Title: r.title, Text: summary(r.lines, r.count), At: now, Count: r.count}
	r.lines, r.count = nil, 0
	r.sent = append(r.sent, now)
	r.mu.Unlock()
	r.send(m)
}

// keptRule is what the next daemon must know of a rule: news that was not sent, and when
// messages were.
type keptRule struct {
	Lines []string    `json:"lines,omitempty"`
	Count int         `json:"count,omitempty"`
	Sent  []time.Time `json:"sent,omitempty"`
}

// end stops the rule, and returns what the next daemon must know.
func (r *rule) end() keptRule {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
	return keptRule{r.lines, r.count, r.sent}
}

// resume goes on from what end has returned.
func (r *rule) resume(k keptRule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = k.Sent
	if len(k.Lines) > 0 {
		r.lines, r.count = k.Lines, max(k.Count, len(k.Lines))
		r.beginLocked()
	}
}

// summary returns the text about news, of which lines has the first and the last.
func summary(lines []string, count int) string {
	if count == 1 {
		return clip.Chars(lines[0], maxText)
	}
	left := count - len(lines)
	shown := make([]string, 0, maxLines+1)
	for i, line := range lines {
		if left > 0 && i == len(lines)-1 {
			shown = append(shown, fmt.Sprintf("(%d left out)", left))
		}
		shown = append(shown, clip.Chars(line, min(maxLine, (maxText-40)/len(lines))))
	}
	return clip.Chars(strings.Join(shown, "\n"), maxText)
}
