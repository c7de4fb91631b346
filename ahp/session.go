package ahp

import (
	"cmp"
	"encoding/json"
)

// SessionStatus is a set of bits; unknown ones are kept.
type SessionStatus int64

// Bits of a SessionStatus.
const (
	SessionIdle       SessionStatus = 1
	SessionInProgress SessionStatus = 8
	SessionIsRead     SessionStatus = 32
	SessionIsArchived SessionStatus = 64

	sessionActivity SessionStatus = 31 // the bits that say what the session is doing
)

// SessionSummary is an entry of a host's session list.
type SessionSummary struct {
	Resource           string        `json:"resource"`
	Provider           string        `json:"provider"`
	Title              string        `json:"title"`
	Status             SessionStatus `json:"status"`
	CreatedAt          string        `json:"createdAt"`                   // ISO 8601
	ModifiedAt         string        `json:"modifiedAt"`                  // ISO 8601
	WorkingDirectories []string      `json:"workingDirectories,omitzero"` // URIs
}

// PartialSessionSummary holds the changed members of a SessionSummary; nil = unchanged.
type PartialSessionSummary struct {
	Title      *string        `json:"title,omitempty"`
	Status     *SessionStatus `json:"status,omitempty"`
	ModifiedAt *string        `json:"modifiedAt,omitempty"`
}

// CreateSessionParams asks for a session under a URI that the client chose. The result is
// null.
type CreateSessionParams struct {
	Channel            string          `json:"channel"`
	Provider           string          `json:"provider,omitempty"`           // one of RootState.Agents; "" = the host's choice
	WorkingDirectories []string        `json:"workingDirectories,omitempty"` // URIs
	Config             json.RawMessage `json:"config,omitempty"`
	ActiveClient       *ActiveClient   `json:"activeClient,omitempty"` // the sender, as by SessionActiveClientSet
	Meta               Meta            `json:"_meta,omitempty"`
}

// Validate checks the params by themselves.
func (p CreateSessionParams) Validate() error {
	if err := cmp.Or(CheckURI(p.Channel), checkLength("provider", p.Provider, MaxTitle),
		checkURIs("workingDirectories", p.WorkingDirectories)); err != nil {
		return err
	}
	if p.ActiveClient == nil {
		return nil
	}
	return p.ActiveClient.Validate()
}

// DisposeSessionParams asks for the end of a session, with its chats and the terminals
// that it holds. The result is null.
type DisposeSessionParams struct {
	Channel string `json:"channel"`
	Meta    Meta   `json:"_meta,omitempty"`
}

// Validate checks the params.
func (p DisposeSessionParams) Validate() error { return CheckURI(p.Channel) }

// ListSessionsParams asks for a page of sessions.
type ListSessionsParams struct {
	Channel string `json:"channel"` // RootURI
	Limit   int64  `json:"limit,omitempty"`
	Cursor  string `json:"cursor,omitempty"`
}

// ListSessionsResult is a page of sessions.
type ListSessionsResult struct {
	Items      []SessionSummary `json:"items"` // required, may be empty
	NextCursor string           `json:"nextCursor,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (r ListSessionsResult) MarshalJSON() ([]byte, error) {
	type fields ListSessionsResult
	r.Items = list(r.Items)
	return marshal(fields(r)), nil
}

// SessionAddedParams are the params of MethodSessionAdded.
type SessionAddedParams struct {
	Channel string         `json:"channel"`
	Summary SessionSummary `json:"summary"`
}

// SessionRemovedParams are the params of MethodSessionRemoved.
type SessionRemovedParams struct {
	Channel string `json:"channel"`
	Session string `json:"session"`
}

// SessionSummaryChangedParams are the params of MethodSessionSummaryChanged.
type SessionSummaryChangedParams struct {
	Channel string                `json:"channel"`
	Session string                `json:"session"`
	Changes PartialSessionSummary `json:"changes"`
}

// TerminalBlock is a terminal inside the content of a tool call; Resource can be
// subscribed to.
type TerminalBlock struct {
	Type     string          `json:"type"` // "terminal"
	Resource string          `json:"resource"`
	Title    string          `json:"title"`
	IsPty    *bool           `json:"isPty,omitempty"`
	Result   *TerminalResult `json:"result,omitempty"` // once the command has ended
}

// TerminalResult is the outcome of a tool call's command.
type TerminalResult struct {
	ExitCode   *int64          `json:"exitCode,omitempty"`
	Preview    *string         `json:"preview,omitempty"` // for clients that are not subscribed
	Truncated  *bool           `json:"truncated,omitempty"`
	FullOutput json.RawMessage `json:"fullOutput,omitempty"` // content reference
}
