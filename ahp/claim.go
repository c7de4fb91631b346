package ahp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// Kinds of a Claim.
const (
	ClaimClient  = "client"
	ClaimSession = "session"
)

// Claim names the holder of a terminal. Every terminal always has one.
type Claim struct {
	Kind       string `json:"kind"`                 // ClaimClient or ClaimSession
	ClientID   string `json:"clientId,omitempty"`   // client claims
	Session    string `json:"session,omitempty"`    // session claims: URI
	Chat       string `json:"chat,omitempty"`       // session claims: URI; required since 0.9.0, absent before
	TurnID     string `json:"turnId,omitempty"`     // session claims in use by a tool call
	ToolCallID string `json:"toolCallId,omitempty"` // session claims in use by a tool call

	// Problem is the reason why a received claim could not be read; it is never sent.
	// Such a claim counts as another client's.
	Problem string `json:"-"`
}

// ClientClaim returns the claim of a client.
func ClientClaim(clientID string) Claim { return Claim{Kind: ClaimClient, ClientID: clientID} }

// HeldBy reports whether c is a readable client claim of this client.
func (c Claim) HeldBy(clientID string) bool {
	return c.Problem == "" && c.Kind == ClaimClient && clientID != "" && c.ClientID == clientID
}

// Validate returns why c cannot be granted. Session claims may lack a chat, as before
// 0.9.0.
func (c Claim) Validate() error {
	switch {
	case c.Problem != "":
		return errors.New(c.Problem)
	case c.Kind == "":
		return errors.New("claim: kind is missing")
	case c.Kind == ClaimClient:
		if err := CheckClientID(c.ClientID); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		return nil
	case c.Kind == ClaimSession:
		return c.validateSession()
	}
	return fmt.Errorf("claim: kind is %.40q, want %q or %q", c.Kind, ClaimClient, ClaimSession)
}

func (c Claim) validateSession() error {
	if err := checkURI("claim: session", c.Session); err != nil {
		return err
	}
	if c.Chat != "" {
		if err := checkURI("claim: chat", c.Chat); err != nil {
			return err
		}
	}
	return cmp.Or(checkLength("claim: turnId", c.TurnID, MaxURI), checkLength("claim: toolCallId", c.ToolCallID, MaxURI))
}

// UnmarshalJSON checks the types of all members, but fails for no JSON value. A claim
// that it cannot read becomes a Claim that has only a Problem, so that one such claim
// does not make a whole catalogue unreadable.
func (c *Claim) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		*c = Claim{Problem: "claim: not an object"}
		return nil
	}
	var read Claim
	for _, m := range []struct {
		name  string
		field *string
	}{
		{"kind", &read.Kind}, {"clientId", &read.ClientID}, {"session", &read.Session}, {"chat", &read.Chat},
		{"turnId", &read.TurnID}, {"toolCallId", &read.ToolCallID},
	} {
		if v, ok := members[m.name]; ok && json.Unmarshal(v, m.field) != nil {
			*c = Claim{Problem: "claim: " + m.name + " is not a string"}
			return nil
		}
	}
	*c = read
	return nil
}
