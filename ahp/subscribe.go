package ahp

import "encoding/json"

// Snapshot is the state of a channel at FromSeq. Only envelopes with a greater ServerSeq
// may be applied to it.
type Snapshot struct {
	Resource string          `json:"resource"`
	State    json.RawMessage `json:"state"` // RootState, TerminalState, or one out of scope here
	FromSeq  int64           `json:"fromSeq"`
}

// PingParams asks for a sign of life; the answer is null.
type PingParams struct {
	Channel string `json:"channel"` // RootURI
}

// Delivery is how much intentional buffering a subscriber allows.
type Delivery struct {
	MaxLatencyMs *int64 `json:"maxLatencyMs,omitempty"` // milliseconds; 0 = none, nil = the host's choice
}

// SubscribeParams asks for a channel's messages.
type SubscribeParams struct {
	Channel  string    `json:"channel"`
	Delivery *Delivery `json:"delivery,omitempty"`
	Meta     Meta      `json:"_meta,omitempty"`
}

// Validate checks the params.
func (p SubscribeParams) Validate() error {
	return CheckURI(p.Channel)
}

// SubscribeResult carries the state of the channel, if it has any.
type SubscribeResult struct {
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// UnsubscribeParams ends a subscription.
type UnsubscribeParams struct {
	Channel string `json:"channel"`
	Meta    Meta   `json:"_meta,omitempty"`
}

// Validate checks the params.
func (p UnsubscribeParams) Validate() error { return CheckURI(p.Channel) }
