package localapi

// Notifications are the rules that tell the person what happens, and the URLs to which
// they send. The URLs themselves are in no answer.
type Notifications struct {
	SchemaVersion int              `json:"schema_version"`
	Receivers     []NotifyReceiver `json:"receivers"`
	Rules         []NotifyRule     `json:"rules"` // that are in force, from the configuration
}

// NotifyReceiver is a URL that the person has given a name.
type NotifyReceiver struct {
	Name    string `json:"name"`
	Form    string `json:"form"`              // json, ntfy, slack, discord or mattermost
	Store   string `json:"store"`             // keyring or file
	Problem string `json:"problem,omitempty"` // why it cannot be reached, if asked
}

// NotifyRule is a rule of the configuration.
type NotifyRule struct {
	Name      string   `json:"name"`
	On        []string `json:"on"`
	To        string   `json:"to"` // desktop, or the name of a receiver
	Terminals []string `json:"terminals"`
	Quiet     string   `json:"quiet,omitempty"`
	Problem   string   `json:"problem,omitempty"` // why its messages do not arrive
}

// ReceiverRequest gives a URL a name.
type ReceiverRequest struct {
	URL  string `json:"url"`
	Form string `json:"form,omitempty"` // "" guesses it from the URL
}
