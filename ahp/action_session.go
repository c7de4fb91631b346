package ahp

// SessionTitleChanged sets the title. A client may dispatch it.
type SessionTitleChanged struct {
	Title string `json:"title"`
}

// SessionChatUpdated replaces the members of a chat's summary that are in Changes.
type SessionChatUpdated struct {
	Chat    string             `json:"chat"`
	Changes PartialChatSummary `json:"changes"`
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
func (SessionTitleChanged) Type() string { return ActionSessionTitleChanged }

// Type implements Action.
func (SessionChatUpdated) Type() string { return ActionSessionChatUpdated }

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
