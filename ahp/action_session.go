package ahp

import (
	"encoding/json"
	"errors"
)

// SessionReady says that the session can be used.
type SessionReady struct{}

// SessionCreationFailed says that the session could not be created.
type SessionCreationFailed struct {
	Error json.RawMessage `json:"error"`
}

// SessionTitleChanged sets the title. A client may dispatch it.
type SessionTitleChanged struct {
	Title string `json:"title"`
}

// SessionActivityChanged sets a text about the session's current work; nil = none.
type SessionActivityChanged struct {
	Activity *string `json:"activity,omitempty"`
}

// SessionDefaultChatChanged sets the chat that is meant when none is named; "" = none.
type SessionDefaultChatChanged struct {
	DefaultChat string `json:"defaultChat,omitempty"`
}

// SessionServerToolsChanged replaces the host's own tools.
type SessionServerToolsChanged struct {
	Tools []ToolDefinition `json:"tools"`
}

// SessionChatAdded adds a chat, or replaces the one with its URI.
type SessionChatAdded struct {
	Summary ChatSummary `json:"summary"`
}

// SessionChatUpdated replaces the members of a chat's summary that are in Changes.
type SessionChatUpdated struct {
	Chat    string             `json:"chat"`
	Changes PartialChatSummary `json:"changes"`
}

// SessionChatRemoved removes a chat.
type SessionChatRemoved struct {
	Chat string `json:"chat"`
}

// SessionActiveClientSet adds a client with its tools, or replaces its entry as a whole.
// A client dispatches it for itself.
type SessionActiveClientSet struct {
	ActiveClient ActiveClient `json:"activeClient"`
}

// SessionActiveClientRemoved removes a client. A client may dispatch it for itself. A
// host sends it when the client is gone.
type SessionActiveClientRemoved struct {
	ClientID string `json:"clientId"`
}

// SessionInputNeededSet adds a request, or replaces the one with its id.
type SessionInputNeededSet struct {
	Request InputRequest `json:"request"`
}

// SessionInputNeededRemoved removes a request that was answered or is void.
type SessionInputNeededRemoved struct {
	ID string `json:"id"`
}

// Type implements Action.
func (SessionReady) Type() string { return ActionSessionReady }

// Type implements Action.
func (SessionCreationFailed) Type() string { return ActionSessionCreationFailed }

// Type implements Action.
func (SessionTitleChanged) Type() string { return ActionSessionTitleChanged }

// Type implements Action.
func (SessionActivityChanged) Type() string { return ActionSessionActivityChanged }

// Type implements Action.
func (SessionDefaultChatChanged) Type() string { return ActionSessionDefaultChatChanged }

// Type implements Action.
func (SessionServerToolsChanged) Type() string { return ActionSessionServerToolsChanged }

// Type implements Action.
func (SessionChatAdded) Type() string { return ActionSessionChatAdded }

// Type implements Action.
func (SessionChatUpdated) Type() string { return ActionSessionChatUpdated }

// Type implements Action.
func (SessionChatRemoved) Type() string { return ActionSessionChatRemoved }

// Type implements Action.
func (SessionActiveClientSet) Type() string { return ActionSessionActiveClientSet }

// Type implements Action.
func (SessionActiveClientRemoved) Type() string { return ActionSessionActiveClientRemoved }

// Type implements Action.
func (SessionInputNeededSet) Type() string { return ActionSessionInputNeededSet }

// Type implements Action.
func (SessionInputNeededRemoved) Type() string { return ActionSessionInputNeededRemoved }

// Validate bounds the title.
func (a SessionTitleChanged) Validate() error { return checkLength("title", a.Title, MaxTitle) }

// Validate checks the client and its tools.
func (a SessionActiveClientSet) Validate() error { return a.ActiveClient.Validate() }

// Validate checks the id.
func (a SessionActiveClientRemoved) Validate() error { return CheckClientID(a.ClientID) }

// Validate checks the request's id. A request of a kind that this package reads must also
// have a tool call, and a chat for the answer.
func (a SessionInputNeededSet) Validate() error {
	r := a.Request
	switch {
	case r.ID == "" || len(r.ID) > MaxURI:
		return errors.New("request: id is missing, empty or too long")
	case !r.typed():
		return nil
	case r.ToolCall == nil:
		return errors.New("request: toolCall is missing")
	}
	return CheckURI(r.Chat)
}

func (a SessionServerToolsChanged) forVersion(string) any {
	return SessionServerToolsChanged{list(a.Tools)}
}
