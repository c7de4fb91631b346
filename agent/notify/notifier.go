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
func (n *Notifier) Run(ctx context.Context) {
	n.began = time.Now()
	n.mu.Lock()
	n.ctx = ctx
	n.mu.Unlock()
	var rules, away []*rule
	for _, one := range n.opts.Rules {
		r := &rule{Notify: one, title: fmt.Sprintf("tether: %s on %s", one.Name, n.opts.Machine), send: n.send}
		rules = append(rules, r)
		if one.Tells(config.NotifyAway) {
			away = append(away, r)
		}
	}
	n.recall(rules)
	n.reportUnknown()
	if len(away) > 0 {
		n.running.Go(func() { n.hosts(ctx, away) })
	}
	if watched := conditions(rules); len(watched) > 0 {
		engine, done := n.opts.Events()
		defer done()
		for _, c := range watched {
			n.running.Go(func() {
				if err := engine.Stream(ctx, &c.request, watcher{c, n}); err != nil && ctx.Err() == nil {
					n.opts.Report("notify", fmt.Sprintf("the rule %s does not work: %v", c.rules[0].Name, err))
				}
			})
		}
	}
	<-ctx.Done()
	n.mu.Lock()
	n.ctx = nil
	n.mu.Unlock()
	n.running.Wait()
	n.remember(rules)
}

// cause names, in status, the fault of a receiver.
func cause(name string) string { return "notify " + name }

// unknown says why nothing can be sent to a receiver; "" if something can.
func (n *Notifier) unknown(name string) string {
	switch {
	case name == config.NotifyDesktop && n.opts.Desktop == nil:
		return "there is no desktop here to show notifications on; give a URL instead: tether notify add NAME"
	case name != config.NotifyDesktop && !n.opts.Receivers.has(name):
		return fmt.Sprintf("a rule sends to %s, which has no URL: tether notify add %[1]s", name)
	}
	return ""
}

// reportUnknown shows in status the receivers of rules that are missing.
func (n *Notifier) reportUnknown() {
	for _, one := range n.opts.Rules {
		if text := n.unknown(one.To); text != "" {
			n.opts.Report(cause(one.To), text)
		}
	}
}

// send queues a message for the receiver of its rule.
func (n *Notifier) send(m message) {
	for _, one := range n.opts.Rules {
		if one.Name == m.Rule {
			n.to(one.To).put(m)
		}
	}
}

// to returns the sender for a receiver.
func (n *Notifier) to(name string) *sender {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.senders[name]
	if s == nil {
		s = &sender{name: name, run: n.run, report: func(text string) { n.opts.Report(cause(name), text) },
			try: func(ctx context.Context, m message) deliver.Result { return n.try(ctx, name, &m) }}
		n.senders[name] = s
	}
	return s
}

// run starts a goroutine that ends with Run.
func (n *Notifier) run(f func(context.Context)) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx == nil || n.ctx.Err() != nil {
		return false
	}
	ctx := n.ctx
	n.running.Go(func() { f(ctx) })
	return true
}

// try sends a message to a receiver once.
func (n *Notifier) try(ctx context.Context, name string, m *message) deliver.Result {
	if name == config.NotifyDesktop {
		return n.show(ctx, m)
	}
	r, err := n.opts.Receivers.get(name)
	if err != nil {
		return deliver.Result{Failure: failureURL}
	}
	q, err := m.request(ctx, r)
	if err != nil {
		return deliver.Result{Failure: failureURL}
	}
	return deliver.Send(n.client, q, maxAnswer)
}

// Failures of this package.
const (
	failureDesktop deliver.Failure = "desktop"
	failureURL     deliver.Failure = "url"
)

// show shows a message on the desktop.
func (n *Notifier) show(ctx context.Context, m *message) deliver.Result {
	if n.opts.Desktop == nil {
		return deliver.Result{Failure: failureDesktop}
	}
	ctx, cancel := context.WithTimeout(ctx, desktopTime)
	defer cancel()
	if n.opts.Desktop(ctx, m.Title, m.Text) != nil {
		return deliver.Result{Failure: failureDesktop}
	}
	return deliver.Result{}
}
