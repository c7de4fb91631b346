package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/events"
	"tether/host/agents"
	"tether/host/login"
	"tether/host/page"
	"tether/host/rights"
	"tether/host/webpush"
	"tether/internal/clip"
	"tether/internal/deliver"
	"tether/internal/jsonspan"
	"tether/screen"
)

// Bounds of notifications.
const (
	MaxBrowsers  = 8                   // of one person; of more, the one that was unused for longest gets nothing more
	maxPushes    = 400                 // browsers in all, so that a document of 1 MiB has room for them
	pushTTL      = 30 * 24 * time.Hour // after the last use
	keepUnseen   = 12 * time.Hour      // by the push service
	pushBurst    = 20                  // of one browser at once, then one each pushEvery
	pushEvery    = 30 * time.Second
	maxNoteText  = 500 // characters
	maxNoteTitle = 100
)

// Push makes a Hub notify browsers through their vendors' push services. Such a Hub has
// no other receivers, and implements page.Pushes: each browser is one subscription, to
// events of some kinds. They begin when the Hub runs, and not where an earlier one has
// stopped: nobody wants to be called for what is long over.
type Push struct {
	SigningKey *webpush.Key
	Contact    string // see webpush.Message
	// Login and Sees are those of the host. Each delivery asks both.
	Login func(login.Browser) (p rights.Principal, ok bool)
	Sees  func(p rights.Principal, terminal string) bool
}

// pushed is what a subscription knows of its browser.
type pushed struct {
	page.PushBrowser
	Choice page.PushChoice `json:"choice"`
}

// Key implements page.Pushes.
func (h *Hub) Key() string { return h.opts.Push.SigningKey.Public() }

// Choose implements page.Pushes. It returns when a change is stored; what happens from
// then on counts.
func (h *Hub) Choose(ctx context.Context, b page.PushBrowser, c *page.PushChoice) (page.PushChoice, error) {
	var err error
	if b.To.Endpoint, err = h.guard.Check(b.To.Endpoint); err == nil {
		err = b.To.Check()
	}
	if err != nil {
		return page.PushChoice{}, &page.PushRefused{Why: "the browser's push service: " + err.Error()}
	}
	p, ok := h.opts.Push.Login(b.Login)
	if !ok {
		return page.PushChoice{}, &page.PushRefused{Why: "log in again"}
	}
	var next *subscription
	if c != nil && !c.None() {
		next = h.pushTo(p, pushed{b, *c}, time.Now().Add(pushTTL))
		if next.source, _, err = h.opts.Open(ctx, p, next.request); err != nil {
			return page.PushChoice{}, err
		}
	}
	got, err := h.choose(p, b, c, next)
	if err != nil && next != nil {
		next.source.Close()
	} else if err == nil {
		h.keep()
	}
	return got, err
}

// choose applies a choice; next is its subscription, or nil.
func (h *Hub) choose(p rights.Principal, b page.PushBrowser, c *page.PushChoice, next *subscription) (page.PushChoice, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := pushID(b.To.Endpoint)
	s := h.all[id]
	if s != nil && (s.principal.Key() != p.Key() || s.push.To != b.To) { // somebody else uses this browser now
		h.endLocked(s)
		h.audit(AuditPushEnded, s, "somebody else has logged in there")
		s = nil
	}
	switch {
	case s == nil && next == nil:
		return page.PushChoice{}, nil
	case c == nil:
		s.push.Login = b.Login
		s.wakeLocked(time.Now().Add(pushTTL))
		h.changedLocked()
		return s.push.Choice, nil
	case next == nil:
		h.endLocked(s)
		h.audit(AuditPushEnded, s, "switched off")
		return *c, nil
	case h.ctx == nil:
		return page.PushChoice{}, ErrTooMany // the host ends
	}
	if s != nil {
		h.endLocked(s)
	}
	if err := h.makeRoomLocked(p); err != nil {
		return page.PushChoice{}, err
	}
	h.all[id] = next
	h.startLocked(next)
	h.changedLocked()
	if s == nil {
		h.audit(AuditPush, next, "subscribed")
	}
	return *c, nil
}

// makeRoomLocked ends the subscription of a person's browser that was unused for longest,
// if there are too many.
func (h *Hub) makeRoomLocked(p rights.Principal) error {
	var own []*subscription
	for _, s := range h.all {
		if s.principal.Key() == p.Key() {
			own = append(own, s)
		}
	}
	if len(own) >= MaxBrowsers {
		oldest := slices.MinFunc(own, func(a, b *subscription) int { return a.until.Compare(b.until) })
		h.endLocked(oldest)
		h.audit(AuditPushEnded, oldest, "the person has more browsers")
	}
	if len(h.all) >= maxPushes {
		return &page.PushRefused{Why: "this host notifies as many browsers as it can"}
	}
	return nil
}

// pushTo returns the subscription of a browser.
func (h *Hub) pushTo(p rights.Principal, to pushed, until time.Time) *subscription {
	r := Request{Name: "push", URL: to.To.Endpoint, Kinds: to.Choice.Kinds}
	if !to.Choice.All {
		r.Terminals = to.Choice.Terminals
	}
	return &subscription{id: pushID(to.To.Endpoint), principal: p, request: r, until: until, push: &to, wake: make(chan struct{}, 1)}
}

