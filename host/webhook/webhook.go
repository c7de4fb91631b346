package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/bounded"
	"tether/internal/change"
	"tether/internal/deliver"
	"tether/internal/jsonspan"
	"tether/internal/retry"
)

// Bounds of subscriptions.
const (
	MaxOfOne      = 64       // of one principal
	maxAll        = 1024     // of all
	maxArguments  = 16 << 10 // bytes
	MinTTL        = time.Minute
	MaxTTL        = 24 * time.Hour // also the default
	keepEnded     = 10 * time.Minute
	verifiedTime  = 24 * time.Hour // how long a receiver's proof is valid
	oldSecretTime = 10 * time.Minute
)

// Event is the next step of a Source: an occurrence, a gap, or, with neither, only
// progress.
type Event struct {
	ID   string // of an occurrence: visible ASCII without a dot, at most 128 bytes
	Body []byte // of an occurrence: JSON of at most 256 KiB
	Gap  bool   // events before Cursor were lost
	// Cursor is the position after the step; nil: this kind of events has no cursors.
	Cursor *string
}

// Source is a stream of events of one subscription. Its methods are called by one
// goroutine.
type Source interface {
	// Next blocks until there is a step. An *EndedError means that the subscription is
	// over; another error is that of ctx.
	Next(context.Context) (Event, error)
	// Cursor returns the position at which the source begins; nil: this kind of events
	// has no cursors.
	Cursor() *string
	Close()
}

// EndedError is the end of a subscription. Object is the error object for the receiver;
// with nil, no more events can follow and the receiver is told nothing.
type EndedError struct{ Object json.RawMessage }

// Error implements error.
func (e *EndedError) Error() string { return "the subscription is over" }

// Request is a subscription as a client asks for it, with its members' meaning in MCP.
type Request struct {
	Name      string
	Arguments json.RawMessage
	URL       string
	Secret    string
	Cursor    *string
	MaxAge    time.Duration // 0: any
	TTL       time.Duration // 0: the default
	Kinds     []string      // of a browser's subscription, in place of Name and Arguments
	Terminals []string      // of a browser's subscription; empty: all
	Declared  bool          // the client knows the error codes of the extension, not those of its earlier draft
}

// Answer is the answer to the client.
type Answer struct {
	ID            string
	RefreshBefore time.Time
	Cursor        *string
	Truncated     bool
	Status        *Status // of a subscription that existed already
}

// Status is the state of deliveries.
type Status struct {
	Active         bool       `json:"active"`
	LastDeliveryAt *time.Time `json:"lastDeliveryAt,omitempty"`
	LastError      string     `json:"lastError,omitempty"` // a Failure
	FailedSince    *time.Time `json:"failedSince,omitempty"`
}

// Failure is why a receiver was not reached or did not take an event, in MCP's words.
type Failure = deliver.Failure

// The failures.
const (
	FailureRefused           = deliver.Refused
	FailureTimeout           = deliver.Timeout
	FailureTLS               = deliver.TLS
	Failure4xx               = deliver.HTTP4xx
	Failure5xx               = deliver.HTTP5xx
	FailureChallenge Failure = "challenge_failed"
)

// Errors of Subscribe and Unsubscribe.
var (
	// ErrNotFound: there is no such subscription.
	ErrNotFound = errors.New("no such subscription")
	// ErrTooMany: the principal, or all principals together, have the maximum.
	ErrTooMany = errors.New("too many webhook subscriptions")
)

// InvalidError says which member of a request is wrong, and how.
type InvalidError struct{ Field, Reason string }

// Error implements error.
func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// EndpointError says that the receiver has not proved that it wants events.
type EndpointError struct{ Why Failure }

// Error implements error.
func (e *EndpointError) Error() string { return "the callback endpoint: " + string(e.Why) }

// Options are the settings of a Hub. Open is required.
type Options struct {
	// Open opens the source of a subscription for a principal, at a cursor or from now.
	// Subscribe returns its error.
	Open func(context.Context, rights.Principal, Request) (source Source, truncated bool, err error)
	// Find returns the principal of a name and role whose subscriptions were kept; ok is
	// false if it no longer exists.
	Find func(name string, role rights.Role) (p rights.Principal, ok bool)
	// Lasting returns a context that ends when a principal's name has no valid token any
	// more; nil means that it ends with Principal.Live. It is called while the hub runs.
	Lasting func(rights.Principal) context.Context
	// Place stores subscriptions and their secrets for the next host or leader; nil
	// stores none.
	Place access.Place
	// Push makes the hub notify browsers; nil means agents' receivers. Then Find and
	// Lasting are not used.
	Push *Push
	// Allow has networks in which receivers may be, in addition to publicly routed ones.
	// http is allowed if the URL names a loopback address in one of them.
	Allow []netip.Prefix
	TLS   *tls.Config // of connections to receivers; nil means Go's defaults

	Audit  func(rights.AuditEvent) // nil records nothing
	Logger *zerolog.Logger         // nil means silence
}

