package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tether/host"
	"tether/internal/jsonspan"
	"tether/internal/retry"
)

const maxBody = 256 << 10 // bytes of an event

// pauses are the pauses before each attempt to deliver an event. The first is short: a
// receiver may be busy with a refresh of its own.
var pauses = []time.Duration{0, 2 * time.Second, 15 * time.Second, 2 * time.Minute, 8 * time.Minute}

// message is one request to a receiver.
type message struct {
	principal    host.Principal
	url, id      string // id is the header webhook-id
	subscription string
	keys         [][]byte
	body         []byte
}

// post sends a signed message, and returns at most most bytes of the receiver's answer.
// failure is empty for a 2xx status. Otherwise unsure says that the receiver may have
// taken the message nevertheless.
func (h *Hub) post(ctx context.Context, m message, most int64) (status int, answer []byte, failure Failure, unsure bool) {
	done, err := h.slots.Take(ctx, "host "+hostOf(m.url), m.principal.Key())
	if err != nil {
		return 0, nil, FailureTimeout, false
	}
	defer done()
	now := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(m.body))
	if err != nil {
		return 0, nil, FailureRefused, false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "tether-host")
	r.Header.Set("webhook-id", m.id)
	r.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	r.Header.Set("webhook-signature", signatures(m.keys, m.id, now, m.body))
	r.Header.Set("X-MCP-Subscription-Id", m.subscription)
	got, err := h.client.Do(r)
	if err != nil {
		failure = failureOf(err)
		op, ok := errors.AsType[*net.OpError](err)
		return 0, nil, failure, failure != FailureTLS && !(ok && op.Op == "dial")
	}
	defer got.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(got.Body, most))
	switch {
	case got.StatusCode >= 500:
		failure = Failure5xx
	case got.StatusCode >= 300: // including redirects, which are never followed
		failure = Failure4xx
	case err != nil:
		failure = failureOf(err)
	}
	return got.StatusCode, answer, failure, got.StatusCode < 300
}

// failureOf returns why there was no answer. It contains no text from the endpoint.
func failureOf(err error) Failure {
	var wrong *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var name x509.HostnameError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &wrong), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &name):
		return FailureTLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return FailureTimeout
	}
	return FailureRefused
}

const (
	challengeBurst = 10 // of one principal at once, and the same number per minute
	failedBurst    = 120
)

// verify makes the receiver prove that it wants events, unless it has done so recently
// for the same principal.
func (h *Hub) verify(ctx context.Context, p host.Principal, id, target string, key []byte) error {
	who := p.Key()
	known := who + " " + target
	if _, ok := h.verified.Get(known); ok {
		return nil
	}
	if spent, _ := h.failures.Spent(hostOf(target)); spent || !h.asks.Allow(who) {
		return ErrTooMany
	}
	challenge := rand.Text() + rand.Text()
	body, _ := json.Marshal(map[string]string{"type": "verification", "challenge": challenge}) // strings always can be
	_, answer, failure, _ := h.post(ctx, message{p, target, "msg_verification_" + rand.Text(), id, [][]byte{key}, body}, maxChallenge)
	if err := ctx.Err(); err != nil {
		return err
	}
	var echo struct {
		Challenge string `json:"challenge"`
	}
	if failure == "" && (jsonspan.Unmarshal(answer, &echo) != nil || subtle.ConstantTimeCompare([]byte(echo.Challenge), []byte(challenge)) != 1) {
		failure = FailureChallenge
	}
	if failure != "" {
		h.failures.Allow(hostOf(target))
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
func (h *Hub) deliver(ctx context.Context, s *subscription, id string, body []byte, place *string, tries int) bool {
	h.mu.Lock()
	doubt := s.pending != nil // the receiver may have taken the event already
	h.mu.Unlock()
	for _, pause := range pauses[:tries] {
		if pause > 0 {
			pause = time.Duration(float64(pause) * (0.8 + 0.4*mrand.Float64()))
			if !retry.Wait(ctx, pause) {
				return false
			}
		}
		if ctx.Err() != nil {
			return false
		}
		if place != nil {
			h.setPending(s, &pending{id, place})
			h.keep()
		}
		lasting, end := attempt(ctx)
		status, _, failure, unsure := h.post(lasting, message{s.principal, s.request.URL, id, s.id, h.keys(s), body}, maxAnswer)
		end()
		if doubt = doubt || failure != "" && unsure; place != nil && failure != "" && !doubt {
			h.setPending(s, nil)
		}
		if ctx.Err() != nil && failure != "" {
			return false
		}
		h.note(s, failure)
		if failure == "" || status == http.StatusGone || status == http.StatusRequestEntityTooLarge {
			return true
		}
	}
	return true
}

// hostOf returns the host of a checked URL.
func hostOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Host
}