// pushID returns the id of a browser's subscription. A browser has one, whoever uses it.
func pushID(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return "push_" + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// standing returns the present principal of a browser. If its login is over, so is its
// subscription.
func (h *Hub) standing(s *subscription) (rights.Principal, bool) {
	h.mu.Lock()
	login := s.push.Login
	h.mu.Unlock()
	p, ok := h.opts.Push.Login(login)
	if ok && p.Key() == s.principal.Key() {
		return p, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.push.Login.Until.Equal(login.Until) && h.all[s.id] == s { // it was not renewed meanwhile
		h.endLocked(s)
		h.audit(AuditPushEnded, s, "the login is over")
	}
	return p, false
}

// mayKnow reports whether a browser's person may know now what happens in a terminal.
func (h *Hub) mayKnow(s *subscription, terminal string) bool {
	p, ok := h.standing(s)
	return ok && h.opts.Push.Sees(p, terminal)
}

// note is a notification as the service worker of the page reads it.
type note struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	Tag   string `json:"tag"` // a later one with the same tag replaces it
	Open  string `json:"open"`

	terminal string
}

// pushEvent notifies a browser of an event that its person has chosen. It returns false
// if the subscription is over.
func (h *Hub) pushEvent(ctx context.Context, s *subscription, ev *Event) bool {
	n, ok := noteOf(ev.Body)
	if !ok {
		return true
	}
	if !h.bursts.Allow(s.id) {
		h.log.Info().Str("event", ev.ID).Msg("a browser is notified too often: this one is left out")
		return true
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(n); err != nil { // strings always can be
		return true
	}
	return h.deliver(ctx, s, message{id: ev.ID, body: text.Bytes(), terminal: n.terminal}, nil, deliver.Tries)
}

// noteOf returns the notification for an event; ok is false for one that is no news.
func noteOf(body []byte) (n note, ok bool) {
	var ev events.Event
	if jsonspan.Unmarshal(body, &ev) != nil {
		return n, false
	}
	text := func(key string) string { s, _ := ev.Data[key].(string); return s }
	if fresh, _ := ev.Data["new"].(float64); ev.Name == events.Problems && fresh == 0 {
		return n, false
	}
	name := text("name") // at a host, with the machine's
	n.terminal = text("terminalId")
	n.Title = clip.Chars(screen.Clean(name), maxNoteTitle)
	n.Text = clip.Chars(screen.Clean(strings.TrimPrefix(events.Text(&ev), name+": ")), maxNoteText)
	n.Tag, n.Open = n.terminal+" "+ev.Name, "/#"+n.terminal
	return n, n.terminal != ""
}

// pushRequest returns the request to the push service of the message's browser.
func (h *Hub) pushRequest(ctx context.Context, m message) (*http.Request, error) {
	sum := sha256.Sum256([]byte(m.terminal + m.id[:min(1, len(m.id))])) // an event's id begins with its kind
	return h.opts.Push.SigningKey.Request(ctx, m.to, webpush.Message{Text: m.body, TTL: keepUnseen, Topic: base64.RawURLEncoding.EncodeToString(sum[:12]), Contact: h.opts.Push.Contact})
}

// pushOver reports whether a push service's status ends the attempts to deliver. It may
// end the subscription, too.
func (h *Hub) pushOver(s *subscription, status int) bool {
	if status == http.StatusNotFound || status == http.StatusGone { // RFC 8030, section 7.3
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.all[s.id] == s {
			h.endLocked(s)
			h.audit(AuditPushEnded, s, "the push service does not know it any more")
		}
	}
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

// several is a Source of several streams. It has no cursors.
type several struct {
	steps  chan Event // unbuffered
	ended  chan error // holds one for each stream
	cancel context.CancelFunc
	run    sync.WaitGroup
}

// OpenKinds is Options.Open for a Hub that notifies browsers of a host's events.
func OpenKinds(d *agents.Door) func(context.Context, rights.Principal, Request) (Source, bool, error) {
	open := OpenAt(d)
	return func(ctx context.Context, p rights.Principal, r Request) (Source, bool, error) {
		s := &several{steps: make(chan Event), ended: make(chan error, len(r.Kinds))}
		var lasting context.Context
		lasting, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
		for _, kind := range r.Kinds {
			one := Request{Name: kind, Terminals: r.Terminals}
			if kind == events.Exited || kind == events.CommandFinished {
				one.Arguments = json.RawMessage(`{"failedOnly":true}`)
			}
			source, _, err := open(ctx, p, one)
			if err != nil {
				s.Close()
				return nil, false, err
			}
			s.run.Go(func() { s.pass(lasting, source) })
		}
		return s, false, nil
	}
}

// pass hands the steps of one stream to Next.
func (s *several) pass(ctx context.Context, from Source) {
	defer from.Close()
	for {
		ev, err := from.Next(ctx)
		if err != nil {
			s.ended <- err
			return
		}
		if ev.Body == nil {
			continue
		}
		ev.Cursor = nil
		select {
		case s.steps <- ev:
		case <-ctx.Done():
			return
		}
	}
}

// Next implements Source.
func (s *several) Next(ctx context.Context) (Event, error) {
	select {
	case ev := <-s.steps:
		return ev, nil
	case err := <-s.ended:
		return Event{}, err
	case <-ctx.Done():
		return Event{}, ctx.Err()
	}
}

// Cursor implements Source.
func (s *several) Cursor() *string { return nil }

// Close implements Source.
func (s *several) Close() { s.cancel(); s.run.Wait() }
