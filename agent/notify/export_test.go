package notify

import (
	"context"
	"net/http"
	"time"

	"tether/agent/config"
	"tether/events"
	"tether/internal/deliver"
)

// Message is message.
type Message = message

// Bounds, for tests.
const (
	Gather   = gather
	Apart    = apart
	GiveUp   = giveUp
	MaxQueue = maxQueue
	MaxText  = maxText
)

// Rule is a rule alone.
type Rule struct{ *rule }

// NewRule returns a rule that sends to send.
func NewRule(n config.Notify, send func(Message)) Rule { return Rule{&rule{Notify: n, send: send}} }

// Add is rule.add.
func (r Rule) Add(text string) { r.add(text) }

// Hand passes what the rule knows to the rule of the next daemon.
func (r Rule) Hand(next Rule) { next.resume(r.end()) }

// Sender is a sender alone.
type Sender struct{ *sender }

// NewSender returns a sender that runs until ctx ends.
func NewSender(ctx context.Context, name string, try func(context.Context, Message) deliver.Result, report func(string)) Sender {
	return Sender{&sender{name: name, try: try, report: report, run: func(f func(context.Context)) bool {
		go f(ctx)
		return true
	}}}
}

// Put is sender.put.
func (s Sender) Put(m Message) { s.put(m) }

// Again is sender.again.
func (s Sender) Again() { s.again() }

// Left is how many messages wait.
func (s Sender) Left() int { return len(s.left()) }

// Request is message.request.
func Request(ctx context.Context, m Message, url string, form Form) (*http.Request, error) {
	return m.request(ctx, receiver{Name: "phone", URL: url, Form: form})
}

// Guess is guess.
var Guess = guess

// Told returns what an event adds to a rule.
func Told(n config.Notify, home string, began time.Time, find func(string) (Terminal, bool), ev events.Event) []string {
	t := New(Options{Home: home, Find: find})
	t.began = began
	r := &rule{Notify: n}
	for _, c := range conditions([]*rule{r}) {
		if c.request.Name == ev.Name {
			_ = watcher{c, t}.Event(ev) // never fails
		}
	}
	return r.end().Lines
}

// Hosts runs the look at hosts for a rule that adds to said, until ctx ends.
func Hosts(ctx context.Context, o Options, said func(string)) {
	r := &rule{Notify: config.Notify{Name: "away"}, send: func(m message) { said(m.Text) }}
	New(o).hosts(ctx, []*rule{r})
	r.end()
}

// Put is put.
func (s *Receivers) Put(name, url string, form Form) error { return s.put(name, url, form) }

// Remove is remove.
func (s *Receivers) Remove(name string) error { return s.remove(name) }

// URL returns the URL of a name.
func (s *Receivers) URL(name string) (string, error) {
	r, err := s.get(name)
	return r.URL, err
}

// AwaySoon makes a host away after d.
func (n *Notifier) AwaySoon(d time.Duration) { n.awayAfter = d }
