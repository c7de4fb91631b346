package webhook

import (
	"context"
	"errors"
	"time"

	"tether/events"
	"tether/host/rights"
	"tether/mcp"
)

// Door is a hub that implements agents.Webhooks.
type Door struct{ *Hub }

// request converts a client's request for a hub.
func request(w mcp.Webhook) Request {
	r := Request{Name: w.Name, Arguments: w.Arguments, URL: w.URL, Secret: w.Secret, Cursor: w.Cursor, TTL: w.TTL, Declared: w.Declared}
	if w.MaxAge != nil {
		r.MaxAge = max(*w.MaxAge, time.Millisecond)
	}
	return r
}

// Subscribe implements agents.Webhooks.
func (d Door) Subscribe(ctx context.Context, p rights.Principal, w mcp.Webhook) (mcp.Subscribed, error) {
	return d.subscribe(ctx, p, request(w))
}

func (d Door) subscribe(ctx context.Context, p rights.Principal, r Request) (mcp.Subscribed, error) {
	a, err := d.Hub.Subscribe(ctx, p, r)
	if err != nil {
		return mcp.Subscribed{}, refusal(err)
	}
	out := mcp.Subscribed{ID: a.ID, RefreshBefore: a.RefreshBefore.UTC(), Cursor: a.Cursor, Truncated: a.Truncated}
	if a.Status != nil {
		out.Status = new(mcp.DeliveryStatus(*a.Status))
	}
	return out, nil
}

// Unsubscribe implements agents.Webhooks.
func (d Door) Unsubscribe(p rights.Principal, w mcp.Webhook) error {
	return refusal(d.Hub.Unsubscribe(p, request(w)))
}

// refusal converts a hub's error to the protocol's.
func refusal(err error) error {
	wrong, isWrong := errors.AsType[*InvalidError](err)
	endpoint, isEndpoint := errors.AsType[*EndpointError](err)
	switch {
	case isWrong:
		return &events.Error{Reason: events.InvalidParams, Text: wrong.Error(), Data: map[string]any{"field": wrong.Field, "reason": wrong.Reason}}
	case isEndpoint:
		return &events.Error{Reason: events.CallbackEndpoint, Text: endpoint.Error(), Data: map[string]any{"reason": string(endpoint.Why)}}
	case errors.Is(err, ErrTooMany):
		return &events.Error{Reason: events.ResourceExhausted, Text: err.Error() + "; end some, or try again in a minute", Data: map[string]any{"limit": "webhooks", "max": MaxOfOne}}
	case errors.Is(err, ErrNotFound):
		return &events.Error{Reason: events.NotFound, Text: err.Error(), Data: map[string]any{"kind": "subscription"}}
	}
	return err
}
