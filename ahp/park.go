package ahp

import (
	"encoding/json"
	"fmt"
	"time"
)

// Methods of the extension for terminals of machines that are away. Both are requests of a client.
const (
	// MethodPark replaces what the owner of a terminal allows the host to keep while its machine is away; params are ParkParams. It is sent
	// behind the output before it.
	MethodPark = "x-tether/park"
	// MethodParked asks which terminals of machines that are away the host keeps, of those that the client may see; the result is a
	// ParkedResult.
	MethodParked = "x-tether/parked"
)

// ParkKey is in createTerminal, and only there: a [Park]. Without it the host keeps nothing.
const ParkKey = "tether/park"

// Bounds of parking.
const (
	MaxPark   = 30 * 24 * time.Hour // longer times count as this
	MaxParked = 1024                // entries of a ParkedResult; the rest is a number
)

// Park is what the owner of a terminal allows the host to keep of it while its machine is away. Both times run from when the host reads
// them or, ForMs, from when it notices that the machine is away: no clocks are compared.
type Park struct {
	// ForMs is for how long the host may keep the terminal's text for its own doors, in milliseconds since the machine was seen last; 0: not
	// at all beyond the grace time.
	ForMs int64 `json:"forMs"`
	// LoanMs is how long the terminal is still lent, in milliseconds; nil: without an end. Nothing is kept beyond it.
	LoanMs *int64 `json:"loanMs,omitempty"`
}

// NewPark returns what is allowed for a terminal that is lent for the time left; a negative time is without an end.
func NewPark(during, left time.Duration) Park {
	p := Park{ForMs: min(during, MaxPark).Milliseconds()}
	if left >= 0 {
		ms := left.Milliseconds()
		p.LoanMs = &ms
	}
	return p
}

// Validate tells what is wrong with it.
func (p Park) Validate() error {
	switch {
	case p.ForMs < 0:
		return fmt.Errorf("forMs is %d, want 0 or more", p.ForMs)
	case p.LoanMs != nil && *p.LoanMs < 0:
		return fmt.Errorf("loanMs is %d, want 0 or more", *p.LoanMs)
	}
	return nil
}

// During is ForMs, at most MaxPark.
func (p Park) During() time.Duration { return milliseconds(p.ForMs) }

// LoanEnd is when the loan ends, counted from a time; zero if it has no end, or none before MaxPark.
func (p Park) LoanEnd(from time.Time) time.Time {
	if p.LoanMs == nil || *p.LoanMs > MaxPark.Milliseconds() {
		return time.Time{}
	}
	return from.Add(milliseconds(*p.LoanMs))
}

func milliseconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), MaxPark.Milliseconds())) * time.Millisecond
}

// AddPark adds it to the _meta of a CreateTerminalParams.
func AddPark(m Meta, p Park) Meta {
	if m == nil {
		m = Meta{}
	}
	m[ParkKey] = marshal(p)
	return m
}

// FindPark returns what AddPark added; the zero value, which keeps nothing, if there is nothing that makes sense.
func FindPark(m Meta) Park {
	var p Park
	if json.Unmarshal(m[ParkKey], &p) != nil || p.Validate() != nil {
		return Park{}
	}
	return p
}

// ParkParams is the params of MethodPark.
type ParkParams struct {
	Channel string `json:"channel"`
	Park
}

// Validate tells what is wrong with the params.
func (p ParkParams) Validate() error {
	if err := CheckURI(p.Channel); err != nil {
		return err
	}
	return p.Park.Validate()
}

// Parked is a terminal that a host keeps while its machine is away.
type Parked struct {
	Channel string `json:"channel"` // URI that it had
	ID      string `json:"id"`      // by which the host's own doors know it
	Machine string `json:"machine"`
	Name    string `json:"name"` // with which it was announced
	Title   string `json:"title,omitempty"`
	AwayMs  int64  `json:"awayMs"`            // for how long the machine has been away
	LeftMs  int64  `json:"leftMs"`            // for how long it is still kept
	Dropped string `json:"dropped,omitempty"` // why its text is not kept any more
	Own     bool   `json:"own,omitempty"`     // the client itself has lent it
}

// ParkedResult is the result of MethodParked. Terminals of the client's own come first.
type ParkedResult struct {
	Terminals []Parked `json:"terminals"`
	More      int64    `json:"more,omitempty"` // how many there are beside those
}

// Validate tells what is wrong with the result. Texts may hold anything.
func (r ParkedResult) Validate() error {
	if len(r.Terminals) > MaxParked {
		return fmt.Errorf("there are more than %d terminals", MaxParked)
	}
	for _, t := range r.Terminals {
		if err := CheckURI(t.Channel); err != nil {
			return err
		}
		for name, text := range map[string]string{"id": t.ID, "machine": t.Machine, "name": t.Name, "title": t.Title, "dropped": t.Dropped} {
			if err := checkLength(name, text, MaxTitle); err != nil {
				return err
			}
		}
		if t.AwayMs < 0 || t.LeftMs < 0 {
			return fmt.Errorf("a time is negative")
		}
	}
	return nil
}
