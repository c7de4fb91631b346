package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"tether/events"
	"tether/host/rights"
	"tether/internal/change"
	"tether/internal/deliver"
	"tether/mcp"
)

// Suspension: if nearly all deliveries to a receiver fail for an hour, nothing is sent to
// it until its client refreshes the subscription.
const (
	suspendAfter  = time.Hour
	suspendTries  = 100
	suspendFailed = 0.95
)

// controlTries is how often the messages about a gap and the end of a subscription are
// tried.
const controlTries = 3

// subscription is one subscription of a principal. Hub.mu guards its fields, except for
// those that never change.
type subscription struct {
	id        string
	principal rights.Principal
	request   Request // the original request; its Secret and Cursor are not used

	push      *pushed    // of a browser's subscription, else nil; all but Login never changes
	keys      []secretOf // the newest first
	until     time.Time
	watermark *string  // position before which all events were taken, or given up after the last attempt
	pending   *pending // an event that the receiver may have taken although we have no answer; nil: none
	source    Source   // opened for the first delivery; belongs to the delivering goroutine from then on
	stop      context.CancelFunc
	wake      chan struct{} // a refresh has ended its suspension; holds one

	suspended   bool
	last        time.Time // time of the last successful delivery
	lastError   Failure
	failedSince time.Time
	window      time.Time // start of the period for which tries and failed count
	tries       int
	failed      int
}

// pending is an event that a receiver may have taken.
type pending struct {
	ID    string  `json:"id"`
	Place *string `json:"cursor"` // position after the event
}

// secretOf is a key, and until when it signs; zero: as long as the subscription exists.
type secretOf struct {
	key   []byte
	until time.Time
}

// refreshLocked applies a new request to the subscription.
func (s *subscription) refreshLocked(r Request, key []byte) {
	now := time.Now()
	if string(s.keys[0].key) != string(key) {
		s.keys[0].until = now.Add(oldSecretTime)
		s.keys = []secretOf{{key: key}, s.keys[0]}
	}
	s.wakeLocked(now.Add(lifetime(r.TTL)))
}

// wakeLocked gives the subscription a new end, and ends its suspension.
func (s *subscription) wakeLocked(until time.Time) {
	s.until = until
	s.suspended, s.window, s.tries, s.failed = false, time.Now(), 0, 0
	change.Wake(s.wake)
}

// statusLocked returns the state of deliveries for the client.
func (s *subscription) statusLocked() Status {
	status := Status{Active: !s.suspended, LastError: string(s.lastError)}
	if !s.last.IsZero() {
		status.LastDeliveryAt = new(s.last.UTC())
	}
	if !s.failedSince.IsZero() {
		status.FailedSince = new(s.failedSince.UTC())
	}
	return status
}