// Types of audit events.
const (
	AuditWebhook      = "webhook"       // a receiver was subscribed
	AuditWebhookEnded = "webhook_ended" // a subscription has ended
	AuditPush         = "push"          // a browser is notified from now on
	AuditPushEnded    = "push_ended"
)

// Hub has the subscriptions. It is safe for concurrent use.
type Hub struct {
	opts   Options
	log    zerolog.Logger
	guard  deliver.Guard
	client *http.Client
	slots  bounded.Slots  // of requests, by the receiver's host and by principal, so that a receiver that hangs does not delay others
	run    sync.WaitGroup // deliveries

	ended    bounded.Map[string, struct{}]  // ids of ended subscriptions
	verified bounded.Map[string, time.Time] // receivers of a principal, until their proof expires
	bursts   bounded.Rates                  // of notifications, by subscription
	asks     bounded.Rates                  // of challenges, by principal
	failures bounded.Rates                  // of challenges that have failed, by the receiver's host

	doc     access.Doc[store] // at Options.Place
	writing sync.Mutex        // held while the file is written

	mu      sync.Mutex
	asked   uint64          // number of calls of keep
	written uint64          // number of these calls that the file, or the write under way, covers
	ctx     context.Context // the context of Run; nil before and after
	all     map[string]*subscription
	changed chan struct{} // something must be written; holds one
}

// New returns a Hub with the subscriptions in the file. Deliveries begin with Run.
func New(o Options) (*Hub, error) {
	h := &Hub{opts: o, log: zerolog.Nop(), guard: deliver.Guard{Allow: o.Allow}, slots: bounded.Slots{All: maxDeliveries, Each: maxPerKey}, all: map[string]*subscription{},
		ended: bounded.Map[string, struct{}]{Most: maxAll}, verified: bounded.Map[string, time.Time]{Most: maxAll}, changed: make(chan struct{}, 1),
		bursts:   bounded.Rates{Burst: pushBurst, Every: pushEvery},
		asks:     bounded.Rates{Burst: challengeBurst, Every: time.Minute / challengeBurst},
		failures: bounded.Rates{Burst: failedBurst, Every: time.Hour / failedBurst}}
	if o.Logger != nil {
		h.log = *o.Logger
	}
	h.client = h.guard.Client(o.TLS)
	h.doc.At, h.doc.What, h.doc.Version = o.Place, "webhooks", storeVersion
	if o.Push != nil {
		h.doc.What = "notified browsers"
	}
	h.doc.Lost = func(why error) {
		h.log.Error().Err(why).Msgf("the kept %s cannot be used: clients subscribe again", h.doc.What)
	}
	return h, h.restore()
}

// Run delivers until ctx ends. It returns when no request is under way and everything is
// stored.
func (h *Hub) Run(ctx context.Context) {
	h.mu.Lock()
	h.ctx = ctx
	for _, s := range h.all {
		h.startLocked(s)
	}
	h.mu.Unlock()
	timer := time.NewTicker(time.Minute)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			h.mu.Lock()
			h.ctx = nil
			h.mu.Unlock()
			h.run.Wait()
			h.keep()
			return
		case <-timer.C:
			h.forget(time.Now())
		case <-h.changed:
			h.keep()
			retry.Wait(ctx, time.Second) // at most once a second
		}
	}
}

