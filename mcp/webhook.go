package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/events"
	"tether/internal/jsonspan"
)

// Webhooks delivers events to URLs, for one principal. Its errors are *events.Error, or
// ctx's. It is safe for concurrent use.
type Webhooks interface {
	// Subscribe makes a subscription, or renews the one for the same URL, kind and
	// arguments. It blocks until the receiver has confirmed that it wants the events.
	Subscribe(context.Context, Webhook) (Subscribed, error)
	// Unsubscribe ends a subscription.
	Unsubscribe(Webhook) error
}

// Webhook is a client's request for deliveries to a URL.
type Webhook struct {
	events.Request
	URL, Secret string
	TTL         time.Duration // 0 means the default
	Declared    bool          // the client knows the proposal's error codes, see errorCodes
}

// Subscribed is the answer to a Webhook, in the form of events/subscribe.
type Subscribed struct {
	ID            string          `json:"id"`
	RefreshBefore time.Time       `json:"refreshBefore"`
	Cursor        *string         `json:"cursor"`
	Truncated     bool            `json:"truncated"`
	Status        *DeliveryStatus `json:"deliveryStatus,omitempty"`
}

// DeliveryStatus says whether the deliveries of a subscription succeed.
type DeliveryStatus struct {
	Active         bool       `json:"active"`
	LastDeliveryAt *time.Time `json:"lastDeliveryAt,omitempty"`
	LastError      string     `json:"lastError,omitempty"`
	FailedSince    *time.Time `json:"failedSince,omitempty"`
}

type subscribeParams struct {
	eventParams
	Delivery struct {
		Mode   string `json:"mode"`
		URL    string `json:"url"`
		Secret string `json:"secret"`
	} `json:"delivery"`
	TTL json.RawMessage `json:"ttlMs"`
}

type subscribeResult struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
	Subscribed
}

// webhook converts the parameters.
func (p *subscribeParams) webhook(declared bool) (w Webhook, err error) {
	if p.Delivery.Mode != "" && p.Delivery.Mode != "webhook" {
		return w, &events.Error{Reason: events.Unsupported, Text: "the mode of a delivery is webhook; events/poll and events/stream are the others", Data: map[string]any{"feature": "deliveryMode", "value": p.Delivery.Mode}}
	}
	r, err := p.request()
	if err != nil {
		return w, err
	}
	w = Webhook{Request: *r, URL: p.Delivery.URL, Secret: p.Delivery.Secret, Declared: declared}
	if len(p.TTL) > 0 && string(p.TTL) != "null" { // a number out of range is not refused but changed to the nearest bound
		var ms float64
		if jsonspan.Unmarshal(p.TTL, &ms) != nil {
			return w, &events.Error{Reason: events.InvalidParams, Text: "ttlMs must be a number or null", Data: map[string]any{"field": "ttlMs"}}
		}
		w.TTL = time.Duration(min(max(ms, 1), float64(365*24*time.Hour/time.Millisecond)) * float64(time.Millisecond))
	}
	return w, nil
}

// addWebhooks registers the methods for webhooks. If Options.Webhooks is nil, they answer
// that webhooks are not offered.
func (s *Server) addWebhooks(add func(error)) {
	add(sdk.AddReceivingCustomMethod(s.server, methodSubscribe, func(ctx context.Context, ss *sdk.ServerSession, p *subscribeParams) (*subscribeResult, error) {
		if p == nil {
			p = &subscribeParams{}
		}
		w, err := p.webhook(declares(ss, p.Meta))
		if err == nil && s.opts.Webhooks == nil {
			err = &events.Error{Reason: events.Unsupported, Text: "webhooks are not offered here; use events/poll or events/stream", Data: map[string]any{"feature": "deliveryMode", "value": "webhook"}}
		}
		var answer Subscribed
		if err == nil {
			answer, err = s.opts.Webhooks.Subscribe(ctx, w)
		}
		if err != nil {
			return nil, eventError(ss, p.Meta, err)
		}
		return &subscribeResult{ResultType: complete, Subscribed: answer}, nil
	}))
	add(sdk.AddReceivingCustomMethod(s.server, methodUnsubscribe, func(_ context.Context, ss *sdk.ServerSession, p *subscribeParams) (*endResult, error) {
		if p == nil {
			p = &subscribeParams{}
		}
		w, err := p.webhook(false)
		if err == nil && s.opts.Webhooks == nil {
			err = &events.Error{Reason: events.NotFound, Text: "no such subscription: a stream ends with its request", Data: map[string]any{"kind": "subscription"}}
		}
		if err == nil {
			err = s.opts.Webhooks.Unsubscribe(w)
		}
		if err != nil {
			return nil, eventError(ss, p.Meta, err)
		}
		return &endResult{ResultType: complete}, nil
	}))
}

// kindsOffered returns the kinds of events, each with all modes in which this server
// delivers it.
func (s *Server) kindsOffered() []events.Kind {
	kinds := s.opts.Events.Kinds()
	if s.opts.Webhooks == nil {
		return kinds
	}
	kinds = slices.Clone(kinds)
	for i := range kinds {
		kinds[i].Delivery = append(slices.Clone(kinds[i].Delivery), "webhook")
	}
	return kinds
}
