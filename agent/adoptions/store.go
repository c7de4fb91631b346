package adoptions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"tether/agent/adopt"
	"tether/agent/loans"
	"tether/agent/term"
	"tether/internal/jsonspan"
	"tether/platform/secret"
)

// entry is a pane that is adopted, or was and may be again.
type entry struct {
	Pane     string  `json:"pane"`
	Identity string  `json:"identity"` // tells the pane from a later one with its name
	Terminal term.ID `json:"terminal"` // that reads it, or did so last
	Name     string  `json:"name"`     // the terminal's
	Private  bool    `json:"private,omitempty"`
	Types    bool    `json:"types,omitempty"`
	Rule     string  `json:"rule,omitempty"`
	Loans    []loan  `json:"loans,omitempty"` // the terminal's last ones
	Declined bool    `json:"declined,omitempty"`

	// Only Run uses these.
	began time.Time // of the last reader, if this daemon has started it
	tries int       // in a row
	next  time.Time // no attempt before
}

// identity returns what tells a pane from every other, also a later one.
func identity(p adopt.Pane) string {
	return fmt.Sprintf("%v %d", p.Server, p.Pid)
}

// loan is a loan of the terminal to a host.
type loan struct {
	Host   string    `json:"host"`
	Until  time.Time `json:"until,omitzero"`
	To     []string  `json:"to,omitempty"`
	Denied []string  `json:"denied,omitempty"`
}

// loansOf returns the loans that a terminal of the same pane gets again. Those for guests
// with a link are not among them, nor is whoever was to see only later output: the new
// terminal begins with earlier output.
func loansOf(all []loans.Loan) (out []loan) {
	for _, l := range all {
		if l.Audience.GuestsOnly {
			continue
		}
		one := loan{Host: l.Host, Until: l.Until, Denied: slices.Clone(l.Audience.Denied)}
		for _, g := range l.Audience.Grants {
			if g.From == 0 {
				one.To = append(one.To, g.To)
			}
		}
		out = append(out, one)
	}
	return out
}

// renew lends the terminal as the former one of its pane was lent. A host that is not
// paired any more, and a rule that forbids it, prevent that.
func (l *loan) renew(h term.Handle) {
	until := l.Until
	_ = h.LendTo(l.Host, loans.Change{Until: &until, Audience: loans.AudienceChange{Grant: l.To, Deny: l.Denied}})
}

// store is the content of the file.
type store struct {
	Version int      `json:"version"`
	Panes   []*entry `json:"panes"`
}

const (
	storeVersion = 1
	maxKept      = 1000 // entries of a file
)

// load reads the file.
func (k *Keeper) load() {
	data, err := secret.ReadFile(k.opts.Keep)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var s store
	if err == nil {
		err = jsonspan.Unmarshal(data, &s)
	}
	if err == nil && s.Version != storeVersion {
		err = fmt.Errorf("it has version %d, this program knows %d", s.Version, storeVersion)
	}
	if err != nil {
		k.opts.Report(fmt.Sprintf("cannot read which panes are adopted; one whose reader has ended is not adopted again: %s: %v", k.opts.Keep, err))
		return
	}
	k.entries = slices.DeleteFunc(s.Panes[:min(len(s.Panes), maxKept)], func(e *entry) bool { return e == nil })
	k.written = data
}

// save writes the file if its content has changed.
func (k *Keeper) save() {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, err := json.MarshalIndent(store{storeVersion, k.entries}, "", "\t")
	if data = append(data, '\n'); bytes.Equal(data, k.written) || len(k.entries) == 0 && k.written == nil {
		return
	}
	if err == nil {
		err = secret.WriteFile(k.opts.Keep, data)
	}
	if err != nil {
		k.opts.Report(fmt.Sprintf("cannot save which panes are adopted; one whose reader has ended is not adopted again by the next daemon: %v", err))
		return
	}
	k.written = data
}
