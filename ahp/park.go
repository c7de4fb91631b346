package ahp

import (
	"encoding/json"
	"fmt"
	"time"
)

// Methods of the extension for terminals whose machine is away. Both are requests of a
// client.
const (
	// MethodPark replaces the permission to keep a terminal while its machine is away;
	// params are ParkParams. The owner sends it after all earlier output.
	MethodPark = "x-tether/park"
	// MethodParked asks for the parked terminals that the client may see; the result is a
	// ParkedResult.
	MethodParked = "x-tether/parked"
)

// ParkKey is in createTerminal, and only there: a [Park]. Without it the host keeps
// nothing.
const ParkKey = "tether/park"

// Bounds of parking.
const (
	MaxPark   = 30 * 24 * time.Hour       // a longer ForMs counts as this
	MaxParked = 1024                      // entries of a ParkedResult; further ones are only counted
	maxLoan   = 10 * 365 * 24 * time.Hour // a loan that ends later counts as one without an end
)

// Park is an owner's permission for the host to keep a terminal while its machine is
// away. LoanMs counts from when the host reads the message, ForMs from when the host
// notices that the machine is away: no clocks are compared.
type Park struct {
	// ForMs is how long the host may keep the terminal's text for its own interfaces, in
	// milliseconds. 0: only for the grace time.
	ForMs int64 `json:"forMs"`
	// LoanMs is the rest of the loan, in milliseconds; nil: no end. Nothing is kept
	// beyond it.
	LoanMs *int64 `json:"loanMs,omitempty"`
}

// NewPark returns the permission for a terminal whose loan ends after left; a negative
// time means that it has no end.
func NewPark(during, left time.Duration) Park {
	p := Park{ForMs: min(during, MaxPark).Milliseconds()}
	if left >= 0 {
		ms := left.Milliseconds()
		p.LoanMs = &ms
	}
	return p
}

// Validate returns an error that names the first invalid field.
func (p Park) Validate() error {
	switch {
	case p.ForMs < 0:
		return fmt.Errorf("forMs is %d, want 0 or more", p.ForMs)
	case p.LoanMs != nil && *p.LoanMs < 0:
		return fmt.Errorf("loanMs is %d, want 0 or more", *p.LoanMs)
	}
	return nil
}

// During returns ForMs, at most MaxPark.
func (p Park) During() time.Duration {
	return time.Duration(min(max(p.ForMs, 0), MaxPark.Milliseconds())) * time.Millisecond
}

// LoanEnd returns when the loan ends. read is when the host has read p. A loan without an
// end returns the zero time.
func (p Park) LoanEnd(read time.Time) time.Time {
	if p.LoanMs == nil || *p.LoanMs > maxLoan.Milliseconds() {
		return time.Time{}
	}
	return read.Add(time.Duration(max(*p.LoanMs, 0)) * time.Millisecond)
}

// AddPark stores p in the _meta of a CreateTerminalParams, and returns the _meta.
func AddPark(m Meta, p Park) Meta { return m.with(ParkKey, p) }

// FindPark returns the Park that AddPark added. If there is none, or an invalid one, it
// returns the zero value, which allows nothing.
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

// Validate returns an error that names the first invalid field.
func (p ParkParams) Validate() error {
	if err := CheckURI(p.Channel); err != nil {
		return err
	}
	return p.Park.Validate()
}

// Parked is a terminal that a host keeps while its machine is away.
type Parked struct {
	Channel string `json:"channel"` // its former URI
	ID      string `json:"id"`      // for the host's own interfaces
	Machine string `json:"machine"`
	Name    string `json:"name"` // as announced
	Title   string `json:"title,omitempty"`
	AwayMs  int64  `json:"awayMs"`            // time since the machine went away
	LeftMs  int64  `json:"leftMs"`            // remaining time that it is kept
	Dropped string `json:"dropped,omitempty"` // why its text is not kept any more; "" = it is kept
	Own     bool   `json:"own,omitempty"`     // lent by the client itself
}

// ParkedResult is the result of MethodParked. The client's own terminals come first.
type ParkedResult struct {
	Terminals []Parked `json:"terminals"`
	More      int64    `json:"more,omitempty"` // number of further ones
}

// Validate returns an error that names the first invalid field. Texts are bounded, but
// may hold anything.
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
			return fmt.Errorf("awayMs is %d and leftMs is %d, want 0 or more", t.AwayMs, t.LeftMs)
		}
	}
	return nil
}