// Subscribe makes a subscription, or gives an existing one a new lifetime and secret. It
// waits for the receiver's answer to a challenge. Errors: *InvalidError, *EndpointError,
// ErrTooMany, ctx's, or that of Options.Open.
func (h *Hub) Subscribe(ctx context.Context, p rights.Principal, r Request) (Answer, error) {
	key, err := h.check(&r)
	if err != nil {
		return Answer{}, err
	}
	id := identify(p, r)
	if a, ok := h.refresh(id, r, key); ok {
		return a, nil
	}
	if err := h.room(p); err != nil {
		return Answer{}, err
	}
	source, truncated, err := h.opts.Open(ctx, p, r)
	if err != nil {
		return Answer{}, err
	}
	if err := h.verify(ctx, p, id, r.URL, key); err != nil {
		source.Close()
		return Answer{}, err
	}
	s := &subscription{id: id, principal: p, request: r, keys: []secretOf{{key: key}}, until: time.Now().Add(lifetime(r.TTL)), watermark: source.Cursor(), wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[id] != nil || h.ctx == nil {
		source.Close() // a concurrent request has made the same subscription, or the host ends
		return Answer{}, ErrTooMany
	}
	s.source = source
	h.all[id] = s
	h.startLocked(s)
	h.changedLocked()
	h.audit(AuditWebhook, s, "subscribed")
	return Answer{ID: id, RefreshBefore: s.until, Cursor: s.watermark, Truncated: truncated}, nil
}

// check checks a request against the bounds, and converts its URL and arguments to their
// canonical forms.
func (h *Hub) check(r *Request) (key []byte, err error) {
	if key, err = secretKey(r.Secret); err != nil {
		return nil, &InvalidError{"delivery.secret", err.Error()}
	}
	if r.URL, err = h.guard.Check(r.URL); err != nil {
		return nil, &InvalidError{"delivery.url", err.Error()}
	}
	if len(r.Arguments) > maxArguments {
		return nil, &InvalidError{"arguments", fmt.Sprintf("longer than %d bytes", maxArguments)}
	}
	if r.Arguments, err = canonical(r.Arguments); err != nil {
		return nil, &InvalidError{"arguments", "not a JSON object"}
	}
	return key, nil
}

// canonical returns the canonical form of an object: equal objects become equal bytes.
func canonical(arguments json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(arguments)) == 0 || string(bytes.TrimSpace(arguments)) == "null" {
		return json.RawMessage("{}"), nil
	}
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	err := jsonspan.CheckText(arguments)
	if err == nil {
		err = d.Decode(&object)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(object) // sorts the keys
}

// identify returns the id of a subscription. It is the same for the same principal, URL,
// name and arguments, even after a restart.
func identify(p rights.Principal, r Request) string {
	sum := sha256.New()
	for _, part := range []string{string(p.Role), p.Name, p.Owner, r.URL, r.Name, string(r.Arguments)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return "sub_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:20]))
}

func lifetime(ttl time.Duration) time.Duration {
	if ttl == 0 {
		return MaxTTL
	}
	return min(max(ttl, MinTTL), MaxTTL)
}

// refresh gives an existing subscription a new lifetime and secret, and ends its
// suspension.
func (h *Hub) refresh(id string, r Request, key []byte) (Answer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.all[id]
	if s == nil {
		return Answer{}, false
	}
	s.refreshLocked(r, key)
	h.changedLocked()
	status := s.statusLocked()
	return Answer{ID: id, RefreshBefore: s.until, Cursor: s.watermark, Status: &status}, true
}

// room returns an error if the principal, or the hub, may not have another subscription.
func (h *Hub) room(p rights.Principal) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 0
	for _, s := range h.all {
		if s.principal.Name == p.Name && s.principal.Role == p.Role {
			own++
		}
	}
	if own >= MaxOfOne || len(h.all) >= maxAll {
		return ErrTooMany
	}
	return nil
}

// Unsubscribe ends a subscription. It is not an error if the subscription was removed or
// has expired in the last ten minutes.
func (h *Hub) Unsubscribe(p rights.Principal, r Request) error {
	var err error
	if r.URL, err = h.guard.Check(r.URL); err != nil {
		return &InvalidError{"delivery.url", err.Error()}
	}
	if r.Arguments, err = canonical(r.Arguments); err != nil {
		return &InvalidError{"arguments", "not a JSON object"}
	}
	id := identify(p, r)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.all[id]
	if s == nil {
		if _, was := h.ended.Get(id); was {
			return nil
		}
		return ErrNotFound
	}
	h.endLocked(s)
	h.audit(AuditWebhookEnded, s, "unsubscribed")
	return nil
}

// endLocked removes a subscription and stops its goroutine.
func (h *Hub) endLocked(s *subscription) {
	if h.all[s.id] != s {
		return
	}
	delete(h.all, s.id)
	h.ended.Put(s.id, struct{}{}, time.Now().Add(keepEnded))
	if s.stop != nil {
		s.stop()
	}
	h.changedLocked()
}

// forget drops subscriptions that have expired, and those of browsers whose logins are
// over.
func (h *Hub) forget(now time.Time) {
	var left []*subscription
	h.mu.Lock()
	for _, s := range h.all {
		if now.Before(s.until) {
			left = append(left, s)
			continue
		}
		h.endLocked(s)
		h.audit(h.endedKind(), s, "not refreshed in time")
	}
	h.mu.Unlock()
	if h.opts.Push == nil {
		return
	}
	for _, s := range left {
		h.standing(s)
	}
}

func (h *Hub) endedKind() string {
	if h.opts.Push != nil {
		return AuditPushEnded
	}
	return AuditWebhookEnded
}

// changedLocked makes Run write the subscriptions.
func (h *Hub) changedLocked() {
	change.Wake(h.changed)
}

// audit writes a record, with the host of the URL but never its path or a secret.
func (h *Hub) audit(kind string, s *subscription, detail string) {
	if h.opts.Audit != nil {
		h.opts.Audit(rights.AuditEvent{At: time.Now().UTC(), Type: kind, Name: s.principal.Name, Role: s.principal.Role, Detail: s.request.Name + " to " + deliver.HostOf(s.request.URL) + ": " + detail})
	}
}
