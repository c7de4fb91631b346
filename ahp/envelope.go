package ahp

import "encoding/json"

// Origin names the dispatch an envelope answers.
type Origin struct {
	ClientID  string `json:"clientId"`
	ClientSeq int64  `json:"clientSeq"` // the client's own count
}

// Envelope is the params of MethodAction: an action that a channel's subscribers must
// apply, or that was refused. It is for rare messages, above all replay; the live path
// uses EnvelopeView.
type Envelope struct {
	Channel         string          `json:"channel"`
	Action          json.RawMessage `json:"action"`    // for DecodeAction
	ServerSeq       int64           `json:"serverSeq"` // host-wide and increasing; a client sees gaps
	Origin          *Origin         `json:"origin,omitempty"`
	RejectionReason *string         `json:"rejectionReason,omitempty"`
}

// Rejected reports whether the host refused the action: then it must not be applied.
func (e Envelope) Rejected() bool { return e.RejectionReason != nil }

// DispatchParams is the params of MethodDispatchAction, for rare messages; the live path
// uses AppendOutput and Dispatch.
type DispatchParams struct {
	Channel   string          `json:"channel"`
	ClientSeq int64           `json:"clientSeq"`
	Action    json.RawMessage `json:"action"`
}
