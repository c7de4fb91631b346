package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"tether/host/rights"
	"tether/host/webpush"
	"tether/internal/deliver"
	"tether/internal/jsonspan"
	"tether/internal/retry"
)

const maxBody = 256 << 10 // bytes of an event

// Bounds of requests and answers.
const (
	maxChallenge  = 64 << 10 // bytes read of the answer to a challenge
	maxAnswer     = 4 << 10  // of any other answer
	maxPerKey     = 8        // requests to one host, and of one principal, at a time
	maxDeliveries = 64       // requests at a time, of all subscriptions
)

// message is one request to a receiver.
type message struct {
	principal    rights.Principal
	url, id      string // id is the header webhook-id
	subscription string
	keys         [][]byte
	body         []byte
	to           webpush.Subscription // of a browser, in place of url and keys
	terminal     string               // whose event it is, if it is for a browser
	still        func() bool          // asked right before the request is sent; nil: it is sent
}

// withdrawal is why nothing was sent to somebody who may not know of it any more.
const withdrawal Failure = "withdrawn"

// post sends a signed message, and reads at most most bytes of the receiver's answer.
func (h *Hub) post(ctx context.Context, m message, most int64) deliver.Result {
	done, err := h.slots.Take(ctx, "host "+deliver.HostOf(m.url), m.principal.Key())
	if err != nil {
		return deliver.Result{Failure: FailureTimeout}
	}
	defer done()
	if m.still != nil && !m.still() {
		return deliver.Result{Failure: withdrawal}
	}
	r, err := h.request(ctx, m)
	if err != nil {
		return deliver.Result{Failure: FailureRefused}
	}
	r.Header.Set("User-Agent", "tether-host")
	return deliver.Send(h.client, r, most)
}

// request returns the request that sends a message.
func (h *Hub) request(ctx context.Context, m message) (*http.Request, error) {
	if h.opts.Push != nil {
		return h.pushRequest(ctx, m)
	}
	now := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("webhook-id", m.id)
	r.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	r.Header.Set("webhook-signature", signatures(m.keys, m.id, now, m.body))
	r.Header.Set("X-MCP-Subscription-Id", m.subscription)
	return r, nil
}

const (
	challengeBurst = 10 // of one principal at once, and the same number per minute
	failedBurst    = 120
)

// verify makes the receiver prove that it wants events, unless it has done so recently
// for the same principal.
func (h *Hub) verify(ctx context.Context, p rights.Principal, id, target string, key []byte) error {
	who := p.Key()
	known := who + " " + target
	if _, ok := h.verified.Get(known); ok {
		return nil
	}
	if spent, _ := h.failures.Spent(deliver.HostOf(target)); spent || !h.asks.Allow(who) {
		return ErrTooMany
	}
	challenge := rand.Text() + rand.Text()
	body, _ := json.Marshal(map[string]string{"type": "verification", "challenge": challenge}) // strings always can be
	got := h.post(ctx, message{principal: p, url: target, id: "msg_verification_" + rand.Text(), subscription: id, keys: [][]byte{key}, body: body}, maxChallenge)
	if err := ctx.Err(); err != nil {
		return err
	}
	var echo struct {
		Challenge string `json:"challenge"`
	}
	failure := got.Failure
	if failure == "" && (jsonspan.Unmarshal(got.Answer, &echo) != nil || subtle.ConstantTimeCompare([]byte(echo.Challenge), []byte(challenge)) != 1) {
		failure = FailureChallenge
	}
	if failure != "" {
		h.failures.Allow(deliver.HostOf(target))
		return &EndpointError{failure}
	}
	until := time.Now().Add(verifiedTime)
	h.verified.Put(known, until, until)
	return nil
}

// answerTime is how long an attempt continues after the end of its subscription or host.
// Otherwise a receiver that has just taken an event could get it again from the next
// host, which may combine it with later events under another id.
const answerTime = 2 * time.Second

// attempt returns a context that ends answerTime after ctx. The caller must call end.
func attempt(ctx context.Context) (lasting context.Context, end func()) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		retry.Wait(lasting, answerTime)
		cancel()
	})
	return lasting, func() {
		stop()
		cancel()
	}
}

// deliver sends one message of a subscription until it was taken, or all attempts have
// failed. It returns false if the subscription ends before. place is the position after
// the message's event, nil if it is not an event. While the receiver may have taken the
// event, the file says so.
func (h *Hub) deliver(ctx context.Context, s *subscription, m message, place *string, tries int) bool {
	m.url, m.subscription = s.request.URL, s.id
	h.mu.Lock()
	doubt := s.pending != nil // the receiver may have taken the event already
	h.mu.Unlock()
	var got deliver.Result
	for try := range tries {
		if !retry.Wait(ctx, deliver.Pause(try, got.After)) || ctx.Err() != nil {
			return false
		}
		if place != nil {
			h.setPending(s, &pending{m.id, place})
			h.keep()
		}
		m.principal, m.keys = s.principal, h.keys(s)
		if s.push != nil {
			m.to, m.still = s.push.To, func() bool { return h.mayKnow(s, m.terminal) }
		}
		lasting, end := attempt(ctx)
		got = h.post(lasting, m, maxAnswer)
		end()
		failure := got.Failure
		if doubt = doubt || failure != "" && got.Unsure; place != nil && failure != "" && !doubt {
			h.setPending(s, nil)
		}
		if ctx.Err() != nil && failure != "" {
			return false
		}
		if failure == withdrawal {
			return ctx.Err() == nil
		}
		h.note(s, failure)
		if s.push != nil && h.pushOver(s, got.Status) {
			return ctx.Err() == nil
		}
		if failure == "" || got.Status == http.StatusGone || got.Status == http.StatusRequestEntityTooLarge {
			return true
		}
	}
	return true
}
