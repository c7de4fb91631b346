package vocab

import "time"

// LentPort is a TCP port on which a lent terminal's programs listen, or will, and that
// the person has opened to those at one host who may watch the terminal.
type LentPort struct {
	Port    int       `json:"port,omitempty"`        // absent, with auto: those on which the programs will listen
	Auto    bool      `json:"auto,omitempty"`        // with a port: found so
	Write   bool      `json:"write,omitempty"`       // methods that change something are allowed, too
	Guests  bool      `json:"guests_only,omitempty"` // only guests with a link for it may use it
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"`   // absent: for as long as the terminal is lent there
	Closed  string    `json:"closed,omitempty"` // why nobody may use it any more; absent: it is open
	Fetched int64     `json:"fetched"`          // requests so far
	Latest  time.Time `json:"latest,omitzero"`  // when the last one came
}

// IsOpen reports whether p is a port that can be used.
func (p *LentPort) IsOpen() bool { return p.Port != 0 && p.Closed == "" }
