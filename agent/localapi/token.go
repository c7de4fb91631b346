package localapi

import "time"

// Whoami describes the caller's identity.
type Whoami struct {
	SchemaVersion int    `json:"schema_version"`
	Actor         string `json:"actor"`             // "user", "agent NAME" or "nobody"
	Why           string `json:"why"`               // the process or environment variable that decides it
	Sign          string `json:"sign,omitempty"`    // what shows that a person makes the request
	NoSign        string `json:"no_sign,omitempty"` // why nothing shows it
}

// TokenInfo is a token as lists show it.
type TokenInfo struct {
	Principal string    `json:"principal"`
	Person    bool      `json:"person,omitempty"` // it is for the person's own scripts
	Created   time.Time `json:"created"`
}

// TokenList is the answer to a request for the list of tokens.
type TokenList struct {
	SchemaVersion int         `json:"schema_version"`
	Tokens        []TokenInfo `json:"tokens"`
}

// TokenRequest asks for a new token for an agent, or for the person's scripts.
type TokenRequest struct {
	Principal string `json:"principal"`
	Person    bool   `json:"person,omitempty"` // it is for the person's own scripts
}

// NewToken is the answer to a TokenRequest. The token is returned only this once.
type NewToken struct {
	SchemaVersion int    `json:"schema_version"`
	Principal     string `json:"principal"`
	Person        bool   `json:"person,omitempty"`
	Token         string `json:"token"`
}