// keys returns the keys that sign now.
func (h *Hub) keys(s *subscription) (keys [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range s.keys {
		if k.until.IsZero() || time.Now().Before(k.until) {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// note counts an attempt, and suspends the subscription if nearly all attempts fail.
func (h *Hub) note(s *subscription, failure Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Sub(s.window) > suspendAfter {
		s.window, s.tries, s.failed = now, 0, 0
	}
	s.tries++
	if failure == "" {
		s.last, s.lastError, s.failedSince = now, "", time.Time{}
		return
	}
	s.lastError = failure
	if s.failed++; s.failedSince.IsZero() {
		s.failedSince = now
	}
	s.suspended = s.tries >= suspendTries && float64(s.failed) > suspendFailed*float64(s.tries)
}

// startLocked starts delivering, if the hub runs.
func (h *Hub) startLocked(s *subscription) {
	if h.ctx == nil || s.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(h.ctx)
	s.stop = stop // forget calls it at the subscription's time
	h.run.Go(func() { h.pump(ctx, s) })
}

// pump delivers one event after the other until the subscription ends.
func (h *Hub) pump(ctx context.Context, s *subscription) {
	if h.opts.Push != nil {
		p, ok := h.standing(s)
		if !ok {
			if s.source != nil {
				s.source.Close()
			}
			return
		}
		h.mu.Lock()
		s.principal = p // a stored one has no Live
		h.mu.Unlock()
	}
	live := s.principal.Live
	if h.opts.Lasting != nil {
		live = h.opts.Lasting(s.principal)
	}
	if live != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(live, cancel)()
	}
	err := h.pull(ctx, s)
	end, over := errors.AsType[*EndedError](err)
	if !over && (live == nil || live.Err() == nil) {
		return // unsubscribed, or the host ends
	}
	object := withdrawn(s.request.Declared)
	if over {
		object = end.Object
	}
	why := "the right to it is gone"
	if over && object == nil {
		why = "nothing more can come"
	}
	h.mu.Lock()
	known := h.all[s.id] == s
	run := h.ctx
	h.endLocked(s)
	h.mu.Unlock()
	if !known || run == nil {
		return
	}
	h.audit(h.endedKind(), s, why)
	if object != nil && s.push == nil { // nobody needs to know that a browser is told nothing more
		body, _ := json.Marshal(map[string]any{"type": "terminated", "error": object}) // valid JSON always can be
		h.deliver(run, s, message{id: "msg_terminated_" + rand.Text(), body: body}, nil, controlTries)
	}
}

// pull takes events from the source. It opens the source if the subscription comes from
// the former host.
func (h *Hub) pull(ctx context.Context, s *subscription) error {
	h.mu.Lock()
	source, from, doubt := s.source, s.watermark, s.pending
	h.mu.Unlock()
	var err error
	if source == nil {
		if source, err = h.open(ctx, s, from, false); err != nil {
			return err
		}
	}
	defer func() {
		if source != nil {
			source.Close()
		}
	}()
	for {
		ev, err := source.Next(ctx)
		if err != nil {
			return err
		}
		if doubt != nil && (ev.Gap || ev.Body != nil && ev.ID != doubt.ID) {
			// The event that the former host was sending would now be in another group,
			// under another id, and a receiver that has taken it would count its matches
			// twice. So the receiver is told the last position, and loses the events that
			// it has not taken.
			source.Close()
			if source, err = h.open(ctx, s, doubt.Place, true); err != nil {
				return err
			}
			doubt = nil
			h.setPending(s, nil)
			continue
		}
		switch {
		case ev.Gap:
			if !h.gap(ctx, s, ev.Cursor) {
				return ctx.Err()
			}
		case ev.Body == nil:
		case h.opts.Push != nil:
			if !h.pushEvent(ctx, s, &ev) {
				return ctx.Err()
			}
		case len(ev.Body) > maxBody: // impossible, by the bounds of package events
			h.log.Error().Str("event", ev.ID).Msg("an event is too long for a webhook")
		case !h.deliver(ctx, s, message{id: ev.ID, body: ev.Body}, ev.Cursor, deliver.Tries):
			return ctx.Err()
		}
		if ev.Body != nil {
			doubt = nil
		}
		if err := h.passed(ctx, s, &ev); err != nil {
			return err
		}
	}
}

// open opens the source of a subscription at a position. It tells the receiver if there
// is a gap: one that the source reports, or one that the caller knows of.
func (h *Hub) open(ctx context.Context, s *subscription, at *string, gap bool) (Source, error) {
	request := s.request
	request.Cursor = at
	source, truncated, err := h.opts.Open(ctx, s.principal, request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &EndedError{withdrawn(s.request.Declared)}
	}
	if (truncated || gap) && !h.gap(ctx, s, source.Cursor()) {
		source.Close()
		return nil, ctx.Err()
	}
	h.mu.Lock()
	if at := source.Cursor(); at != nil {
		s.watermark = at
	}
	h.mu.Unlock()
	return source, nil
}

// gap tells the receiver that events before the cursor are lost. For a kind without
// cursors it does nothing.
func (h *Hub) gap(ctx context.Context, s *subscription, cursor *string) bool {
	if cursor == nil {
		return true
	}
	body, _ := json.Marshal(map[string]any{"type": "gap", "cursor": cursor}) // a string always can be
	return h.deliver(ctx, s, message{id: "msg_gap_" + rand.Text(), body: body}, nil, controlTries)
}

// errWithdrawn says that the principal has lost the right to events.
var errWithdrawn = &events.Error{Reason: events.Forbidden, Text: "the right to these events is gone", Data: map[string]any{"reason": "withdrawn"}}

// withdrawn is the error object of errWithdrawn.
func withdrawn(declared bool) json.RawMessage { return mcp.ErrorObject(errWithdrawn, declared) }

// setPending records the event that the receiver may take from now on, or, with nil, that
// it has taken none.
func (h *Hub) setPending(s *subscription, p *pending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.pending = p; p == nil {
		h.changedLocked()
	}
}

// passed records the subscription's position, and waits while it is suspended. Progress
// without an event is not written at once: that would cost a write of the file, and
// without it a host that is killed only examines the same output again.
func (h *Hub) passed(ctx context.Context, s *subscription, ev *Event) error {
	h.mu.Lock()
	if ev.Cursor != nil {
		s.watermark = ev.Cursor
	}
	if ev.Body != nil || ev.Gap {
		s.pending = nil
	}
	if (ev.Body != nil || ev.Gap) && h.opts.Push == nil {
		h.changedLocked()
	}
	suspended := s.suspended
	h.mu.Unlock()
	for suspended {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		h.mu.Lock()
		suspended = s.suspended
		h.mu.Unlock()
	}
	return nil
}
