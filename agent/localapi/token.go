package localapi

import "time"

// Whoami describes the caller's identity.
type Whoami struct {
	SchemaVersion int    `json:"schema_version"`
	Actor         string `json:"actor"` // "user", "agent NAME" or "nobody"
	Why           string `json:"why"`   // the process or environment variable that decides it
	// Sign names the sign of a person; NoSign is why there is none.
	Sign   string `json:"sign,omitempty"`
	NoSign string `json:"no_sign,omitempty"`
}

// TokenInfo is a token as lists show it.
type TokenInfo struct {
	Principal string    `json:"principal"`
	Person    bool      `json:"person,omitempty"` // yours, for scripts; principal is its name
	Created   time.Time `json:"created"`
}

// TokenList is the answer to a list of the tokens that were made.
type TokenList struct {
	SchemaVersion int         `json:"schema_version"`
	Tokens        []TokenInfo `json:"tokens"`
}

// TokenRequest makes a token for an agent, or for the person's scripts.
type TokenRequest struct {
	Principal string `json:"principal"`
	Person    bool   `json:"person,omitempty"` // it is yours; principal is a name for it
}

// NewToken answers it. The token cannot be had again.
type NewToken struct {
	SchemaVersion int    `json:"schema_version"`
	Principal     string `json:"principal"`
	Person        bool   `json:"person,omitempty"`
	Token         string `json:"token"`
}
