package notify

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"

	"tether/agent/config"
	"tether/events"
	"tether/internal/deliver"
)

// desktopTime bounds the time for showing one notification.
const desktopTime = 5 * time.Second

// Terminal is what a rule must know of a terminal.
type Terminal struct {
	Name     string   // as it is, not masked
	Owner    string   // "user" or "agent"
	Dirs     []string // absolute, under all their names
	Private  bool
	Attached bool      // the person is
	Typed    time.Time // when the person has typed last
}

// Options configures a Notifier. All but TLS and Desktop are required.
type Options struct {
	Rules   []config.Notify
	Machine string // its name, for titles
	Home    string // the person's home directory, "" if it is not known
	// Events returns an engine over the person's terminals that masks as for hosts, and
	// what closes it. It is called only if there are rules.
	Events func() (*events.Engine, func())
	Find   func(id string) (Terminal, bool)
	Hosts  func() []Host
	// Desktop shows a text on the person's desktop; nil means that there is none.
	Desktop   func(ctx context.Context, title, body string) error
	Receivers *Receivers
	// Report shows in status that something does not work, or with "" that it works.
	Report func(cause, text string)
	Audit  func(what string)
	Keep   string      // the file for messages that were not sent when the daemon ends
	TLS    *tls.Config // of connections to receivers, for tests; nil means Go's defaults
}

// Notifier tells the person. It is safe for concurrent use.
//
// Goroutines, which have ended when Run returns: one per condition of the rules, those of
// the engine of events, one for hosts, and one per receiver with messages.
type Notifier struct {
	opts      Options
	client    *http.Client
	awayAfter time.Duration // awayAfter, except in tests
	began     time.Time     // when Run was called

	mu      sync.Mutex
	ctx     context.Context // of Run; nil before and after
	running sync.WaitGroup
	senders map[string]*sender
}

// New returns a Notifier that tells nothing until Run.
func New(o Options) *Notifier {
	return &Notifier{opts: o, client: deliver.Guard{Any: true}.Client(o.TLS), awayAfter: awayAfter, senders: map[string]*sender{}}
}

// Run tells the person until ctx ends. It begins with what happens now: old news is none.
func (t *Notifier) Run(ctx context.Context) {
	t.began = time.Now()
	t.mu.Lock()
	t.ctx = ctx
	t.mu.Unlock()
	var rules, away []*rule
	for _, n := range t.opts.Rules {
		r := &rule{Notify: n, title: fmt.Sprintf("tether: %s on %s", n.Name, t.opts.Machine), send: t.send}
		rules = append(rules, r)
		if n.Tells(config.NotifyAway) {
			away = append(away, r)
		}
	}
	t.recall(rules)
	t.reportUnknown()
	if len(away) > 0 {
		t.running.Go(func() { t.hosts(ctx, away) })
	}
	if watched := conditions(rules); len(watched) > 0 {
		engine, done := t.opts.Events()
		defer done()
		for _, c := range watched {
			t.running.Go(func() {
				if err := engine.Stream(ctx, &c.request, watcher{c, t}); err != nil && ctx.Err() == nil {
					t.opts.Report("notify", fmt.Sprintf("the rule %s does not work: %v", c.rules[0].Name, err))
				}
			})
		}
	}
	<-ctx.Done()
	t.mu.Lock()
	t.ctx = nil
	t.mu.Unlock()
	t.running.Wait()
	t.remember(rules)
}

// cause names, in status, the fault of a receiver.
func cause(name string) string { return "notify " + name }

// unknown says why nothing can be sent to a receiver; "" if something can.
func (t *Notifier) unknown(name string) string {
	switch {
	case name == config.NotifyDesktop && t.opts.Desktop == nil:
		return "there is no desktop here to show notifications on; give a URL instead: tether notify add NAME"
	case name != config.NotifyDesktop && !t.opts.Receivers.has(name):
		return fmt.Sprintf("a rule sends to %s, which has no URL: tether notify add %[1]s", name)
	}
	return ""
}

// reportUnknown shows in status the receivers of rules that are missing.
func (t *Notifier) reportUnknown() {
	for _, n := range t.opts.Rules {
		if text := t.unknown(n.To); text != "" {
			t.opts.Report(cause(n.To), text)
		}
	}
}

// send queues a message for the receiver of its rule.
func (t *Notifier) send(m message) {
	for _, n := range t.opts.Rules {
		if n.Name == m.Rule {
			t.to(n.To).put(m)
		}
	}
}

// to returns the sender for a receiver.
func (t *Notifier) to(name string) *sender {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.senders[name]
	if s == nil {
		s = &sender{name: name, run: t.run, report: func(text string) { t.opts.Report(cause(name), text) },
			try: func(ctx context.Context, m message) deliver.Result { return t.try(ctx, name, &m) }}
		t.senders[name] = s
	}
	return s
}

// run starts a goroutine that ends with Run.
func (t *Notifier) run(f func(context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx == nil || t.ctx.Err() != nil {
		return false
	}
	ctx := t.ctx
	t.running.Go(func() { f(ctx) })
	return true
}

// try sends a message to a receiver once.
func (t *Notifier) try(ctx context.Context, name string, m *message) deliver.Result {
	if name == config.NotifyDesktop {
		return t.show(ctx, m)
	}
	r, err := t.opts.Receivers.get(name)
	if err != nil {
		return deliver.Result{Failure: failureURL}
	}
	q, err := m.request(ctx, r)
	if err != nil {
		return deliver.Result{Failure: failureURL}
	}
	return deliver.Send(t.client, q, maxAnswer)
}

// Failures of this package.
const (
	failureDesktop deliver.Failure = "desktop"
	failureURL     deliver.Failure = "url"
)

// show shows a message on the desktop.
func (t *Notifier) show(ctx context.Context, m *message) deliver.Result {
	if t.opts.Desktop == nil {
		return deliver.Result{Failure: failureDesktop}
	}
	ctx, cancel := context.WithTimeout(ctx, desktopTime)
	defer cancel()
	if t.opts.Desktop(ctx, m.Title, m.Text) != nil {
		return deliver.Result{Failure: failureDesktop}
	}
	return deliver.Result{}
}
